//! The effect of a change: the current state compared with the next one, as data, removals first.
//!
//! Pure. Compares ids, never contents, so its cost does not depend on the size of objects.
//!
//! Objects that name a cluster: in a placement, an override, a share of replicas or a list of clusters that
//! retain a field. Such a name outlives its cluster, and takes effect again when a cluster of that name
//! joins.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;

use crate::state::ledger::Place;
use crate::state::{Comparison, FileDifference, ObjectIndex, Owner, PlaceOwners, State, WorkloadClaim};
use berth_base::diag::Pos;
use berth_base::model::placement::{Filter, Rule, Selection, Source};
use berth_base::model::shared::ByAllocation;
use berth_base::model::{Applies, ContentId, Decision, Fleet, Key, ObjectId, Pick, PickCursor, path};

/// Everything that differs between two states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Object changes by the workload that causes them; removals before changes before additions.
    pub workloads: BTreeMap<Key, Vec<ObjectChange>>,
    /// Changes to files that no decision accounts for.
    pub unaccounted: Vec<ObjectChange>,
    /// Placements whose clusters differ, with or without a workload.
    pub placements: BTreeMap<Key, ClusterChange>,
    /// Clusters that lose their last object, and clusters that get their first.
    pub clusters: ClusterChange,
}

/// The change of one object in one cluster. It dereferences to its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectChange {
    /// Shared by the changes of one cluster: a first publication has a change for each copy.
    pub cluster: Arc<str>,
    /// Shared by the equal changes of one object.
    pub details: Arc<ChangeDetails>,
}

/// Everything about a change except the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeDetails {
    pub change: Change,
    /// The path in the cluster's folder.
    pub path: Arc<str>,
    pub object: Option<Arc<ObjectId>>,
    pub before: Option<ContentId>,
    pub after: Option<ContentId>,
}

/// The kind of a change, in the order in which readers must see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    Removed,
    Changed,
    Added,
}

impl Deref for ObjectChange {
    type Target = ChangeDetails;

    fn deref(&self) -> &ChangeDetails {
        &self.details
    }
}

/// Clusters that were added and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClusterChange {
    pub lost: Vec<Arc<str>>,
    pub gained: Vec<Arc<str>>,
}

/// The number of changes of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub removed: usize,
    pub changed: usize,
    pub added: usize,
    /// The affected clusters.
    pub clusters: usize,
}

impl Change {
    pub fn sign(self) -> char {
        match self {
            Change::Removed => '-',
            Change::Changed => '~',
            Change::Added => '+',
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Change::Removed => "removed",
            Change::Changed => "changed",
            Change::Added => "added",
        }
    }
}

impl ObjectChange {
    /// Returns the removal of an object that a cluster has.
    pub fn removal(state: &State, (cluster, object): &Place) -> Option<ObjectChange> {
        let path = path::of_object(object);
        let (path, before) = state.folders.get(cluster)?.get_key_value(path.as_str())?;
        let details = ChangeDetails {
            change: Change::Removed,
            path: path.clone(),
            object: Some(object.clone().into()),
            before: Some(*before),
            after: None,
        };
        Some(ObjectChange { cluster: cluster.as_str().into(), details: details.into() })
    }
}

impl ClusterChange {
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.gained.is_empty()
    }

    fn between(before: Option<&Decision>, after: Option<&Decision>) -> ClusterChange {
        let only_in = |one: Option<&Decision>, other: Option<&Decision>| {
            let mut others = other.map(Decision::cursor);
            let is_other = |pick: &&Pick| !others.as_mut().is_some_and(|others| others.has(&pick.cluster));
            let picks = one.into_iter().flat_map(|one| one.picks.iter());
            picks.filter(is_other).map(|pick| pick.cluster.clone()).collect()
        };
        ClusterChange { lost: only_in(before, after), gained: only_in(after, before) }
    }
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.changes().next().is_none() && self.placements.is_empty() && self.clusters.is_empty()
    }

    pub fn changes(&self) -> impl Iterator<Item = &ObjectChange> {
        self.workloads.values().flatten().chain(&self.unaccounted)
    }

    pub fn counts(&self) -> Counts {
        count(self.changes())
    }

    /// Returns the changes of some workloads and placements in some clusters. Files that no decision accounts
    /// for stay.
    pub fn only(&self, is_wanted: impl Fn(&Key, &str) -> bool) -> Plan {
        let mut plan = self.clone();
        for (key, changes) in &mut plan.workloads {
            changes.retain(|change| is_wanted(key, &change.cluster));
        }
        for (key, change) in &mut plan.placements {
            change.lost.retain(|cluster| is_wanted(key, cluster));
            change.gained.retain(|cluster| is_wanted(key, cluster));
        }
        plan.workloads.retain(|_, changes| !changes.is_empty());
        plan.placements.retain(|_, change| !change.is_empty());
        plan
    }

    /// Returns the changes of one cluster.
    pub fn of_cluster(mut self, cluster: &str) -> Plan {
        for changes in self.workloads.values_mut().chain([&mut self.unaccounted]) {
            changes.retain(|change| *change.cluster == *cluster);
        }
        self.workloads.retain(|_, changes| !changes.is_empty());
        for change in self.placements.values_mut().chain([&mut self.clusters]) {
            change.lost.retain(|name| **name == *cluster);
            change.gained.retain(|name| **name == *cluster);
        }
        self.placements.retain(|_, change| !change.is_empty());
        self
    }
}

