//! Clusters that differ between two passes → the placements whose decisions may depend on them.
//!
//! Most placements refuse such a cluster in both passes and do not have it: nothing changes for them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::cache::{DecisionInputs, Results};
use super::candidates::CandidateSets;
use super::cluster_table::Table;
use super::digest::{Digests, covers_all};
use super::policy_reads::Reads;
use super::status_overlay::{self, speaks_alike};
use super::taint_times;
use berth_base::model::placement::{Follow, Policy, Rule};
use berth_base::model::{AnyPicked, Cluster, ClusterStatus, Fleet, Key, Map, Shared, Source, Timestamp};

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
    pub(super) fn any_left(&self, later: &Fleet) -> bool {
        self.names.iter().any(|name| !later.clusters.contains_key(*name))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds the placements that a changed cluster may affect to `keys`, the changed placements. `results` are
    /// those of the earlier pass.
    pub(super) fn add_placements(&self, now: &DecisionInputs, results: &Results, keys: &mut BTreeSet<Key>) {
        if self.is_empty() {
            return;
        }
        let (fleet, mut in_force) = (&now.fleet, now.previous.cursor());
        let sides = [&self.before, &self.after].into_iter().filter(|side| !side.clusters.is_empty());
        let sides: Vec<Side<'_, '_>> = sides.map(Side::of).collect();
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
        keys.extend(results.said.keys().cloned());
    }

    /// Reports whether a policy names one of the clusters, or depends on it without a pick of it.
    fn concerns<'f>(&self, policy: &'f Policy, covers_all: bool, sides: &[Side<'_, 'f>]) -> bool {
        self.names.iter().any(|name| names(policy, name))
            || sides.iter().any(|side| side.concerns(policy, covers_all))
    }
}

fn concerns_followed<'f, 'r>(
    follow: &'f Follow,
    fleet: &Fleet,
    results: &'r Results,
    sides: &[Side<'_, 'f>],
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
        let any_new = taint_times::date(&mut clusters, statuses, &reads, *now);
        (!any_new).then_some(Clusters { clusters, now: *now })
    }
}

/// One pass's view of the changed clusters.
struct Side<'t, 'f> {
    table: Table<'t>,
    sets: CandidateSets,
    digests: Digests<'f>,
}

impl<'t, 'f> Side<'t, 'f> {
    fn of(side: &'t Clusters<'_>) -> Side<'t, 'f> {
        let table = Table::new(&side.clusters, side.now);
        Side { table, sets: CandidateSets::default(), digests: Digests::default() }
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
