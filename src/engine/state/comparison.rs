//! Two states, compared once: the files that differ, and the workloads that put the files there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::State;
use berth_base::model::{ContentId, Decision, Folder, Key, ObjectId, differences, path};

/// The current state and the next, with all files that differ.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub current: &'a State,
    pub next: &'a State,
    /// By cluster and path.
    pub files: Vec<FileDifference<'a>>,
    /// The owners of places in the current state.
    pub owners: PlaceOwners<'a>,
}

/// A file of a cluster's folder whose content is not the same in both states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDifference<'a> {
    pub cluster: &'a str,
    pub path: Arc<str>,
    pub before: Option<ContentId>,
    pub after: Option<ContentId>,
}

/// The workloads that own each place.
#[derive(Debug)]
pub struct PlaceOwners<'a> {
    by_path: BTreeMap<String, Vec<Owner<'a>>>,
}

/// A workload with an object that may be at a place.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub object: &'a ObjectId,
    pub decision: &'a Decision,
}

impl<'a> Comparison<'a> {
    pub fn of(current: &'a State, next: &'a State) -> Comparison<'a> {
        let empty = Folder::new();
        let clusters: BTreeSet<&String> = current.folders.keys().chain(next.folders.keys()).collect();
        let mut files = Vec::new();
        for cluster in clusters {
            let [before, after] = [current, next].map(|state| state.folders.get(cluster).unwrap_or(&empty));
            files.extend(differences(before, after).map(|one| FileDifference {
                cluster,
                path: one.path.clone(),
                before: one.before,
                after: one.after,
            }));
        }
        Comparison { current, next, files, owners: PlaceOwners::of(&current.decisions) }
    }

    /// Returns the files that the next state no longer has.
    pub fn removed(&self) -> impl Iterator<Item = &FileDifference<'a>> {
        self.files.iter().filter(|file| file.after.is_none())
    }
}

impl<'a> PlaceOwners<'a> {
    pub fn of(decisions: &'a BTreeMap<Key, Decision>) -> PlaceOwners<'a> {
        let mut by_path: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for decision in decisions.values() {
            for object in &decision.objects {
                by_path.entry(path::of_object(object)).or_default().push(Owner { object, decision });
            }
        }
        PlaceOwners { by_path }
    }

    /// Returns the first workload that picked the cluster for a place.
    pub fn first(&self, cluster: &str, path: &str) -> Option<Owner<'a>> {
        self.claims(path).iter().find(|owner| owner.decision.has(cluster)).copied()
    }

    /// Returns the workloads that put the object there. A workload whose copy failed counts only where no
    /// other one has a copy.
    pub fn holders(&self, cluster: &str, path: &str) -> Vec<Owner<'a>> {
        let served = self.claims(path).iter().filter(|owner| owner.decision.serves(cluster));
        let (failed, sound): (Vec<_>, Vec<_>) = served.partition(|owner| owner.has_failed(cluster));
        if sound.is_empty() { failed } else { sound }
    }

    /// Reports whether a workload's copy is at a place.
    pub fn owns(&self, key: &Key, cluster: &str, path: &str) -> bool {
        match self.claims(path) {
            [only] => only.key() == key && only.decision.serves(cluster),
            _ => self.holders(cluster, path).iter().any(|holder| holder.key() == key),
        }
    }

    fn claims(&self, path: &str) -> &[Owner<'a>] {
        self.by_path.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the places of one workload's copies that the state really holds.
    pub fn places(&self, key: &Key, state: &'a State) -> Vec<(&'a str, Arc<str>)> {
        let Some(decision) = state.decisions.get(key) else { return Vec::new() };
        let paths: Vec<Arc<str>> =
            decision.objects.iter().map(|object| path::of_object(object).into()).collect();
        let mut places = Vec::new();
        for pick in &decision.picks {
            let Some(folder) = state.folders.get(&pick.cluster) else { continue };
            for path in paths.iter().filter(|path| folder.contains_key(*path)) {
                if self.holders(&pick.cluster, path).iter().any(|holder| holder.decision.key == *key) {
                    places.push((pick.cluster.as_str(), path.clone()));
                }
            }
        }
        places
    }
}

impl<'a> Owner<'a> {
    /// Returns the workload's key.
    pub fn key(&self) -> &'a Key {
        &self.decision.key
    }

    fn has_failed(&self, cluster: &str) -> bool {
        let failures = &self.decision.failures;
        failures.iter().any(|failure| failure.cluster == cluster && failure.object == *self.object)
    }
}
