//! The workloads' steps → the state that clusters get now: folders, marks in the decisions, facts, releases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::advance::{Advance, Outcome};
use super::copies::{CopySet, OwnedPlaces};
use super::{ReleaseInputs, Released};
use crate::state::State;
use crate::state::ledger::{CopyOwner, Place};
use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Releases};
use berth_base::model::{
    ClusterStatus, ContentId, Decision, Folder, FolderEntry, Key, ObjectId, Pick, PickDetails, Shared,
    differences, path,
};
use berth_base::text::SharedValues;

const LEAVING: &str = "no longer picked; the removal waits for its turn";

/// Applies all steps to the desired state.
pub(super) fn apply(advances: Vec<Advance>, given: ReleaseInputs<'_>, state: &mut State) -> Released {
    let mut released = Released::default();
    let (folders, owners) = folders(&advances, given, state);
    state.folders.extend(folders);
    released.owners = owners;
    let unchanged: BTreeSet<WorkloadName> =
        advances.iter().filter(|advance| keeps_reports(advance, given)).map(name).collect();
    let mut reports: Vec<Report> = Vec::new();
    for advance in advances {
        released.diagnostics.extend(advance.diagnostics.iter().cloned());
        released.next_change = released.next_change.into_iter().chain(advance.next_change).min();
        mark(&advance, given, state);
        let name = name(&advance);
        reports.extend(advance.reports.into_iter().map(|(cluster, one)| (cluster, name.clone(), one)));
        released.traces.insert(advance.key.clone(), advance.trace);
        state.releases.extend(advance.releases.map(|releases| (advance.key, releases.into())));
    }
    reports.extend(kept_reports(&unchanged, &reports, given));
    add_reports(reports, given, state);
    released
}

/// A report on a workload from a cluster, for the facts.
type Report = (String, WorkloadName, CopyReport);

/// Returns the changed folders, and the owners of the places that several workloads name there.
fn folders(
    advances: &[Advance],
    given: ReleaseInputs<'_>,
    state: &State,
) -> (Vec<(String, Folder)>, BTreeMap<Place, CopyOwner>) {
    let (current, desired) = (OwnedPlaces::of(given.current), OwnedPlaces::of(state));
    let mut changes: Vec<(&String, PlaceChange)> = Vec::new();
    for advance in advances {
        changes.extend(changes_of(advance, &current, &desired));
    }
    changes.sort_by_key(|(cluster, _)| *cluster);
    let (mut before, mut wanted) = (given.current.folders.cursor(), state.folders.cursor());
    let mut entries: SharedValues<FolderEntry> = SharedValues::default();
    let folder = |changes: &[(&String, PlaceChange)]| {
        let cluster = changes.first()?.0;
        let mut folder = wanted.get(cluster).cloned().unwrap_or_default();
        let changes = settle(changes, &folder);
        match before.get(cluster).filter(|before| becomes(&folder, &changes, before)) {
            // A shared folder lets later parts see at once that the cluster is unchanged.
            Some(before) => folder = before.clone(),
            None => changes.into_iter().for_each(|(path, content)| match content {
                Some(content) => drop(folder.put(entries.of((path.clone(), content)))),
                None => drop(folder.take(path)),
            }),
        }
        Some((cluster.clone(), folder))
    };
    let folders = changes.chunk_by(|(one, _), (next, _)| one == next).filter_map(folder).collect();
    (folders, find(advances, &current, &desired))
}

/// The contents of a folder's changed paths.
type Settled<'c> = BTreeMap<&'c Arc<str>, Option<ContentId>>;

/// Returns the changes of a cluster's desired folder. A kept copy yields to the desired copy of another
/// workload, unless that workload's turn has not come.
fn settle<'c>(changes: &'c [(&String, PlaceChange)], folder: &Folder) -> Settled<'c> {
    let own = changes.iter().filter(|(_, change)| change.is_desired);
    let mut settled: Settled<'c> = own.map(|(_, change)| (&change.path, change.content)).collect();
    for (_, change) in changes.iter().filter(|(_, change)| !change.is_desired) {
        let is_free = match settled.get(&change.path) {
            Some(content) => content.is_none(),
            None => !folder.contains_key(&change.path),
        };
        if is_free {
            settled.insert(&change.path, change.content);
        }
    }
    settled
}

fn name(advance: &Advance) -> WorkloadName {
    WorkloadName::of(&advance.key)
}

fn keeps_reports(advance: &Advance, given: ReleaseInputs<'_>) -> bool {
    let is_as_before =
        |releases: &Releases| given.current.releases.get(&advance.key).is_some_and(|one| **one == *releases);
    advance.releases.as_ref().is_some_and(is_as_before)
}

