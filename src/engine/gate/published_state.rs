//! The state to publish: the next state, with the last good form of held workloads put back.
//!
//! A held workload's additions wait with its removals, unless it goes on without these. A workload whose object it
//! would have taken over is held too; otherwise the object would be missing in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::apart::{self, Apart};
use super::removal::Pairs;
use super::verdict::Why;
use crate::state::{Comparison, Owner, PlaceOwners, State};
use berth_base::model::{Key, Pick, PickDetails, path};

/// The reason of a pick that stands for a held removal.
const HELD: &str = "not picked any more; the removal waits for an approval";

/// Merges both states; adds workloads to `held` that must wait with the others.
pub(super) fn merge(states: &Comparison<'_>, apart: &Apart<'_>, held: &mut BTreeMap<Key, Vec<Why>>) -> State {
    let after = PlaceOwners::of(&states.next.decisions);
    loop {
        let mut state = states.next.clone();
        let (goes_on, whole): (BTreeSet<&Key>, BTreeSet<&Key>) =
            held.keys().partition(|key| apart::goes_on(apart, key, &held[*key]));
        let tied = withdraw(states, &after, &whole, &mut state);
        if tied.is_empty() {
            put_back(states, &whole, &mut state);
            goes_on.into_iter().for_each(|key| keep(states, key, &apart[key].pairs, &mut state));
            return state;
        }
        for (key, to) in tied {
            let why = Why::HandsOver { to };
            let reasons = held.entry(key).or_default();
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
    }
}

/// Takes out the additions of held workloads. Returns the workloads whose objects they would have taken over, each
/// with the held one.
fn withdraw(
    states: &Comparison<'_>,
    after: &PlaceOwners<'_>,
    held: &BTreeSet<&Key>,
    state: &mut State,
) -> Vec<(Key, Key)> {
    let mut tied = Vec::new();
    for key in held {
        for (cluster, path) in after.places(key, states.next) {
            let others = after.holders(cluster, &path);
            if others.iter().any(|other| !held.contains(other.key())) {
                continue;
            }
            let earlier = states.current.folders.get(cluster).and_then(|folder| folder.get(&path));
            let holders: BTreeSet<&Key> = match earlier {
                Some(_) => states.owners.holders(cluster, &path).iter().map(Owner::key).collect(),
                None => BTreeSet::new(),
            };
            if holders.iter().any(|holder| held.contains(*holder)) {
                // Put back below.
                continue;
            }
            tied.extend(holders.iter().map(|holder| ((*holder).clone(), (*key).clone())));
            let Some(folder) = state.folders.get_mut(cluster) else { continue };
            match earlier {
                // No workload owned it before: it stays.
                Some(content) if holders.is_empty() => folder.put((path, *content).into()),
                _ => folder.take(&path),
            };
        }
    }
    tied
}

fn put_back(states: &Comparison<'_>, held: &BTreeSet<&Key>, state: &mut State) {
    for key in held {
        match states.current.decisions.get(*key) {
            Some(decision) => state.decisions.insert((*key).clone(), decision.clone()),
            None => state.decisions.remove(*key),
        };
        match states.current.releases.get(*key) {
            Some(releases) => state.releases.insert((*key).clone(), releases.clone()),
            None => state.releases.remove(*key),
        };
        for (cluster, path) in states.owners.places(key, states.current) {
            put_copy_back(states, cluster, path, state);
        }
    }
}

/// Puts back what a workload loses that goes on, and marks the clusters that keep it.
fn keep(states: &Comparison<'_>, key: &Key, pairs: &Pairs, state: &mut State) {
    for (cluster, object) in pairs {
        put_copy_back(states, cluster, path::of_object(object).into(), state);
    }
    let (Some(before), Some(decision)) = (states.current.decisions.get(key), state.decisions.get_mut(key))
    else {
        return;
    };
    let clusters: BTreeSet<&str> = pairs.iter().map(|(cluster, _)| cluster.as_str()).collect();
    let kept = before.picks.iter().filter(|pick| clusters.contains(&*pick.cluster)).cloned();
    let hold = |details: &mut PickDetails| {
        (details.leaving, details.held) = (true, true);
        HELD.clone_into(&mut details.reason);
    };
    let kept = kept.map(|pick| pick.with(hold));
    let mut picks: Vec<Pick> = decision.picks.iter().cloned().chain(kept).collect();
    picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    Pick::share_details(&mut picks);
    decision.picks = picks.into();
    if let Some(releases) = state.releases.get_mut(key) {
        releases.removing.retain(|cluster, _| !clusters.contains(cluster.as_str()));
    }
}

fn put_copy_back(states: &Comparison<'_>, cluster: &str, path: Arc<str>, state: &mut State) {
    let content = states.current.folders.get(cluster).and_then(|folder| folder.get(&path));
    let folder = match state.folders.get_mut(cluster) {
        Some(folder) => folder,
        None => state.folders.or_default(cluster),
    };
    folder.extend(content.map(|content| (path, *content).into()));
}
