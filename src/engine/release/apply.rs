//! The workloads' steps → the state that clusters get now: folders, marks in the decisions, facts, releases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{RecordFormat, Releases};
use berth_base::model::{ClusterStatus, ContentId, Decision, Folder, Pick, differences};

use super::advance::{Advance, Fate};
use super::places::{CopySet, Places};
use super::{Given, Released};
use crate::state::State;

const LEAVING: &str = "not picked any more; the removal waits for its turn";

/// Applies all steps to the desired state.
pub(super) fn apply(advances: Vec<Advance>, given: Given<'_>, state: &mut State) -> Released {
    let mut released = Released::default();
    let changes: Vec<Vec<(&String, Change)>> = {
        let (current, desired) = (Places::of(given.current), Places::of(state));
        advances.iter().map(|advance| changes(advance, &current, &desired)).collect()
    };
    let mut by_cluster: BTreeMap<&String, Vec<Change>> = BTreeMap::new();
    for (cluster, change) in changes.into_iter().flatten() {
        by_cluster.entry(cluster).or_default().push(change);
    }
    for (cluster, changes) in by_cluster {
        let before = given.current.folders.get(cluster);
        let folder = state.folders.or_default(cluster);
        match before.filter(|before| becomes(folder, &changes, before)) {
            // The rest of berth sees at once that such a cluster is as before.
            Some(before) => *folder = before.clone(),
            None => changes.into_iter().for_each(|change| match change.content {
                Some(content) => drop(folder.insert(change.path, content)),
                None => drop(folder.remove(&change.path)),
            }),
        }
    }
    let unchanged: BTreeSet<WorkloadName> =
        advances.iter().filter(|advance| keeps_reports(advance, given)).map(name).collect();
    let mut retracted = BTreeSet::new();
    for advance in advances {
        released.diagnostics.extend(advance.diagnostics.iter().cloned());
        released.next_change = released.next_change.into_iter().chain(advance.next_change).min();
        mark(&advance, given, state);
        let name = name(&advance);
        for (cluster, report) in advance.reports {
            match report {
                Some(report) => drop(fact_of(&cluster, state).copies.insert(name.clone(), report)),
                None => drop(retracted.insert((cluster, name.clone()))),
            }
        }
        released.traces.insert(advance.key.clone(), advance.trace);
        state.releases.extend(advance.releases.map(|releases| (advance.key, releases.into())));
    }
    keep_reports(&unchanged, &retracted, given, state);
    released
}

fn name(advance: &Advance) -> WorkloadName {
    WorkloadName::of(&advance.key)
}

fn keeps_reports(advance: &Advance, given: Given<'_>) -> bool {
    let is_as_before =
        |releases: &Releases| given.current.releases.get(&advance.key).is_some_and(|one| **one == *releases);
    let releases = advance.releases.as_ref();
    releases.is_some_and(|releases| releases.format >= RecordFormat::Second && is_as_before(releases))
}

/// Keeps the last reports from clusters that lost their copies until the record changes: to drop them is no reason
/// for a publication. One that was retracted does not stay.
fn keep_reports(
    unchanged: &BTreeSet<WorkloadName>,
    retracted: &BTreeSet<(String, WorkloadName)>,
    given: Given<'_>,
    state: &mut State,
) {
    let facts = given.current.facts.iter();
    for (cluster, earlier) in facts.filter(|(cluster, _)| given.fleet.clusters.contains_key(*cluster)) {
        for (name, report) in earlier.copies.iter().filter(|(name, _)| unchanged.contains(*name)) {
            let is_known = state.facts.get(cluster).is_some_and(|fact| fact.copies.contains_key(name));
            if !is_known && !retracted.contains(&(cluster.clone(), name.clone())) {
                fact_of(cluster, state).copies.insert(name.clone(), report.clone());
            }
        }
    }
}

fn fact_of<'s>(cluster: &str, state: &'s mut State) -> &'s mut ClusterStatus {
    let new = || ClusterStatus { cluster: cluster.to_owned(), ..ClusterStatus::default() };
    state.facts.or_insert_with(cluster, || new().into())
}

/// Reports whether these changes make one folder another one.
fn becomes(folder: &Folder, changes: &[Change], other: &Folder) -> bool {
    changes.iter().all(|change| other.get(&change.path) == change.content.as_ref())
        && differences(folder, other).all(|one| changes.iter().any(|change| change.path == *one.path))
}

/// A place in a cluster's folder whose content is not the desired one.
struct Change {
    path: Arc<str>,
    content: Option<ContentId>,
}

fn changes<'a>(
    advance: &'a Advance,
    current: &Places<'_>,
    desired: &Places<'_>,
) -> Vec<(&'a String, Change)> {
    let key = &advance.key;
    let (had, wanted) = (current.of_workload(key), desired.of_workload(key));
    let mut changes = Vec::new();
    for (cluster, fate) in &advance.fates {
        let instead: CopySet = match fate {
            Fate::Desired => continue,
            Fate::Stays | Fate::Leaves => had.copies(cluster),
            Fate::Gets(copies) => copies.clone(),
            Fate::Waits => CopySet::new(),
        };
        let own = wanted.copies(cluster);
        let stays: BTreeSet<&Arc<str>> = instead.iter().map(|(path, _)| path).collect();
        let gone = own.iter().filter(|(path, _)| !stays.contains(path));
        changes.extend(gone.map(|(path, _)| (cluster, Change { path: path.clone(), content: None })));
        let folder = desired.state.folders.get(cluster);
        for (path, content) in instead {
            // Another workload's copy is there already: it wins, as between any two.
            let is_theirs = folder.is_some_and(|folder| folder.contains_key(&path))
                && !own.iter().any(|(mine, _)| *mine == path);
            if !is_theirs {
                changes.push((cluster, Change { path, content: Some(content) }));
            }
        }
    }
    changes
}

/// Marks the picks that wait, adds those that leave, and the objects that clusters still have.
fn mark(advance: &Advance, given: Given<'_>, state: &mut State) {
    let before = given.current.decisions.get(&advance.key);
    let Some(decision) = state.decisions.get_mut(&advance.key) else { return };
    let mut picks: Vec<Pick> = decision.picked().cloned().collect();
    for pick in &mut picks {
        pick.pending = advance.fates.get(&pick.cluster) == Some(&Fate::Waits);
    }
    let leaves = |pick: &&Pick| advance.fates.get(&pick.cluster) == Some(&Fate::Leaves);
    let leaving = before.into_iter().flat_map(|before| before.picks.iter()).filter(leaves);
    picks.extend(leaving.map(|pick| match pick.held {
        true => pick.clone(),
        false => Pick { leaving: true, reason: LEAVING.to_owned(), ..pick.clone() },
    }));
    picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    if *decision.picks != picks {
        let same = before.map(|before| &before.picks).filter(|before| ***before == picks);
        decision.picks = same.cloned().unwrap_or_else(|| picks.into());
    }
    let is_removing = advance.releases.as_ref().is_some_and(|releases| !releases.removing.is_empty());
    if is_removing || advance.fates.values().any(|fate| !matches!(fate, Fate::Desired)) {
        keep_objects(decision, before);
    }
}

/// Lets the decision name the objects of all releases that clusters have.
fn keep_objects(decision: &mut Decision, before: Option<&Decision>) {
    decision.objects.extend(before.into_iter().flat_map(|before| before.objects.iter().cloned()));
    decision.objects.sort();
    decision.objects.dedup();
}
