//! The cache between two passes: the results of the last pass, and its inputs. The next pass decides only
//! placements that a change may affect. Losing it costs time only.
//!
//! Clusters that differ between two passes affect the placements whose decisions may depend on them. Most
//! placements refuse such a cluster in both passes and do not have it: nothing changes for them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::candidates::CandidateSets;
use super::cluster_table::Table;
use super::digest::{self, Digests, Reads, covers_all, reads_load};
use super::pass::looks_back;
use super::status_overlay::{self, speaks_alike};
use berth_base::diag::Diagnostic;
use berth_base::model::fleet::Doubt;
use berth_base::model::placement::{Follow, Policy, Retention, Rule};
use berth_base::model::{
    AnyPicked, Cluster, ClusterStatus, Decision, Fleet, Key, Map, Pick, PickDetails, Placement, Shared,
    Source, Timestamp,
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
pub(super) struct PlacementResults {
    pub(super) decisions: Map<Key, Decision>,
    /// The diagnostics of placements that have any.
    pub(super) diagnostics: Map<Key, Vec<Diagnostic>>,
    /// The moments at which time alone changes a verdict.
    pub(super) flips: Map<Key, Timestamp>,
    /// Placements that the next pass must decide again.
    pub(super) unsettled: BTreeSet<Key>,
}

/// The inputs and results of one pass.
#[derive(Clone, Debug)]
pub struct DecisionCache {
    pub(super) inputs: DecisionInputs,
    pub(super) results: PlacementResults,
    pub(super) facts: Map<String, Shared<ClusterStatus>>,
}

/// The results that are still valid, and the placements to decide again.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    pub(super) results: PlacementResults,
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

impl PlacementResults {
    /// Drops the result for a placement.
    pub(super) fn forget(&mut self, key: &Key) {
        let PlacementResults { decisions, diagnostics, flips, unsettled } = self;
        decisions.remove(key);
        diagnostics.remove(key);
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
    placement.into_iter().for_each(|placement| digest::reads_of_placement(placement, &mut reads));
    reads
}

fn rollouts_read_alike(before: &Fleet, after: &Fleet) -> bool {
    let [mut reads_before, mut reads_after] = [Reads::new(), Reads::new()];
    digest::reads_of_rollouts(before, &mut reads_before);
    digest::reads_of_rollouts(after, &mut reads_after);
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

/// The clusters that differ between two passes, as decisions see them in each pass.
pub(super) struct Moved<'i> {
    names: BTreeSet<&'i str>,
    before: Clusters<'i>,
    after: Clusters<'i>,
}

struct Clusters<'i> {
    clusters: Vec<Cow<'i, Cluster>>,
    now: Timestamp,
}

impl<'i> Moved<'i> {
    /// Returns `None` if deciding everything is about as much work, or a taint is new.
    pub(super) fn between(before: &'i DecisionInputs, after: &'i DecisionInputs) -> Option<Moved<'i>> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        names.extend(before.fleet.clusters.changes(&after.fleet.clusters).map(|one| one.key.as_str()));
        names.extend(speaks_otherwise(&before.fleet.statuses, &after.fleet.statuses));
        names.extend(speaks_otherwise(&before.statuses, &after.statuses));
        if names.len() * 2 > after.fleet.clusters.len() {
            return None;
        }
        let before = Clusters::of(before, &names)?;
        let after = Clusters::of(after, &names)?;
        Some(Moved { names, before, after })
    }

    /// Reports whether a cluster of the earlier pass may be missing from a later fleet.
    fn any_left(&self, later: &Fleet) -> bool {
        self.names.iter().any(|name| !later.clusters.contains_key(*name))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds the placements that a changed cluster may affect to `keys`, the changed placements. `results` are
    /// those of the earlier pass.
    fn add_placements(&self, now: &DecisionInputs, results: &PlacementResults, keys: &mut BTreeSet<Key>) {
        if self.is_empty() {
            return;
        }
        let (fleet, mut in_force) = (&now.fleet, now.previous.cursor());
        let sides = [&self.before, &self.after].into_iter().filter(|side| !side.clusters.is_empty());
        let sides: Vec<ChangedClusters<'_, '_>> = sides.map(ChangedClusters::of).collect();
        let mut decisions = results.decisions.cursor();
        let mut picked = AnyPicked::of(&self.names);
        let mut by_digest = BTreeMap::new();
        let mut others = Vec::new();
        for placement in fleet.placements.values().filter(|placement| !keys.contains(&placement.key)) {
            let is_concerned = match (decisions.get(&placement.key), &placement.source) {
                (None, _) => true,
                (Some(decided), Source::Own(policy)) => {
                    let covers_all = covers_all(policy, decided.picks.len());
                    let concerns = || self.concerns(policy, covers_all, &sides);
                    // The decision was not published: the current decision may be valid again.
                    let is_held = in_force.get(&placement.key).map(|one| one.digest) != Some(decided.digest);
                    is_held
                        || picked.by(decided)
                        || match decided.digest {
                            // Equal digests have equal policies, and cover the same clusters.
                            Some(digest) => *by_digest.entry((digest, covers_all)).or_insert_with(concerns),
                            None => concerns(),
                        }
                }
                (Some(_), Source::Follows(follow)) => {
                    concerns_followed(follow, fleet, results, &sides, &mut picked)
                }
            };
            if is_concerned {
                others.push(placement.key.clone());
            }
        }
        keys.extend(others);
        // Diagnostics may name the fleet's clusters, or count them.
        keys.extend(results.diagnostics.keys().cloned());
    }

    /// Reports whether a policy names one of the clusters, or depends on it without a pick of it.
    fn concerns<'f>(&self, policy: &'f Policy, covers_all: bool, sides: &[ChangedClusters<'_, 'f>]) -> bool {
        self.names.iter().any(|name| names(policy, name))
            || sides.iter().any(|side| side.concerns(policy, covers_all))
    }
}

