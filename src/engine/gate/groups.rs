//! Workloads that are held or permitted as one: an object moves between them, or a rollout policy puts them together.

use std::collections::{BTreeMap, BTreeSet};

use super::question::Question;
use crate::state::PlaceOwners;
use berth_base::model::Key;

/// Returns the groups of these workloads, each with all that goes along.
pub(super) fn of<'k>(question: &Question<'_>, keys: impl Iterator<Item = &'k Key>) -> Vec<BTreeSet<Key>> {
    let mut keys = keys.peekable();
    if keys.peek().is_none() {
        return Vec::new();
    }
    let ties = ties(question);
    let mut groups: Vec<BTreeSet<Key>> = Vec::new();
    for key in keys {
        if groups.iter().any(|group| group.contains(key)) {
            continue;
        }
        let (mut group, mut next) = (BTreeSet::new(), vec![key.clone()]);
        while let Some(one) = next.pop() {
            if group.insert(one.clone()) {
                next.extend(ties.get(&one).into_iter().flatten().cloned());
                next.extend((question.together)(&one));
            }
        }
        groups.push(group);
    }
    groups
}

/// Finds the workloads that objects tie: a file that changes, and that another workload has before or after.
fn ties(question: &Question<'_>) -> BTreeMap<Key, BTreeSet<Key>> {
    let after = PlaceOwners::of(question.desired());
    let mut ties: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
    let mut last: Option<BTreeSet<&Key>> = None;
    for file in question.states.files().filter(|file| file.before.is_some() && file.after.is_some()) {
        let had = question.states.owners.holders(file.cluster, file.path);
        let has = after.holders(file.cluster, file.path);
        let all: BTreeSet<&Key> = had.into_iter().chain(has).map(|owner| owner.key).collect();
        if all.len() < 2 || last.as_ref() == Some(&all) {
            continue;
        }
        for key in &all {
            ties.entry((*key).clone()).or_default().extend(all.iter().map(|key| (*key).clone()));
        }
        last = Some(all);
    }
    ties
}
