//! The cache between two passes: the results of the last pass, and its inputs. The next pass decides only
//! placements that a change may affect.
//!
//! Losing it costs time only.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::concern::Moved;
use super::pass::looks_back;
use super::policy_reads::{self, Reads, reads_load};
use berth_base::diag::Diagnostic;
use berth_base::model::fleet::Doubt;
use berth_base::model::placement::Retention;
use berth_base::model::{
    ClusterStatus, Decision, Fleet, Key, Map, Pick, PickDetails, Placement, Shared, Source, Timestamp,
};

/// The inputs of all decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct DecisionInputs {
    pub(super) fleet: Shared<Fleet>,
    pub(super) previous: Map<Key, Decision>,
    /// The members' own statuses.
    pub(super) statuses: Map<String, Shared<ClusterStatus>>,
    pub(super) now: Timestamp,
}

/// The results for each placement.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) decisions: Map<Key, Decision>,
    /// The diagnostics of placements that have any.
    pub(super) said: Map<Key, Vec<Diagnostic>>,
    /// The moments at which time alone changes a verdict.
    pub(super) flips: Map<Key, Timestamp>,
    /// Placements that the next pass must decide again.
    pub(super) unsettled: BTreeSet<Key>,
}

/// The inputs and results of one pass.
#[derive(Clone, Debug)]
pub struct DecisionCache {
    pub(super) inputs: DecisionInputs,
    pub(super) results: Results,
    pub(super) facts: Map<String, Shared<ClusterStatus>>,
}

/// The results that are still valid, and the placements to decide again.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    pub(super) results: Results,
    pub(super) keys: BTreeSet<Key>,
    /// The facts, if they are still valid.
    pub(super) facts: Option<Map<String, Shared<ClusterStatus>>>,
}

impl DecisionInputs {
    /// Reports whether deciding a placement again would only find its decision sticky. Picks name only
    /// clusters of the pass that made them: if no cluster has left since, all of them still exist.
    fn stands(&self, placement: &Placement, decided: &Decision, any_left: bool) -> bool {
        let Some(previous) = self.previous.get(&placement.key) else { return false };
        let Source::Own(policy) = &placement.source else { return false };
        let mut clusters = self.fleet.clusters.keys();
        let mut is_there = |pick: &Pick| clusters.any(|cluster| **cluster == *pick.cluster);
        !looks_back(policy)
            && !matches!(policy.retention, Retention::SamePolicy(_))
            && decided.digest.is_some()
            && (decided.digest, &decided.condition) == (previous.digest, &previous.condition)
            && (&decided.refused, &decided.policy) == (&previous.refused, &previous.policy)
            && (!any_left || decided.picks.iter().all(&mut is_there))
            && (decided.picks.is_same(&previous.picks) || picks_as(decided, previous))
    }
}

/// Reports whether the current picks are the decided ones, apart from picks that only keep a copy.
fn picks_as(decided: &Decision, previous: &Decision) -> bool {
    let mut pairs = decided.picks.iter().zip(previous.picked());
    decided.picks.len() == previous.picked().count()
        && pairs.all(|(one, other)| is_same_but_for_turns(one, other))
}

/// Reports whether two picks are equal, apart from their turns in a rollout.
fn is_same_but_for_turns(one: &Pick, other: &Pick) -> bool {
    let PickDetails { reason, replicas, scores, group, pending: _, leaving: _, held: _ } = &*one.details;
    one.cluster == other.cluster
        && (Arc::ptr_eq(&one.details, &other.details)
            || (reason, replicas, scores, group)
                == (&other.reason, &other.replicas, &other.scores, &other.group))
}

impl Results {
    /// Drops the result for a placement.
    pub(super) fn forget(&mut self, key: &Key) {
        let Results { decisions, said, flips, unsettled } = self;
        decisions.remove(key);
        said.remove(key);
        flips.remove(key);
        unsettled.remove(key);
    }
}

impl DecisionCache {
    /// Returns the results that are still valid, and the placements to decide again. `None`: decide all
    /// placements.
    pub(super) fn reusable(&self, now: &DecisionInputs) -> Option<Rest> {
        let DecisionCache { inputs, results, facts } = self;
        let fleet = &now.fleet;
        if fleet.doubt != Doubt::default() {
            return None;
        }
        if inputs.now > now.now {
            return None;
        }
        let moved = Moved::between(inputs, now)?;
        // Limits may have fractions, so a verdict may change within the second before its flip.
        let is_due = |flips: Timestamp| now.now != inputs.now && now.now.as_second() + 1 >= flips.as_second();
        let mut keys: BTreeSet<Key> = results.unsettled.clone();
        keys.extend(results.flips.iter().filter(|(_, flips)| is_due(**flips)).map(|(key, _)| key.clone()));
        let any_left = moved.any_left(fleet);
        let stands = |key: &Key| {
            let decided = fleet.placements.get(key).zip(results.decisions.get(key));
            decided.is_some_and(|(placement, decided)| now.stands(placement, decided, any_left))
        };
        let previous = inputs.previous.changes(&now.previous).filter(|one| !stands(one.key));
        keys.extend(previous.map(|one| one.key.clone()));
        let mut read_alike = rollouts_read_alike(&inputs.fleet, fleet);
        let mut balances = false;
        for change in inputs.fleet.placements.changes_by(&fleet.placements, Shared::is_same) {
            keys.insert(change.key.clone());
            read_alike &= reads(change.before) == reads(change.after);
            balances |= change.after.is_some_and(|placement| reads_load(placement));
        }
        // From the first balancing placement on, unpublished decisions count as decided, too.
        if balances && !inputs.fleet.placements.values().any(|placement| reads_load(placement)) {
            return None;
        }
        moved.add_placements(now, results, &mut keys);
        keys.extend(following(fleet, &keys));
        let mut results = results.clone();
        keys.iter().for_each(|key| results.forget(key));
        // Placements and rollouts determine which facts exist.
        let facts = (moved.is_empty() && read_alike).then(|| facts.clone());
        Some(Rest { results, keys, facts })
    }
}

fn reads(placement: Option<&Shared<Placement>>) -> Reads<'_> {
    let mut reads = Reads::new();
    placement.into_iter().for_each(|placement| policy_reads::of_placement(placement, &mut reads));
    reads
}

fn rollouts_read_alike(before: &Fleet, after: &Fleet) -> bool {
    let [mut reads_before, mut reads_after] = [Reads::new(), Reads::new()];
    policy_reads::of_rollouts(before, &mut reads_before);
    policy_reads::of_rollouts(after, &mut reads_after);
    reads_before == reads_after
}

/// Returns the placements that follow one of these.
fn following(fleet: &Fleet, keys: &BTreeSet<Key>) -> Vec<Key> {
    if keys.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<(&str, &str, &str)> =
        keys.iter().map(|key| (&*key.kind, &*key.namespace, &*key.name)).collect();
    let follows = |placement: &Placement| match &placement.source {
        Source::Follows(follow) => {
            let mut followed = follow.placements.iter();
            followed
                .any(|one| names.contains(&(one.kind.as_str(), one.namespace.as_str(), one.name.as_str())))
        }
        Source::Own(_) => false,
    };
    fleet.placements.values().filter(|one| follows(one)).map(|one| one.key.clone()).collect()
}
