//! The effects of a step: the workloads and placements that differ in a cluster, and the form of each in a
//! trial.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Effect;
use super::search::Seen;
use crate::plan::plan;
use crate::state::State;
use berth_base::model::{ContentId, Decision, Key, Pick, path};

/// All effects of a step, in order.
#[derive(Debug, Default)]
pub struct Effects {
    list: Vec<Effect>,
    /// The places of the objects of each workload.
    places: BTreeMap<Key, Vec<String>>,
    before: Vec<Signature>,
    after: Vec<Signature>,
}

/// The state of a workload in a cluster: its pick, and the contents of its objects there.
#[derive(Debug, PartialEq, Eq)]
struct Signature {
    pick: Option<(Option<i64>, bool, bool)>,
    contents: Vec<Option<ContentId>>,
}

impl Effects {
    /// Compares the state before a step with the one after it.
    pub fn between(before: &State, after: &State) -> Effects {
        let mut effects: BTreeSet<Effect> = BTreeSet::new();
        for (key, changes) in plan(before, after).workloads {
            let effect = |cluster: Arc<str>| Effect { key: key.clone(), cluster: cluster.to_string() };
            effects.extend(changes.into_iter().map(|change| effect(change.cluster)));
        }
        let keys: BTreeSet<&Key> = before.decisions.keys().chain(after.decisions.keys()).collect();
        for key in keys {
            let [old, new] = [before, after].map(|state| state.decisions.get(key));
            let effect = |cluster: &str| Effect { key: key.clone(), cluster: cluster.to_owned() };
            effects.extend(moved(old, new).into_iter().map(effect));
        }
        let list: Vec<Effect> = effects.into_iter().collect();
        let mut places = BTreeMap::new();
        for effect in &list {
            places.entry(effect.key.clone()).or_insert_with(|| places_of(&effect.key, [before, after]));
        }
        let mut effects = Effects { list, places, before: Vec::new(), after: Vec::new() };
        effects.before = effects.signatures(before).collect();
        effects.after = effects.signatures(after).collect();
        effects
    }

    pub fn iter(&self) -> impl Iterator<Item = &Effect> {
        self.list.iter()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the form of each effect in a state.
    pub fn seen_in(&self, state: &State) -> Vec<Seen> {
        let ends = self.before.iter().zip(&self.after);
        let seen = |(now, (before, after)): (Signature, (&Signature, &Signature))| match now {
            now if now == *after => Seen::After,
            now if now == *before => Seen::Before,
            _ => Seen::Between,
        };
        self.signatures(state).zip(ends).map(seen).collect()
    }

    /// Pairs each effect with its result.
    pub fn each_with<T>(self, results: impl IntoIterator<Item = T>) -> BTreeMap<Effect, T> {
        self.list.into_iter().zip(results).collect()
    }

    fn signatures<'a>(&'a self, state: &'a State) -> impl Iterator<Item = Signature> + 'a {
        self.list.iter().map(move |Effect { key, cluster }| {
            let pick = state.decisions.get(key).and_then(|decision| decision.pick(cluster));
            let folder = state.folders.get(cluster).filter(|_| pick.is_some());
            let places = self.places.get(key).map(Vec::as_slice).unwrap_or_default();
            let content = |place: &String| folder.and_then(|folder| folder.get(place.as_str()).copied());
            Signature { pick: pick.map(shown), contents: places.iter().map(content).collect() }
        })
    }
}

fn shown(pick: &Pick) -> (Option<i64>, bool, bool) {
    (pick.replicas, pick.pending, pick.leaving)
}

/// Returns the clusters that two decisions treat differently.
fn moved<'d>(before: Option<&'d Decision>, after: Option<&'d Decision>) -> BTreeSet<&'d str> {
    if let (Some(before), Some(after)) = (before, after)
        && before.picks.is_same(&after.picks)
    {
        return BTreeSet::new();
    }
    let picks = |decision: Option<&'d Decision>| decision.into_iter().flat_map(|one| one.picks.iter());
    let all: BTreeSet<&str> = picks(before).chain(picks(after)).map(|pick| &*pick.cluster).collect();
    let pick = |decision: Option<&Decision>, cluster: &str| decision?.pick(cluster).map(shown);
    all.into_iter().filter(|cluster| pick(before, cluster) != pick(after, cluster)).collect()
}

fn places_of(key: &Key, states: [&State; 2]) -> Vec<String> {
    let decisions = states.into_iter().filter_map(|state| state.decisions.get(key));
    let places: BTreeSet<String> =
        decisions.flat_map(|decision| &decision.objects).map(path::of_object).collect();
    places.into_iter().collect()
}
