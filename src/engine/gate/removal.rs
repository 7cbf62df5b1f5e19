//! Removals: the copies that the current state has and the next has not, by workload.
//!
//! Places count, not owners: an object that another workload puts into the same place has moved, and a copy
//! that two workloads share is removed only with the last of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::state::State;
use berth_base::model::{Decision, Digest, Folder, Key, ObjectId, differences, path};

/// Objects in clusters.
pub type Pairs = BTreeSet<(String, ObjectId)>;

/// Places in clusters' folders.
pub(super) type Places<'a> = BTreeMap<&'a str, Vec<&'a Arc<str>>>;

/// The workloads that own each place.
#[derive(Debug)]
pub(super) struct PlaceOwners<'a> {
    decisions: &'a BTreeMap<Key, Decision>,
    by_path: BTreeMap<String, Vec<(&'a Key, &'a ObjectId)>>,
}

impl<'a> PlaceOwners<'a> {
    pub(super) fn of(state: &'a State) -> PlaceOwners<'a> {
        PlaceOwners::of_decisions(&state.decisions)
    }

    pub(super) fn of_decisions(decisions: &'a BTreeMap<Key, Decision>) -> PlaceOwners<'a> {
        let mut by_path: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (key, decision) in decisions {
            for object in &decision.objects {
                by_path.entry(path::of_object(object)).or_default().push((key, object));
            }
        }
        PlaceOwners { decisions, by_path }
    }

    /// Returns the workloads that put the object there. A workload whose copy failed counts only where no
    /// other one has a copy.
    pub(super) fn holders(&self, cluster: &str, path: &str) -> Vec<(&'a Key, &'a ObjectId)> {
        let claims = self.by_path.get(path).map(Vec::as_slice).unwrap_or_default();
        let placed = |key: &Key| self.decisions.get(key).filter(|decision| decision.serves(cluster));
        let (mut sound, mut failed) = (Vec::new(), Vec::new());
        for (key, object) in claims.iter().copied() {
            let Some(decision) = placed(key) else { continue };
            let has_failed = |failure: &berth_base::model::Failure| {
                failure.cluster == cluster && failure.object == *object
            };
            let list = if decision.failures.iter().any(has_failed) { &mut failed } else { &mut sound };
            list.push((key, object));
        }
        if sound.is_empty() { failed } else { sound }
    }

    /// Returns the places of one workload's copies that the state really holds.
    pub(super) fn places(&self, key: &Key, state: &'a State) -> Vec<(&'a str, Arc<str>)> {
        let Some(decision) = self.decisions.get(key) else { return Vec::new() };
        let paths: Vec<Arc<str>> =
            decision.objects.iter().map(|object| path::of_object(object).into()).collect();
        let mut places = Vec::new();
        for pick in &decision.picks {
            let Some(folder) = state.folders.get(&pick.cluster) else { continue };
            for path in paths.iter().filter(|path| folder.contains_key(*path)) {
                if self.holders(&pick.cluster, path).iter().any(|(holder, _)| *holder == key) {
                    places.push((pick.cluster.as_str(), path.clone()));
                }
            }
        }
        places
    }
}

/// The places of the previous state that are empty in the next.
pub(super) fn gone<'a>(previous: &'a State, next: &State) -> Places<'a> {
    let nothing = Folder::new();
    let mut gone = Places::new();
    for (cluster, before) in &previous.folders {
        let after = next.folders.get(cluster).unwrap_or(&nothing);
        let lost = differences(before, after).filter(|one| one.after.is_none());
        let lost: Vec<&Arc<str>> = lost.filter_map(|one| Some(before.get_key_value(one.path)?.0)).collect();
        if !lost.is_empty() {
            gone.insert(cluster, lost);
        }
    }
    gone
}

/// The places as objects of workloads. A shared copy is in the set of each workload that shared it.
pub(super) fn by_workload<'a>(before: &PlaceOwners<'a>, gone: &Places<'_>) -> BTreeMap<&'a Key, Pairs> {
    let mut removals: BTreeMap<&Key, Pairs> = BTreeMap::new();
    for (cluster, paths) in gone {
        for path in paths {
            for (key, object) in before.holders(cluster, path) {
                removals.entry(key).or_default().insert(((*cluster).to_owned(), object.clone()));
            }
        }
    }
    removals
}

/// Returns the digest of exactly these removals, in any order.
pub fn digest<'a>(pairs: impl IntoIterator<Item = &'a (String, ObjectId)>) -> Digest {
    digest_again(&pairs.into_iter().collect(), 0)
}

/// The digest that approves several removals at once, by the digest of each.
pub fn digest_of_all(digests: &BTreeSet<Digest>) -> Option<Digest> {
    let mut one = digests.iter();
    if let (Some(only), None) = (one.next(), one.next()) {
        return Some(*only);
    }
    let mut hash = Sha256::new();
    digests.iter().for_each(|digest| hash.update(digest.0));
    (!digests.is_empty()).then(|| cut(hash))
}

/// Returns the digest to approve, and those used before. A used digest is replaced by the next one.
pub(super) fn unused_digest(pairs: &Pairs, used: &BTreeSet<Digest>) -> (Digest, Vec<Digest>) {
    let pairs = pairs.iter().collect();
    let mut earlier = Vec::new();
    loop {
        let digest = digest_again(&pairs, earlier.len());
        if !used.contains(&digest) {
            return (digest, earlier);
        }
        earlier.push(digest);
    }
}

fn digest_again(pairs: &BTreeSet<&(String, ObjectId)>, times: usize) -> Digest {
    let mut hash = Sha256::new();
    for (cluster, object) in pairs {
        for part in [cluster.as_str(), &object.group, &object.kind, &object.namespace, &object.name] {
            // The length tells where a part ends, whatever it holds.
            hash.update(part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
    }
    if times > 0 {
        hash.update(times.to_be_bytes());
    }
    cut(hash)
}

fn cut(hash: Sha256) -> Digest {
    let mut digest = Digest([0; 16]);
    for (to, from) in digest.0.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    digest
}
