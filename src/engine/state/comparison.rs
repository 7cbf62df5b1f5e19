//! Two states, compared once: the files that differ, and the workloads that put the files there.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ObjectIndex, State};
use berth_base::model::{ContentId, Decision, Folder, Key, Map, ObjectId, differences, path};

/// The current state and the next.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub current: &'a State,
    pub next: &'a State,
    /// The owners of places in the current state.
    pub owners: PlaceOwners<'a>,
    /// The folder of a cluster that a state does not have.
    nothing: Folder,
}

/// A file of a cluster's folder whose content is not the same in both states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDifference<'a> {
    pub cluster: &'a str,
    pub path: &'a Arc<str>,
    pub before: Option<&'a ContentId>,
    pub after: Option<&'a ContentId>,
}

/// The workloads that own each place.
#[derive(Debug)]
pub struct PlaceOwners<'a> {
    decisions: &'a Map<Key, Decision>,
    /// Made when it is asked for first.
    by_path: OnceCell<Claims>,
}

/// The objects at each path: their workloads, and their places among the workloads' objects.
type Claims = BTreeMap<String, Vec<(Key, usize)>>;

/// A workload with an object that may be at a place.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub object: &'a ObjectId,
    pub decision: &'a Decision,
}

impl<'a> Comparison<'a> {
    pub fn of(current: &'a State, next: &'a State) -> Comparison<'a> {
        Comparison { current, next, owners: PlaceOwners::of(&current.decisions), nothing: Folder::new() }
    }

    /// Returns all files that differ, by cluster and path. They are found anew: a first publication has one for each
    /// copy, too many to be kept.
    pub fn files(&self) -> impl Iterator<Item = FileDifference<'_>> {
        self.current.folders.changes(&self.next.folders).flat_map(|folder| {
            let [before, after] = [folder.before, folder.after].map(|side| side.unwrap_or(&self.nothing));
            differences(before, after).map(|one| FileDifference {
                cluster: folder.key,
                path: one.path,
                before: one.before,
                after: one.after,
            })
        })
    }

    /// Returns the files that the next state no longer has.
    pub fn removed(&self) -> impl Iterator<Item = FileDifference<'_>> {
        self.files().filter(|file| file.after.is_none())
    }
}

impl<'a> PlaceOwners<'a> {
    pub fn of(decisions: &'a Map<Key, Decision>) -> PlaceOwners<'a> {
        PlaceOwners { decisions, by_path: OnceCell::new() }
    }

    /// Returns the owners of these paths alone. The index is one of the decisions.
    pub fn at<'p>(
        decisions: &'a Map<Key, Decision>,
        index: &ObjectIndex,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> PlaceOwners<'a> {
        let paths: BTreeSet<&str> = paths.into_iter().collect();
        let by_path = claims(index.at(paths.iter().copied()), |path| paths.contains(path));
        PlaceOwners { decisions, by_path: by_path.into() }
    }

    /// Returns the workloads that put the object there. A workload whose copy failed counts only where no
    /// other one has a copy.
    pub fn holders(&self, cluster: &str, path: &str) -> Vec<Owner<'a>> {
        let served = self.claims(path).filter(|owner| owner.decision.serves(cluster));
        let (failed, sound): (Vec<_>, Vec<_>) = served.partition(|owner| owner.has_failed(cluster));
        if sound.is_empty() { failed } else { sound }
    }

    /// Reports whether a workload's copy is at a place.
    pub fn owns(&self, key: &Key, cluster: &str, path: &str) -> bool {
        self.holders(cluster, path).iter().any(|holder| holder.key() == key)
    }

    /// Reports whether no other workload has an object for a path.
    pub fn is_alone(&self, key: &Key, path: &str) -> bool {
        matches!(self.by_path().get(path).map(Vec::as_slice), Some([(only, _)]) if only == key)
    }

    fn by_path(&self) -> &Claims {
        self.by_path.get_or_init(|| claims(self.decisions, |_| true))
    }

    /// Returns the workloads with an object for a path, wherever they are placed.
    pub fn claims(&self, path: &str) -> impl Iterator<Item = Owner<'a>> {
        self.by_path().get(path).into_iter().flatten().filter_map(|(key, place)| {
            let decision = self.decisions.get(key)?;
            Some(Owner { object: decision.objects.get(*place)?, decision })
        })
    }

    /// Returns the places of one workload's copies that the state really holds.
    pub fn places(&self, key: &Key, state: &'a State) -> Vec<(&'a str, Arc<str>)> {
        let Some(decision) = state.decisions.get(key) else { return Vec::new() };
        let paths: Vec<Arc<str>> =
            decision.objects.iter().map(|object| path::of_object(object).into()).collect();
        let mut places = Vec::new();
        for pick in &decision.picks {
            let Some(folder) = state.folders.get(&*pick.cluster) else { continue };
            for path in paths.iter().filter(|path| folder.contains_key(*path)) {
                if self.holders(&pick.cluster, path).iter().any(|holder| holder.decision.key == *key) {
                    places.push((&*pick.cluster, path.clone()));
                }
            }
        }
        places
    }
}

fn claims<'d>(
    decisions: impl IntoIterator<Item = (&'d Key, &'d Decision)>,
    counts: impl Fn(&str) -> bool,
) -> Claims {
    let mut claims = Claims::new();
    for (key, decision) in decisions {
        for (place, object) in decision.objects.iter().enumerate() {
            let path = path::of_object(object);
            if counts(&path) {
                claims.entry(path).or_default().push((key.clone(), place));
            }
        }
    }
    claims
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