/// Returns the last reports from clusters that lost their copies. They stay until the record changes, because
/// dropping them is no reason for a publication.
fn kept_reports(
    unchanged: &BTreeSet<WorkloadName>,
    reports: &[Report],
    given: ReleaseInputs<'_>,
) -> Vec<Report> {
    let said: BTreeSet<(&String, &WorkloadName)> =
        reports.iter().map(|(cluster, name, _)| (cluster, name)).collect();
    let mut clusters = given.fleet.clusters.cursor();
    let mut kept = Vec::new();
    for (cluster, earlier) in &given.current.facts {
        let lost = |name: &WorkloadName| unchanged.contains(name) && !said.contains(&(cluster, name));
        for (name, report) in earlier.copies.iter().filter(|(name, _)| lost(name)) {
            if clusters.get(cluster).is_some() {
                kept.push((cluster.clone(), name.clone(), report.clone()));
            }
        }
    }
    kept
}

/// Adds the reports that were read to the facts.
fn add_reports(mut reports: Vec<Report>, given: ReleaseInputs<'_>, state: &mut State) {
    reports.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let (mut before, mut now) = (given.current.facts.cursor(), state.facts.cursor());
    let mut facts: Vec<(String, Shared<ClusterStatus>)> = Vec::new();
    for reports in reports.chunk_by(|(one, ..), (next, ..)| one == next) {
        let Some((cluster, ..)) = reports.first() else { continue };
        let (before, now) = (before.get(cluster), now.get(cluster));
        let is_as_before = |before: &&Shared<ClusterStatus>| {
            before.copies.len() == reports.len()
                && reports.iter().all(|(_, name, report)| before.copies.get(name) == Some(report))
                && now.map_or(before.says_copies_alone(), |now| is_same_beside_copies(before, now))
        };
        let fact = match before.filter(is_as_before) {
            // A shared fact lets later parts see at once that it is unchanged.
            Some(before) => before.clone(),
            None => {
                let new = || ClusterStatus { cluster: cluster.clone(), ..ClusterStatus::default() }.into();
                let mut fact = now.cloned().unwrap_or_else(new);
                let said = reports.iter().map(|(_, name, report)| (name.clone(), report.clone()));
                fact.copies.extend(said);
                fact
            }
        };
        facts.push((cluster.clone(), fact));
    }
    state.facts.extend(facts);
}

fn is_same_beside_copies(before: &ClusterStatus, now: &ClusterStatus) -> bool {
    now.copies.is_empty() && *now == ClusterStatus { copies: BTreeMap::new(), ..before.clone() }
}

/// Reports whether a folder with these changes equals the other folder.
fn becomes(folder: &Folder, changes: &Settled<'_>, other: &Folder) -> bool {
    changes.iter().all(|(path, content)| other.get(*path) == content.as_ref())
        && differences(folder, other).all(|one| changes.contains_key(one.path))
}

/// A place in a cluster's folder whose content differs from the desired one.
struct PlaceChange {
    path: Arc<str>,
    content: Option<ContentId>,
    /// The desired state has a copy of the workload here.
    is_desired: bool,
}

fn changes_of<'a>(
    advance: &'a Advance,
    current: &OwnedPlaces<'_>,
    desired: &OwnedPlaces<'_>,
) -> Vec<(&'a String, PlaceChange)> {
    let key = &advance.key;
    let (mut had, mut wanted) = (current.of_workload(key), desired.of_workload(key));
    let mut changes = Vec::new();
    for (cluster, outcome) in &advance.outcomes {
        let instead: CopySet = match outcome {
            Outcome::Desired => continue,
            Outcome::Stays | Outcome::Leaves => had.copies(cluster),
            Outcome::Gets(copies) => copies.clone(),
            Outcome::Waits => CopySet::new(),
        };
        let own = wanted.copies(cluster);
        if own == instead {
            continue;
        }
        let stays = |path: &Arc<str>| instead.iter().any(|(stays, _)| stays == path);
        let gone = own.iter().filter(|(path, _)| !stays(path));
        let gone = gone.map(|(path, _)| PlaceChange { path: path.clone(), content: None, is_desired: true });
        changes.extend(gone.map(|change| (cluster, change)));
        for (path, content) in instead {
            let is_desired = own.iter().any(|(mine, _)| *mine == path);
            changes.push((cluster, PlaceChange { path, content: Some(content), is_desired }));
        }
    }
    changes
}

