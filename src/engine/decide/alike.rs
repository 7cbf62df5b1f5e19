//! Placements that are decided alike: with equal policies and decisions before, picks are the same list. Twenty
//! namespaces in all clusters need one decision, not twenty.

use std::collections::BTreeMap;

use berth_base::model::decision::Digest;
use berth_base::model::placement::{Placement, Policy};
use berth_base::model::shared::ByAllocation;
use berth_base::model::{Decision, Key, Map, Pick};
use berth_base::parallel;

/// The list of picks before, and the digest of what the decision read.
type Likeness<'d> = (ByAllocation<'d, Vec<Pick>>, Option<Digest>);

/// Returns for each placement the place of the first that is decided alike: its own where there is none. A policy reads
/// no more of its placement than the decision before.
pub(super) fn firsts(
    placements: &[(&Placement, &Policy)],
    previous: &Map<Key, Decision>,
    may_share: impl Fn(&Placement) -> bool,
) -> Vec<usize> {
    let mut firsts: BTreeMap<Likeness<'_>, (usize, &Decision)> = BTreeMap::new();
    let first = |(place, (placement, policy)): (usize, &(&Placement, &Policy))| {
        // The warnings of a division are its placement's own.
        let may_share = policy.division.is_none() && may_share(placement);
        let Some(before) = previous.get(&placement.key).filter(|_| may_share) else { return place };
        let likeness = (ByAllocation(&before.picks), before.digest);
        let (first, other) = *firsts.entry(likeness).or_insert((place, before));
        let is_alike = first == place || is_decided_as(before, other) && *policy == placements[first].1;
        if is_alike { first } else { place }
    };
    placements.iter().enumerate().map(first).collect()
}

/// Makes the result of each placement: of those that are decided alike, from the result of the first.
pub(super) fn make<R: Send>(
    firsts: &[usize],
    decide: impl Fn(usize) -> R + Sync,
    like: impl Fn(&R, usize) -> R,
) -> Vec<R> {
    let (alone, others): (Vec<usize>, Vec<usize>) =
        (0..firsts.len()).partition(|place| firsts[*place] == *place);
    let results = parallel::map_large(&alone, |place| decide(*place));
    let mut results: BTreeMap<usize, R> = alone.into_iter().zip(results).collect();
    for place in others {
        let result = like(&results[&firsts[place]], place);
        results.insert(place, result);
    }
    results.into_values().collect()
}

/// Reports whether two decisions with the same picks say the same, but for the placements' names and objects.
fn is_decided_as(one: &Decision, other: &Decision) -> bool {
    (one.digest, &one.condition, &one.refused, &one.policy)
        == (other.digest, &other.condition, &other.refused, &other.policy)
}
