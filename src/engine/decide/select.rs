//! Scored clusters → picks: a total order, cut at the wanted number. [`Scored`] has the order.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use super::cluster_table::Row;
use super::even_constraints::Evenly;
use super::findings::Recorder;
use super::own_policy::DecisionCase;
use super::spread::{self, Spreading};
use berth_base::model::Pick;
use berth_base::model::placement::{Policy, Ranking, Scorer, Selection};

/// The name of the recorded weighted sum.
const SUM: &str = "score";

/// The picks: current ones that stay, and indexes into the rows that passed.
pub(super) struct PickedRows {
    pub(super) kept: Vec<Row>,
    pub(super) new: Vec<u32>,
}

pub(super) fn choose(
    case: &DecisionCase<'_>,
    kept: &[Row],
    scored: Scored<'_>,
    recorder: &mut impl Recorder,
) -> PickedRows {
    let passed = scored.passed;
    let mut order: Vec<u32> = (0..super::cluster_table::number(passed.len())).collect();
    if let Some(evenly) = Evenly::of(case.table, case.policy, passed) {
        return choose_evenly(case, scored, evenly, order, recorder);
    }
    let Selection::First(count) = case.policy.selection else {
        if recorder.wants_ranks() {
            sort(case.policy, &scored, &mut order, passed.len());
            recorder.ranked(passed, scored.parts, &order);
        }
        return PickedRows { kept: kept.to_vec(), new: order };
    };
    let open = count.saturating_sub(kept.len()).max(scored.first_count());
    if let Some(mut spreading) = Spreading::of(case.table, case.policy).filter(|_| open > 0) {
        kept.iter().for_each(|row| spreading.add(*row));
        let new = spread::pick(case, scored, spreading, open, recorder);
        return PickedRows { kept: kept.to_vec(), new };
    }
    let full = if recorder.wants_ranks() { passed.len() } else { open };
    sort(case.policy, &scored, &mut order, full);
    recorder.ranked(passed, scored.parts, &order);
    for index in order.iter().skip(open) {
        recorder.not_chosen_with(passed[*index as usize], || {
            format!("not among the first {count} {}", by_what(case.policy))
        });
    }
    order.truncate(open);
    let kept = if kept.len() > count { scale_down(case, kept, count, recorder) } else { kept.to_vec() };
    PickedRows { kept, new: order }
}

/// Picks the best clusters while the constraints stay even.
fn choose_evenly(
    case: &DecisionCase<'_>,
    scored: Scored<'_>,
    evenly: Evenly<'_>,
    mut order: Vec<u32>,
    recorder: &mut impl Recorder,
) -> PickedRows {
    let passed = scored.passed;
    let open = match case.policy.selection {
        Selection::First(count) => count.max(scored.first_count()),
        Selection::All | Selection::Exactly(_) | Selection::InTurn(_) => passed.len(),
    };
    let part = evenly.part;
    sort(case.policy, &scored, &mut order, passed.len());
    let evened = evenly.pick(passed, &order, |index| scored.is_first(index), open);
    let mut is_chosen = vec![false; passed.len()];
    evened.chosen.iter().for_each(|index| is_chosen[*index as usize] = true);
    let left: Vec<u32> = order.into_iter().filter(|index| !is_chosen[*index as usize]).collect();
    scored.parts[part].fill(0);
    let all: Vec<u32> = evened.chosen.iter().chain(&left).copied().collect();
    recorder.ranked(passed, scored.parts, &all);
    for index in left {
        let row = passed[index as usize];
        match evened.refused.get(&index) {
            Some(key) => {
                recorder.dropped(row, &format!("one more pick there would be too uneven over {key}"));
            }
            None => recorder
                .not_chosen_with(row, || format!("not among the first {open} {}", by_what(case.policy))),
        }
    }
    PickedRows { kept: Vec::new(), new: evened.chosen }
}

/// Sorts the best clusters to the front; those behind the cut stay in any order.
fn sort(policy: &Policy, scored: &Scored<'_>, order: &mut [u32], cut: usize) {
    let sums: Vec<i64> = match policy.ranking {
        Ranking::SumThenName => {
            order.iter().map(|index| sum(&policy.scorers, scored.parts, *index)).collect()
        }
        Ranking::PartsThenNameDescending => Vec::new(),
    };
    let by_score = |a: &u32, b: &u32| match policy.ranking {
        // Rows ascend by name, so the index compares like the name.
        Ranking::SumThenName => (Reverse(sums[*a as usize]), a).cmp(&(Reverse(sums[*b as usize]), b)),
        Ranking::PartsThenNameDescending => scored.by_parts(policy, *a, *b),
    };
    let compare = |a: &u32, b: &u32| scored.by_first(*a, *b).then_with(|| by_score(a, b));
    if cut == 0 || order.is_empty() {
        return;
    }
    if cut >= order.len() {
        return order.sort_unstable_by(compare);
    }
    if cut > FEW {
        order.select_nth_unstable_by(cut - 1, compare);
        return order[..cut].sort_unstable_by(compare);
    }
    // Most clusters need one comparison: they are worse than the worst of the best so far.
    order[..cut].sort_unstable_by(compare);
    for index in cut..order.len() {
        if compare(&order[index], &order[cut - 1]) == Ordering::Less {
            order.swap(index, cut - 1);
            let mut at = cut - 1;
            while at > 0 && compare(&order[at], &order[at - 1]) == Ordering::Less {
                order.swap(at, at - 1);
                at -= 1;
            }
        }
    }
}