/// Marks pending picks, adds clusters that leave, and adds the objects that clusters still have.
fn mark(advance: &Advance, given: ReleaseInputs<'_>, state: &mut State) {
    let before = given.current.decisions.get(&advance.key);
    let Some(decision) = state.decisions.get_mut(&advance.key) else { return };
    let has_outcome = |wanted: Outcome| {
        let outcomes = advance.outcomes.iter().filter(move |(_, outcome)| **outcome == wanted);
        outcomes.map(|(cluster, _)| cluster.as_str()).collect::<BTreeSet<_>>()
    };
    let (waiting, leaving) = (has_outcome(Outcome::Waits), has_outcome(Outcome::Leaves));
    let is_marked = |pick: &Pick| !pick.leaving && pick.pending == waiting.contains(&*pick.cluster);
    if !leaving.is_empty() || !decision.picks.iter().all(is_marked) {
        let mut picks: Vec<Pick> = decision.picked().cloned().collect();
        for pick in &mut picks {
            let waits = waiting.contains(&*pick.cluster);
            if pick.pending != waits {
                pick.pending = waits;
            }
        }
        let leaving = before
            .into_iter()
            .flat_map(|before| before.picks.iter())
            .filter(|pick| leaving.contains(&*pick.cluster));
        let leave = |details: &mut PickDetails| {
            details.leaving = true;
            LEAVING.clone_into(&mut details.reason);
        };
        picks.extend(leaving.map(|pick| match pick.held {
            true => pick.clone(),
            false => pick.clone().with(leave),
        }));
        picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        Pick::share_details(&mut picks);
        let same = before.map(|before| &before.picks).filter(|before| ***before == picks);
        decision.picks = same.cloned().unwrap_or_else(|| picks.into());
    }
    if advance.keeps_objects() {
        keep_objects(decision, before, &advance.earlier_objects);
    }
}

/// Adds the objects of all releases that clusters have to the decision.
fn keep_objects(decision: &mut Decision, before: Option<&Decision>, earlier: &BTreeSet<ObjectId>) {
    let before = before.into_iter().flat_map(|before| &before.objects);
    decision.objects.extend(before.chain(earlier).cloned());
    decision.objects.sort();
    decision.objects.dedup();
}

/// Returns the places that several workloads name, each with the workload whose copy is there. `desired` has
/// the decisions without any marks.
pub(super) fn find(
    advances: &[Advance],
    current: &OwnedPlaces<'_>,
    desired: &OwnedPlaces<'_>,
) -> BTreeMap<Place, CopyOwner> {
    let outcomes = advances.iter().map(|advance| (&advance.key, &advance.outcomes)).collect();
    let copies = CopiesAfterSteps { current, desired, outcomes };
    let mut found = BTreeMap::new();
    for advance in advances.iter().filter(|advance| advance.keeps_objects()) {
        for object in copies.objects(advance) {
            let path = path::of_object(object);
            let others = copies.others(&advance.key, &path);
            if others.is_empty() {
                continue;
            }
            let serves = advance.outcomes.iter().filter(|(_, outcome)| **outcome != Outcome::Waits);
            for (cluster, _) in serves.filter(|(cluster, _)| !copies.is_there(&advance.key, cluster, &path)) {
                let mut owners = others.iter().filter(|other| copies.is_there(other, cluster, &path));
                if let (Some(owner), None) = (owners.next(), owners.next()) {
                    let owner = CopyOwner::by_release((*owner).clone());
                    found.insert((cluster.clone(), object.clone()), owner);
                }
            }
        }
    }
    found
}

/// The copies that workloads have after their steps.
struct CopiesAfterSteps<'c> {
    current: &'c OwnedPlaces<'c>,
    desired: &'c OwnedPlaces<'c>,
    outcomes: BTreeMap<&'c Key, &'c BTreeMap<String, Outcome>>,
}

impl<'c> CopiesAfterSteps<'c> {
    /// Returns the objects of a workload that its decision names during the rollout.
    fn objects(&self, advance: &'c Advance) -> BTreeSet<&'c ObjectId> {
        let decisions = [self.current, self.desired].map(|places| places.state.decisions.get(&advance.key));
        let named = decisions.into_iter().flatten().flat_map(|decision| &decision.objects);
        named.chain(&advance.earlier_objects).collect()
    }

    fn others(&self, key: &Key, path: &str) -> BTreeSet<&'c Key> {
        let claims = [self.current, self.desired].into_iter().flat_map(|places| places.owners.claims(path));
        claims.map(|claim| &claim.decision.key).filter(|other| *other != key).collect()
    }

    /// Reports whether a place has a workload's own copy: the desired copy, or a kept copy where no other
    /// workload has the desired one.
    fn is_there(&self, key: &Key, cluster: &str, path: &str) -> bool {
        let is_desired = |key: &Key| self.desired.owners.owns(key, cluster, path);
        let stays = match self.outcomes.get(key).map(|outcomes| outcomes.get(cluster)) {
            None | Some(Some(Outcome::Desired)) => return is_desired(key),
            Some(None | Some(Outcome::Waits)) => false,
            Some(Some(Outcome::Stays | Outcome::Leaves)) => self.current.owners.uses(key, cluster, path),
            Some(Some(Outcome::Gets(copies))) => copies.iter().any(|(gets, _)| **gets == *path),
        };
        let has_it = |other: &&Key| is_desired(other) && self.is_there(other, cluster, path);
        stays && (is_desired(key) || !self.others(key, path).iter().any(has_it))
    }
}
