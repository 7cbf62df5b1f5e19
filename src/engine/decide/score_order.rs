//! The order of scored clusters.

use std::cmp::Ordering;

use super::case::Case;
use super::cluster_table::Row;
use berth_base::model::placement::{Policy, Ranking, Scorer};

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
    pub(super) fn new(case: &Case<'_>, passed: &'s [Row], parts: &'s mut [Vec<i64>]) -> Scored<'s> {
        let is_earlier = |row: &Row| case.current_rows.binary_search(row).is_ok();
        let first = if case.is_uncertain { passed.iter().map(is_earlier).collect() } else { Vec::new() };
        Scored { passed, parts, first }
    }

    /// Returns the number of clusters that go first.
    pub(super) fn first_count(&self) -> usize {
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
