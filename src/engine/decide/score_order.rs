//! The order of scored clusters.

use std::cmp::Ordering;

use berth_base::model::placement::{Policy, Scorer};

/// Part by part, then the name that is greatest.
pub(super) fn by_parts(policy: &Policy, parts: &[Vec<i64>], a: u32, b: u32) -> Ordering {
    let by_parts =
        policy.scorers.iter().zip(parts).map(|(scorer, part)| {
            weighted(scorer, part[b as usize]).cmp(&weighted(scorer, part[a as usize]))
        });
    by_parts.fold(Ordering::Equal, Ordering::then).then(b.cmp(&a))
}

/// Compares two clusters by `first`, which marks clusters that go before others whatever their scores.
/// `first` is empty where none do.
pub(super) fn is_first(first: &[bool], a: u32, b: u32) -> Ordering {
    first.get(b as usize).cmp(&first.get(a as usize))
}

/// Returns what a score adds to the sum.
pub(super) fn weighted(scorer: &Scorer, score: i64) -> i64 {
    scorer.weight.saturating_mul(score)
}
