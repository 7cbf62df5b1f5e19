//! Spread constraints: how evenly the picks are spread over the values of a label, and the effect of one more
//! pick.
//!
//! All clusters of the fleet form domains, including clusters that cannot be picked: a domain that stays
//! empty holds the others back. A cluster without the label is in no domain; it breaks no constraint and
//! scores 0.
//!
//! Picks are made one at a time: each pick is counted before the next one.
//!
//! The constraints score clusters in equal domains alike, so each pick compares only the best cluster of each
//! such group.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster_table::{Row, Table, Texts, number};
use super::findings::Recorder;
use super::own_policy::DecisionCase;
use super::select::{Scored, by_what};
use berth_base::model::placement::{Policy, ScoreRule, SpreadConstraint};

/// The cost of breaking a constraint that is not required.
const VIOLATION: i64 = 1000;

/// The constraints of a policy, with the picks counted so far.
pub(super) struct Spreading<'a> {
    /// The index of the policy's scorer that holds the constraints.
    pub(super) part: usize,
    constraints: Vec<DomainCounts<'a>>,
}

struct DomainCounts<'a> {
    constraint: &'a SpreadConstraint,
    domains: Arc<Texts>,
    /// By number of the domain; number 0 is no domain.
    counts: Vec<i64>,
    /// The number of domains, by the number of their picks.
    domains_with: BTreeMap<i64, usize>,
}

/// The smallest, second smallest and largest count of each constraint, before the next pick.
pub(super) struct Levels(Vec<(i64, i64, i64)>);

impl<'a> Spreading<'a> {
    /// Returns `None` if the policy has no constraints.
    pub(super) fn of(table: &Table<'_>, policy: &'a Policy) -> Option<Spreading<'a>> {
        let (part, constraints) =
            policy.scorers.iter().enumerate().find_map(|(part, scorer)| match &scorer.rule {
                ScoreRule::Spread(constraints) if !constraints.is_empty() => Some((part, constraints)),
                _ => None,
            })?;
        // Required constraints come first: a cluster that they refuse needs no score.
        let mut constraints: Vec<_> = constraints.iter().collect();
        constraints.sort_by_key(|constraint| !constraint.required);
        let counted = |constraint: &'a SpreadConstraint| {
            let domains = table.labels(&constraint.key);
            let counts = vec![0; domains.count()];
            let real = counts.len().saturating_sub(1);
            let domains_with = std::iter::once((0, real)).filter(|(_, real)| *real > 0).collect();
            DomainCounts { constraint, domains, counts, domains_with }
        };
        Some(Spreading { part, constraints: constraints.into_iter().map(counted).collect() })
    }

    /// Counts a pick.
    pub(super) fn add(&mut self, row: Row) {
        self.constraints.iter_mut().for_each(|one| one.add(row));
    }

    /// Returns the numbers of a cluster's domains: clusters in equal domains have equal scores.
    fn domains(&self, row: Row) -> Vec<u32> {
        self.constraints.iter().map(|one| one.domains.ids[row as usize]).collect()
    }

    fn levels(&self) -> Levels {
        Levels(self.constraints.iter().map(DomainCounts::levels).collect())
    }

    /// Returns the score of a pick of this cluster; the error is the key of the required constraint that it
    /// would break.
    pub(super) fn score(&self, levels: &Levels, row: Row) -> Result<i64, &'a str> {
        let mut score: i64 = 0;
        for (one, levels) in self.constraints.iter().zip(&levels.0) {
            let domain = one.domains.ids[row as usize] as usize;
            if domain == 0 {
                continue;
            }
            let (change, broken) = one.outlook(*levels, one.counts[domain]);
            match (broken, one.constraint.required) {
                (true, true) => return Err(&one.constraint.key),
                (true, false) => score = score.saturating_sub(VIOLATION),
                (false, _) => score = score.saturating_sub(change),
            }
        }
        Ok(score)
    }
}

impl DomainCounts<'_> {
    fn add(&mut self, row: Row) {
        let domain = self.domains.ids[row as usize] as usize;
        let count = self.counts[domain];
        self.counts[domain] += 1;
        if domain == 0 {
            return;
        }
        if let Some(domains) = self.domains_with.get_mut(&count) {
            *domains -= 1;
            if *domains == 0 {
                self.domains_with.remove(&count);
            }
        }
        *self.domains_with.entry(count + 1).or_default() += 1;
    }

    fn levels(&self) -> (i64, i64, i64) {
        let mut levels = self.domains_with.iter();
        let Some((smallest, domains)) = levels.next() else { return (0, 0, 0) };
        let largest = self.domains_with.last_key_value().map_or(*smallest, |(largest, _)| *largest);
        // Two domains may share the smallest count.
        let second =
            if *domains > 1 { *smallest } else { levels.next().map_or(*smallest, |(next, _)| *next) };
        (*smallest, second, largest)
    }

    /// Returns the change of the skew by one more pick in a domain with `count` picks, and whether the result
    /// breaks the constraint. A pick that reduces the skew is still refused if the remaining skew exceeds the
    /// limit.
    fn outlook(&self, (smallest, second, largest): (i64, i64, i64), count: i64) -> (i64, bool) {
        let skew = largest - smallest;
        let change = if largest == smallest {
            1
        } else if count == smallest && smallest != second {
            -1
        } else if count == largest {
            1
        } else {
            0
        };
        (change, skew + change > self.constraint.max_skew)
    }
}

/// Clusters in the same domains, the best last.
struct DomainGroup<'a> {
    left: Vec<u32>,
    /// The constraints' verdict on the last pick: a score, or the key of a constraint that it would break.
    outlook: Result<i64, &'a str>,
}

/// Returns indexes into the clusters that passed, in the order of picking. Writes the scores of each pick
/// into the parts.
pub(super) fn pick(
    case: &DecisionCase<'_>,
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

fn group<'a>(spreading: &Spreading<'a>, passed: &[Row]) -> Vec<DomainGroup<'a>> {
    let mut groups: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for index in 0..number(passed.len()) {
        groups.entry(spreading.domains(passed[index as usize])).or_default().push(index);
    }
    groups.into_values().map(|left| DomainGroup { left, outlook: Ok(0) }).collect()
}

fn sort(policy: &Policy, groups: &mut [DomainGroup<'_>], scored: &Scored<'_>) {
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
    case: &DecisionCase<'_>,
    scored: Scored<'_>,
    groups: &[DomainGroup<'_>],
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