/// Counts changes of each sort.
pub fn count<'a>(changes: impl IntoIterator<Item = &'a ObjectChange>) -> Counts {
    let mut counts = Counts::default();
    let mut clusters = Vec::new();
    for change in changes {
        clusters.push(&*change.cluster);
        match change.change {
            Change::Removed => counts.removed += 1,
            Change::Changed => counts.changed += 1,
            Change::Added => counts.added += 1,
        }
    }
    // A workload's changes are already in the order of the clusters, so this sort is cheap.
    clusters.sort();
    clusters.dedup();
    counts.clusters = clusters.len();
    counts
}

/// Compares two states.
pub fn plan(current: &State, next: &State) -> Plan {
    let mut index = ObjectIndex::default();
    index.update(&next.decisions);
    plan_of(&Comparison::of(current, next), &index)
}

/// Returns the differences of two compared states as a plan. `index` is the index of the next decisions.
pub fn plan_of(states: &Comparison<'_>, index: &ObjectIndex) -> Plan {
    let (current, next) = (states.current, states.next);
    let mut by_path: BTreeMap<&str, Vec<FileDifference<'_>>> = BTreeMap::new();
    for file in states.files() {
        by_path.entry(file.path).or_default().push(file);
    }
    let there_after = by_path.iter().filter(|(_, files)| files.iter().any(|file| file.after.is_some()));
    let owners_after = PlaceOwners::at(next, index, there_after.map(|(path, _)| *path));
    let mut workloads: BTreeMap<&Key, Vec<ObjectChange>> = BTreeMap::new();
    let mut unaccounted = Vec::new();
    for (path, files) in by_path {
        let mut after = Claimants::of(&owners_after, path);
        let mut before = None;
        let mut known = BTreeMap::new();
        for file in files {
            let (change, owner) = match (file.before, file.after) {
                (Some(_), None) => {
                    let before = before.get_or_insert_with(|| Claimants::of(&states.owners, path));
                    (Change::Removed, before.first(file.cluster))
                }
                (Some(_), Some(_)) => (Change::Changed, after.first(file.cluster)),
                _ => (Change::Added, after.first(file.cluster)),
            };
            let key = owner.as_ref().map(|owner| owner.key);
            let details = known.entry((key, file.before, file.after)).or_insert_with(|| {
                Arc::new(ChangeDetails {
                    change,
                    path: file.path.clone(),
                    object: owner.as_ref().map(|owner| owner.object.clone()),
                    before: file.before.copied(),
                    after: file.after.copied(),
                })
            });
            let list = key.map_or(&mut unaccounted, |key| workloads.entry(key).or_default());
            list.push(ObjectChange {
                cluster: owner.map_or_else(|| file.cluster.into(), |owner| owner.cluster),
                details: details.clone(),
            });
        }
    }
    for changes in workloads.values_mut().chain([&mut unaccounted]) {
        changes.sort_by(|a, b| (a.change, &a.cluster, &a.path).cmp(&(b.change, &b.cluster, &b.path)));
        changes.shrink_to_fit();
    }
    Plan {
        workloads: workloads.into_iter().map(|(key, changes)| (key.clone(), changes)).collect(),
        unaccounted,
        placements: changed_placements(current, next),
        clusters: changed_clusters(current, next),
    }
}

/// The workloads with an object at one path, queried for clusters in ascending order.
struct Claimants<'a> {
    all: Vec<Claimant<'a>>,
    /// The clusters whose owner the ledger records.
    recorded: BTreeMap<&'a str, Owner<'a>>,
}

struct Claimant<'a> {
    key: &'a Key,
    object: Arc<ObjectId>,
    picks: PickCursor<'a>,
}