fn concerns_followed<'f, 'r>(
    follow: &'f Follow,
    fleet: &Fleet,
    results: &'r PlacementResults,
    sides: &[ChangedClusters<'_, 'f>],
    picked: &mut AnyPicked<'_, 'r>,
) -> bool {
    let mut followed = follow
        .placements
        .iter()
        .map(|wanted| fleet.find(wanted).and_then(|placement| results.decisions.get(&placement.key)));
    followed.any(|decided| decided.is_none_or(|decided| picked.by(decided)))
        || sides.iter().any(|side| side.digests.flips(&side.table, &follow.filters).is_some())
}

impl<'i> Clusters<'i> {
    fn of(inputs: &'i DecisionInputs, names: &BTreeSet<&str>) -> Option<Clusters<'i>> {
        let DecisionInputs { fleet, statuses, now, .. } = inputs;
        let known = names.iter().filter_map(|name| fleet.clusters.get(*name));
        let mut clusters: Vec<_> =
            known.map(|cluster| status_overlay::overlaid(fleet, statuses, cluster)).collect();
        let is_tainted = |cluster: &Cow<'_, Cluster>| !cluster.taints.is_empty();
        let reads = if clusters.iter().any(is_tainted) { super::reads_of(fleet) } else { Reads::new() };
        let any_new = status_overlay::date_taints(&mut clusters, statuses, &reads, *now);
        (!any_new).then_some(Clusters { clusters, now: *now })
    }
}

/// One pass's view of the changed clusters.
struct ChangedClusters<'t, 'f> {
    table: Table<'t>,
    sets: CandidateSets,
    digests: Digests<'f>,
}

impl<'t, 'f> ChangedClusters<'t, 'f> {
    fn of(side: &'t Clusters<'_>) -> ChangedClusters<'t, 'f> {
        let table = Table::new(&side.clusters, side.now);
        ChangedClusters { table, sets: CandidateSets::default(), digests: Digests::default() }
    }

    /// Reports whether a digest covers one of the clusters, or time changes a verdict on one of them.
    fn concerns(&self, policy: &'f Policy, covers_all: bool) -> bool {
        let open = self.sets.open(&self.table, policy);
        let covered = if covers_all { &open.all } else { &open.passing };
        !covered.rows.is_empty() || self.digests.flips_of(&self.table, &open.all, policy).is_some()
    }
}

/// Reports whether a policy names a cluster, so that its diagnostics depend on the cluster's existence.
fn names(policy: &Policy, cluster: &str) -> bool {
    let mut listed = policy.filters.iter().filter_map(|filter| match &filter.rule {
        Rule::Named(names) => Some(names),
        _ => None,
    });
    listed.any(|names| names.contains(cluster))
        || policy.division.as_ref().is_some_and(|division| division.shares.contains_key(cluster))
}

/// Returns the clusters whose statuses differ for decisions.
fn speaks_otherwise<'s>(
    before: &'s Map<String, Shared<ClusterStatus>>,
    after: &'s Map<String, Shared<ClusterStatus>>,
) -> impl Iterator<Item = &'s str> {
    before.changes(after).filter(|one| !speaks_alike(one.before, one.after)).map(|one| one.key.as_str())
}
