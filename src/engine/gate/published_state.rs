//! The state to publish: the next state, with the last good form of held workloads put back.
//!
//! A held workload's additions wait with its removals. A workload whose object it would have taken over is
//! held too; otherwise the object would be missing in between.

use std::collections::{BTreeMap, BTreeSet};

use super::verdict::Why;
use crate::state::{Comparison, Owner, PlaceOwners, State};
use berth_base::model::Key;

/// Merges both states; adds workloads to `held` that must wait with the others.
pub(super) fn merge(states: &Comparison<'_>, held: &mut BTreeMap<Key, Vec<Why>>) -> State {
    let after = PlaceOwners::of(&states.next.decisions);
    loop {
        let mut state = states.next.clone();
        let tied = withdraw(states, &after, held, &mut state);
        if tied.is_empty() {
            put_back(states, held, &mut state);
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
    held: &BTreeMap<Key, Vec<Why>>,
    state: &mut State,
) -> Vec<(Key, Key)> {
    let mut tied = Vec::new();
    for key in held.keys() {
        for (cluster, path) in after.places(key, states.next) {
            let others = after.holders(cluster, &path);
            if others.iter().any(|other| !held.contains_key(other.key())) {
                continue;
            }
            let earlier = states.current.folders.get(cluster).and_then(|folder| folder.get(&path));
            let holders: BTreeSet<&Key> = match earlier {
                Some(_) => states.owners.holders(cluster, &path).iter().map(Owner::key).collect(),
                None => BTreeSet::new(),
            };
            if holders.iter().any(|holder| held.contains_key(*holder)) {
                // Put back below.
                continue;
            }
            tied.extend(holders.iter().map(|holder| ((*holder).clone(), key.clone())));
            let Some(folder) = state.folders.get_mut(cluster) else { continue };
            match earlier {
                // No workload owned it before: it stays.
                Some(content) if holders.is_empty() => folder.insert(path, *content),
                _ => folder.remove(&path),
            };
        }
    }
    tied
}

fn put_back(states: &Comparison<'_>, held: &BTreeMap<Key, Vec<Why>>, state: &mut State) {
    for key in held.keys() {
        match states.current.decisions.get(key) {
            Some(decision) => state.decisions.insert(key.clone(), decision.clone()),
            None => state.decisions.remove(key),
        };
        match states.current.releases.get(key) {
            Some(releases) => state.releases.insert(key.clone(), releases.clone()),
            None => state.releases.remove(key),
        };
        for (cluster, path) in states.owners.places(key, states.current) {
            let content = states.current.folders.get(cluster).and_then(|folder| folder.get(&path));
            let folder = match state.folders.get_mut(cluster) {
                Some(folder) => folder,
                None => state.folders.entry(cluster.to_owned()).or_default(),
            };
            folder.extend(content.map(|content| (path, *content)));
        }
    }
}
