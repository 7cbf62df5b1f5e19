//! Picks one at a time under spread constraints: each pick is counted before the next one.
//!
//! The constraints score clusters in equal domains alike, so each pick compares only the best cluster of each
//! such group.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::case::Case;
use super::cluster_table::{Row, number};
use super::recorder::Recorder;
use super::score_order::{Scored, by_what};
use super::spread_constraints::Spreading;
use berth_base::model::placement::{Policy, ScoreRule};

/// Clusters in the same domains, the best last.
struct Group<'a> {
    left: Vec<u32>,
    /// The constraints' verdict on the last pick: a score, or the key of a constraint that it would break.
    outlook: Result<i64, &'a str>,
}

/// Returns indexes into the clusters that passed, in the order of picking. Writes the scores of each pick
/// into the parts.
pub(super) fn pick(
    case: &Case<'_>,
    scored: Scored<'_>,
    mut spreading: Spreading<'_>,
    open: usize,
    recorder: &mut impl Recorder,
) -> Vec<u32> {
    let (part, passed) = (spreading.part, scored.passed);
    let mut groups = group(&spreading, passed);
    sort(case.policy, &mut groups, &scored);
    let mut chosen: Vec<u32> = Vec::new();
    while chosen.len() < open {
        let levels = spreading.levels();
        for group in groups.iter_mut().filter(|group| !group.left.is_empty()) {
            let Some(best) = group.left.last().copied() else { continue };
            group.outlook = spreading.score(&levels, passed[best as usize]);
            scored.parts[part][best as usize] = group.outlook.unwrap_or(0);
        }
        let fits = groups.iter_mut().filter(|group| group.outlook.is_ok() && !group.left.is_empty());
        let heads = fits.filter_map(|group| Some((group.left.last().copied()?, group)));
        let order = |a: u32, b: u32| scored.by_first(a, b).then_with(|| scored.by_parts(case.policy, a, b));
        let Some((best, group)) = heads.min_by(|(a, _), (b, _)| order(*a, *b)) else { break };
        group.left.pop();
        spreading.add(passed[best as usize]);
        let prefers = chosen.is_empty() && forget_earlier(case.policy, scored.parts);
        chosen.push(best);
        // Inside a group the constraints score all clusters alike.
        for group in &groups {
            group.left.last().into_iter().for_each(|head| scored.parts[part][*head as usize] = 0);
        }
        if prefers {
            sort(case.policy, &mut groups, &scored);
        }
    }
    report(case, scored, &groups, (&chosen, part, open), recorder);
    chosen
}

fn group<'a>(spreading: &Spreading<'a>, passed: &[Row]) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for index in 0..number(passed.len()) {
        groups.entry(spreading.domains(passed[index as usize])).or_default().push(index);
    }
    groups.into_values().map(|left| Group { left, outlook: Ok(0) }).collect()
}

fn sort(policy: &Policy, groups: &mut [Group<'_>], scored: &Scored<'_>) {
    let order = |a: &u32, b: &u32| -> Ordering {
        scored.by_first(*a, *b).then_with(|| scored.by_parts(policy, *a, *b)).reverse()
    };
    groups.iter_mut().for_each(|group| group.left.sort_unstable_by(order));
}

/// Drops the preference for current picks: the first pick replaces all picks of the earlier policy. Returns
/// true if there were any.
fn forget_earlier(policy: &Policy, parts: &mut [Vec<i64>]) -> bool {
    let mut prefers = false;
    for (scorer, part) in policy.scorers.iter().zip(parts) {
        if scorer.rule == ScoreRule::Steady && scorer.name.is_empty() {
            prefers |= part.iter().any(|score| *score != 0);
            part.fill(0);
        }
    }
    prefers
}

/// Records for each remaining cluster why it is not picked.
fn report(
    case: &Case<'_>,
    scored: Scored<'_>,
    groups: &[Group<'_>],
    (chosen, part, open): (&[u32], usize, usize),
    recorder: &mut impl Recorder,
) {
    let mut left: Vec<(u32, Result<i64, &str>)> = Vec::new();
    for group in groups {
        left.extend(group.left.iter().map(|index| (*index, group.outlook)));
    }
    left.sort_unstable_by_key(|(index, _)| *index);
    for (index, outlook) in &left {
        scored.parts[part][*index as usize] = outlook.unwrap_or(0);
    }
    let order: Vec<u32> = chosen.iter().copied().chain(left.iter().map(|(index, _)| *index)).collect();
    recorder.ranked(scored.passed, scored.parts, &order);
    for (index, outlook) in left {
        let row = scored.passed[index as usize];
        match outlook {
            Err(key) => {
                recorder.dropped(row, &format!("one more pick there would be too uneven over {key}"));
            }
            Ok(_) => recorder
                .not_chosen_with(row, || format!("not among the first {open} {}", by_what(case.policy))),
        }
    }
}