/// Up to this many clusters are selected one by one; more are sorted.
const FEW: usize = 32;

/// Returns the weighted sum of a cluster's scores.
pub(super) fn sum(scorers: &[Scorer], parts: &[Vec<i64>], index: u32) -> i64 {
    let parts = scorers.iter().zip(parts).map(|(scorer, part)| weighted(scorer, part[index as usize]));
    parts.fold(0, i64::saturating_add)
}

/// Returns the scores to record with a pick. A scorer without a name only orders.
pub(super) fn scores(policy: &Policy, parts: &[Vec<i64>], index: u32) -> BTreeMap<String, i64> {
    if policy.scorers.is_empty() {
        return BTreeMap::new();
    }
    match policy.ranking {
        Ranking::SumThenName => [(SUM.to_owned(), sum(&policy.scorers, parts, index))].into(),
        Ranking::PartsThenNameDescending => {
            let named = policy.scorers.iter().zip(parts).filter(|(scorer, _)| !scorer.name.is_empty());
            let part = |(scorer, part): (&Scorer, &Vec<i64>)| {
                (scorer.name.clone(), weighted(scorer, part[index as usize]))
            };
            named.map(part).collect()
        }
    }
}

/// Keeps the best current picks by their recorded scores; a pick without scores is the worst.
fn scale_down(case: &DecisionCase<'_>, kept: &[Row], count: usize, recorder: &mut impl Recorder) -> Vec<Row> {
    let rank = |row: &Row| {
        let pick = case.previous.and_then(|previous| previous.pick(case.table.name(*row)));
        let scores = pick.filter(|pick| !pick.scores.is_empty()).map(|pick| recorded(case.policy, pick));
        let by_name = match case.policy.ranking {
            Ranking::SumThenName => -i64::from(*row),
            Ranking::PartsThenNameDescending => i64::from(*row),
        };
        let rolled_out = pick.is_some_and(|pick| !pick.pending);
        Reverse((rolled_out, scores, by_name))
    };
    let mut ranked = kept.to_vec();
    ranked.sort_by_cached_key(rank);
    for row in ranked.drain(count.min(kept.len())..) {
        recorder.dropped(row, &format!("picked earlier, but only {count} are wanted now"));
    }
    ranked.sort_unstable();
    ranked
}

pub(super) fn recorded(policy: &Policy, pick: &Pick) -> Vec<i64> {
    let score = |name: &str| pick.scores.get(name).copied().unwrap_or(0);
    match policy.ranking {
        Ranking::SumThenName => vec![score(SUM)],
        Ranking::PartsThenNameDescending => policy.scorers.iter().map(|scorer| score(&scorer.name)).collect(),
    }
}

/// The clusters that passed the filters, with their scores.
pub(super) struct Scored<'s> {
    pub(super) passed: &'s [Row],
    /// One list of scores for each scorer, each as long as `passed`. Scores that arise only during picking
    /// are written into it.
    pub(super) parts: &'s mut [Vec<i64>],
    /// Marks clusters that go first whatever their scores; empty without any.
    first: Vec<bool>,
}

impl<'s> Scored<'s> {
    /// In an uncertain decision the current picks go first, because it loses no pick.
    pub(super) fn new(case: &DecisionCase<'_>, passed: &'s [Row], parts: &'s mut [Vec<i64>]) -> Scored<'s> {
        let is_earlier = |row: &Row| case.current_rows.binary_search(row).is_ok();
        let first = if case.is_uncertain { passed.iter().map(is_earlier).collect() } else { Vec::new() };
        Scored { passed, parts, first }
    }

    /// Returns the number of clusters that go first.
    fn first_count(&self) -> usize {
        self.first.iter().filter(|is_first| **is_first).count()
    }

    /// Reports whether a cluster goes first whatever its scores.
    pub(super) fn is_first(&self, index: u32) -> bool {
        self.first.get(index as usize).copied().unwrap_or(false)
    }

    /// Compares two clusters only by whether they go first.
    pub(super) fn by_first(&self, a: u32, b: u32) -> Ordering {
        self.first.get(b as usize).cmp(&self.first.get(a as usize))
    }

    /// Compares two clusters score by score, then by name, the greatest first.
    pub(super) fn by_parts(&self, policy: &Policy, a: u32, b: u32) -> Ordering {
        let scored = policy.scorers.iter().zip(&*self.parts);
        let by_parts = scored.map(|(scorer, part)| {
            weighted(scorer, part[b as usize]).cmp(&weighted(scorer, part[a as usize]))
        });
        by_parts.fold(Ordering::Equal, Ordering::then).then(b.cmp(&a))
    }
}

/// Returns the weighted score.
pub(super) fn weighted(scorer: &Scorer, score: i64) -> i64 {
    scorer.weight.saturating_mul(score)
}

/// Describes the order in which clusters are picked.
pub(super) fn by_what(policy: &Policy) -> &'static str {
    match (policy.scorers.is_empty(), policy.ranking) {
        (false, _) => "by score",
        (true, Ranking::SumThenName) => "by name",
        (true, Ranking::PartsThenNameDescending) => "by name, descending",
    }
}