/// The workload that placed an object into a cluster.
struct Placing<'a> {
    key: &'a Key,
    object: Arc<ObjectId>,
    cluster: Arc<str>,
}

impl<'a> Claimants<'a> {
    fn of(owners: &PlaceOwners<'a>, path: &str) -> Claimants<'a> {
        let claimant = |claim: WorkloadClaim<'a>| Claimant {
            key: &claim.decision.key,
            object: claim.object.clone().into(),
            picks: claim.decision.cursor(),
        };
        Claimants { all: owners.claims(path).map(claimant).collect(), recorded: owners.recorded(path) }
    }

    /// Returns the first workload that picked the cluster.
    fn first(&mut self, cluster: &str) -> Option<Placing<'a>> {
        if let Some(Owner { key, object }) = self.recorded.get(cluster) {
            return Some(Placing { key, object: (*object).clone().into(), cluster: cluster.into() });
        }
        self.all.iter_mut().find_map(|one| {
            let cluster = one.picks.pick(cluster)?.cluster.clone();
            Some(Placing { key: one.key, object: one.object.clone(), cluster })
        })
    }
}

/// Compares the clusters with objects. Git has no empty folders, so these are ignored wherever a state comes
/// from.
fn changed_clusters(current: &State, next: &State) -> ClusterChange {
    let mut change = ClusterChange::default();
    for one in current.folders.changes(&next.folders) {
        let [had, has] = [one.before, one.after].map(|side| side.is_some_and(|folder| !folder.is_empty()));
        match (had, has) {
            (true, false) => change.lost.push(one.key.as_str().into()),
            (false, true) => change.gained.push(one.key.as_str().into()),
            _ => {}
        }
    }
    change
}

fn changed_placements(current: &State, next: &State) -> BTreeMap<Key, ClusterChange> {
    // Many placements share their picks, both before and after.
    let mut known = BTreeMap::new();
    let mut changed = BTreeMap::new();
    for one in current.decisions.changes(&next.decisions) {
        let lists = [one.before, one.after].map(|side| side.map(|decision| ByAllocation(&decision.picks)));
        let is_same = || one.before.zip(one.after).is_some_and(|(before, after)| before.picks == after.picks);
        let change: &ClusterChange = known.entry(lists).or_insert_with(|| match is_same() {
            true => ClusterChange::default(),
            false => ClusterChange::between(one.before, one.after),
        });
        if !change.is_empty() {
            changed.insert(one.key.clone(), change.clone());
        }
    }
    changed
}

/// A place that names a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    pub by: Key,
    pub at: Pos,
    pub how: &'static str,
}

/// Returns every object that names a cluster, by key.
pub fn mentions(fleet: &Fleet, cluster: &str) -> Vec<Mention> {
    let mut found = BTreeSet::new();
    let mut add = |by: &Key, at: &Pos, how| {
        found.insert(Mention { by: by.clone(), at: at.clone(), how });
    };
    // A filter from another object belongs to that object.
    let named = |filter: &Filter| {
        filter.by.is_none() && matches!(&filter.rule, Rule::Named(names) if names.contains(cluster))
    };
    for placement in fleet.placements.values() {
        let (key, origin) = (&placement.key, &placement.origin);
        match &placement.source {
            Source::Follows(follow) if follow.filters.iter().any(named) => {
                add(key, origin, "placement");
            }
            Source::Follows(_) => {}
            Source::Own(policy) => {
                let exact = matches!(&policy.selection, Selection::Exactly(names) if names.contains(cluster));
                if exact || policy.candidates.iter().chain(&policy.filters).any(named) {
                    add(key, origin, "placement");
                }
                if let Some(division) = &policy.division
                    && let Some((_, at)) = division.shares.get(cluster)
                {
                    add(&division.by, at, "share of replicas");
                }
            }
        }
    }
    for workload in fleet.workloads.values() {
        for one in &workload.overrides {
            let is_named = match &one.clusters {
                Applies::To(name) => name == cluster,
                Applies::AnyOf(_) => false,
                Applies::First(index, all) => {
                    all.get(*index).is_some_and(|one| one.clusters.contains(cluster))
                }
            };
            if is_named {
                add(&one.by, &one.origin, "override");
            }
        }
        let retained = workload.templates.iter().flat_map(|template| &template.retained);
        if retained.filter_map(|one| one.clusters.as_ref()).any(|clusters| clusters.contains(cluster)) {
            add(&workload.key, &workload.origin, "retainReplicas");
        }
    }
    found.into_iter().collect()
}
