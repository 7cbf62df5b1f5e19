//! The state to publish: the step, with the last good form of held workloads and with copies that another
//! workload takes over later.
//!
//! A held workload's additions wait with its removals, unless it is published without its removals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::groups::Apart;
use super::losses;
use super::verdict::Question;
use crate::state::ledger::{CopyOwner, Loss, Place, Places};
use crate::state::{Comparison, Owner, PlaceOwners, State};
use berth_base::model::{ContentId, Key, ObjectId, Pick, PickDetails, path};

/// The reason of a pick that is kept for a held removal.
const HELD: &str = "no longer picked; the removal is held until approved";

/// Returns the step unchanged, for callers without a gate. The ledger keeps the losses of places that still
/// exist.
pub fn without_gate(current: &State, step: &State) -> State {
    let mut ledger = (*current.ledger).clone();
    ledger.losses.retain(|place, loss| !loss.is_pending() || losses::has(step, place));
    ledger.owners.clone_from(&step.ledger.owners);
    ledger.last_releases.extend(step.ledger.last_releases.clone());
    ledger.last_releases.retain(|key, _| !step.releases.contains_key(key));
    State { ledger: ledger.into(), ..step.clone() }
}

/// Puts held parts back into the state that a change leads to: whole workloads, or only the removals.
pub(super) fn merge(
    question: &Question<'_>,
    towards: &State,
    whole: &BTreeSet<&Key>,
    going_on: &Apart<'_>,
) -> State {
    let mut state = towards.clone();
    if !whole.is_empty() {
        withdraw(question.states, towards, whole, &mut state);
        put_back(question.states, whole, &mut state);
    }
    for (key, kept) in going_on {
        keep(question.states, key, &kept.places, &mut state);
    }
    state
}

/// Removes the additions of held workloads.
fn withdraw(states: &Comparison<'_>, towards: &State, held: &BTreeSet<&Key>, state: &mut State) {
    let after = PlaceOwners::of(towards);
    for key in held {
        for (cluster, object) in after.places(key, towards) {
            let path = path::of_object(object);
            let others = after.holders(cluster, &path);
            if others.iter().any(|other| !held.contains(other.key)) {
                continue;
            }
            let earlier = states.current.folders.get(cluster).and_then(|folder| folder.get(path.as_str()));
            let Some(folder) = state.folders.get_mut(cluster) else { continue };
            match earlier {
                // The copies of held workloads are put back below. Files without an owner stay.
                Some(content) => folder.put((path.into(), *content).into()),
                None => folder.take(path.as_str()),
            };
        }
    }
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
        let awaited = states.owners.awaited(key).into_iter();
        for (cluster, object) in awaited.chain(states.owners.places(key, states.current)) {
            put_copy_back(states, cluster, &path::of_object(object), state);
        }
    }
}

/// Puts the held removals of a published workload back, and marks the clusters that keep them.
fn keep(states: &Comparison<'_>, key: &Key, places: &Places, state: &mut State) {
    for (cluster, object) in places {
        put_copy_back(states, cluster, &path::of_object(object), state);
    }
    let (Some(before), Some(decision)) = (states.current.decisions.get(key), state.decisions.get_mut(key))
    else {
        return;
    };
    let clusters: BTreeSet<&str> = places.iter().map(|(cluster, _)| cluster.as_str()).collect();
    let kept = before.picks.iter().filter(|pick| clusters.contains(&*pick.cluster)).cloned();
    let hold = |details: &mut PickDetails| {
        (details.leaving, details.held) = (true, true);
        HELD.clone_into(&mut details.reason);
    };
    let kept = kept.map(|pick| pick.with(hold));
    let others = decision.picks.iter().filter(|pick| !clusters.contains(&*pick.cluster)).cloned();
    let mut picks: Vec<Pick> = others.chain(kept).collect();
    picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    Pick::share_details(&mut picks);
    decision.picks = picks.into();
    if let Some(releases) = state.releases.get_mut(key) {
        releases.removing.retain(|cluster, _| !clusters.contains(cluster.as_str()));
    }
}

/// Keeps each copy that the step lacks and that another workload has in the end, until that workload puts its
/// own copy there. Returns the owners of copies whose owner the decisions do not show. A `lost` place has no
/// heir.
pub(super) fn hand_over(
    question: &Question<'_>,
    held: &BTreeSet<&Key>,
    lost: &BTreeMap<Place, Loss>,
    state: &mut State,
) -> BTreeMap<Place, CopyOwner> {
    let (states, desired) = (question.states, question.desired());
    let mut owners = BTreeMap::new();
    for file in Comparison::of(states.current, state).removed() {
        let has_heir = desired.folders.get(file.cluster).is_some_and(|folder| folder.contains_key(file.path));
        if let Some(owner) = states.owners.holders(file.cluster, file.path).first().filter(|_| has_heir) {
            let place = (file.cluster.to_owned(), owner.object.clone());
            if lost.get(&place).is_none_or(|loss| loss.due.is_some()) {
                owners.insert(place, CopyOwner::until_handed_over(owner.key.clone()));
            }
        }
    }
    for (cluster, object) in owners.keys() {
        put_copy_back(states, cluster, &path::of_object(object), state);
    }
    find_contested(question, held, state, &mut owners);
    owners
}

/// Finds the owners of copies at places of held workloads and at places in the ledgers of the current state
/// and the step. A copy from the step belongs to its owner there, unless that owner is held. Every other copy
/// keeps its owner.
fn find_contested(
    question: &Question<'_>,
    held: &BTreeSet<&Key>,
    state: &State,
    owners: &mut BTreeMap<Place, CopyOwner>,
) {
    let (states, step) = (question.states, question.step);
    let after = PlaceOwners::of(step);
    let recorded = [states.current, step].into_iter().flat_map(|state| state.ledger.owners.keys());
    let mut places: BTreeSet<(&str, &ObjectId)> =
        recorded.map(|(cluster, object)| (cluster.as_str(), object)).collect();
    for key in held {
        places.extend(after.places(key, step));
        places.extend(states.owners.places(key, states.current));
    }
    let named = PlaceOwners::by(&state.decisions);
    for (cluster, object) in places {
        let (place, path) = ((cluster.to_owned(), object.clone()), path::of_object(object));
        let copy = content(state, &place);
        if copy.is_none() || owners.contains_key(&place) {
            continue;
        }
        let mut has = match copy == content(step, &place) {
            true => after.holders(cluster, &path),
            false => Vec::new(),
        };
        has.retain(|owner| !held.contains(owner.key));
        if has.is_empty() {
            has = states.owners.holders(cluster, &path);
        }
        let named = named.holders(cluster, &path);
        let is_named = |owner: &Owner<'_>| named.iter().any(|one| one.key == owner.key);
        if let [only] = has.as_slice()
            && (named.len() > 1 || !is_named(only))
        {
            owners.insert(place, CopyOwner { workload: only.key.clone(), is_handed_over: !is_named(only) });
        }
    }
}

fn content(state: &State, (cluster, object): &Place) -> Option<ContentId> {
    state.folders.get(cluster)?.get(path::of_object(object).as_str()).copied()
}

fn put_copy_back(states: &Comparison<'_>, cluster: &str, path: &str, state: &mut State) {
    let content = states.current.folders.get(cluster).and_then(|folder| folder.get(path));
    let folder = match state.folders.get_mut(cluster) {
        Some(folder) => folder,
        None => state.folders.or_default(cluster),
    };
    folder.extend(content.map(|content| (Arc::from(path), *content).into()));
}
