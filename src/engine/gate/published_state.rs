//! The state to publish: the next state, with the last good form of held workloads put back.
//!
//! A held workload's additions wait with its removals. A workload whose object it would have taken over is
//! held too; otherwise the object would be missing in between.

use std::collections::{BTreeMap, BTreeSet};

use super::removal::PlaceOwners;
use super::{Question, Why};
use crate::state::State;
use berth_base::model::Key;

/// Merges both states; adds workloads to `held` that must wait with the others.
pub(super) fn merge(
    question: &Question<'_>,
    before: &PlaceOwners<'_>,
    held: &mut BTreeMap<Key, Vec<Why>>,
) -> State {
    let after = PlaceOwners::of(question.next);
    loop {
        let mut state = question.next.clone();
        let mut tied = Vec::new();
        withdraw(question, before, &after, held, &mut state, &mut tied);
        if tied.is_empty() {
            put_back(question, before, held, &mut state);
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

/// Takes out the additions of held workloads. Notes the workloads whose objects they would have taken over.
fn withdraw(
    question: &Question<'_>,
    before: &PlaceOwners<'_>,
    after: &PlaceOwners<'_>,
    held: &BTreeMap<Key, Vec<Why>>,
    state: &mut State,
    tied: &mut Vec<(Key, Key)>,
) {
    for key in held.keys() {
        for (cluster, path) in after.places(key, question.next) {
            let others = after.holders(cluster, &path);
            if others.iter().any(|(holder, _)| !held.contains_key(*holder)) {
                continue;
            }
            let earlier = question.previous.folders.get(cluster).and_then(|folder| folder.get(&path));
            let holders: BTreeSet<&Key> = match earlier {
                Some(_) => before.holders(cluster, &path).into_iter().map(|(holder, _)| holder).collect(),
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
}

fn put_back(
    question: &Question<'_>,
    before: &PlaceOwners<'_>,
    held: &BTreeMap<Key, Vec<Why>>,
    state: &mut State,
) {
    for key in held.keys() {
        match question.previous.decisions.get(key) {
            Some(decision) => state.decisions.insert(key.clone(), decision.clone()),
            None => state.decisions.remove(key),
        };
        for (cluster, path) in before.places(key, question.previous) {
            let content = question.previous.folders.get(cluster).and_then(|folder| folder.get(&path));
            let folder = match state.folders.get_mut(cluster) {
                Some(folder) => folder,
                None => state.folders.entry(cluster.to_owned()).or_default(),
            };
            folder.extend(content.map(|content| (path, *content)));
        }
    }
}
