//! Two states, compared once: the files that differ, and the workloads that own these files.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ledger::CopyOwner;
use super::{ObjectIndex, State};
use berth_base::model::{ContentId, Decision, Folder, Key, Map, ObjectId, differences, path};

/// The current state and the next.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub current: &'a State,
    pub next: &'a State,
    /// The owners of places in the current state.
    pub owners: PlaceOwners<'a>,
    /// An empty folder, for clusters that a state lacks.
    nothing: Folder,
}

/// A file of a cluster's folder whose content differs between the states.
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
    /// Computed at first use.
    by_path: OnceCell<Claims>,
    /// The places whose owners the decisions do not show, by path and cluster.
    recorded: BTreeMap<String, BTreeMap<&'a str, (&'a ObjectId, &'a CopyOwner)>>,
    /// The copies that another workload takes over at its turn, by the workload that placed them.
    handed_over_by: BTreeMap<&'a Key, Vec<(&'a str, &'a ObjectId)>>,
}

/// The objects at each path: their workloads, and their indexes among the workloads' objects.
type Claims = BTreeMap<String, Vec<(Key, usize)>>;

/// A workload whose copy is at a place.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub key: &'a Key,
    pub object: &'a ObjectId,
}

/// A workload with an object that may be at a place.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadClaim<'a> {
    pub object: &'a ObjectId,
    pub decision: &'a Decision,
}

impl<'a> Comparison<'a> {
    pub fn of(current: &'a State, next: &'a State) -> Comparison<'a> {
        Comparison { current, next, owners: PlaceOwners::of(current), nothing: Folder::new() }
    }

    /// Returns all files that differ, by cluster and path. They are computed each time: a first publication
    /// has one for each copy, too many to keep.
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
    /// Returns the owners in a state.
    pub fn of(state: &'a State) -> PlaceOwners<'a> {
        let mut owners = PlaceOwners::by(&state.decisions);
        for ((cluster, object), owner) in &state.ledger.owners {
            owners.recorded.entry(path::of_object(object)).or_default().insert(cluster, (object, owner));
            if owner.is_handed_over {
                owners.handed_over_by.entry(&owner.workload).or_default().push((cluster, object));
            }
        }
        owners
    }

    /// Returns the owners by decisions alone.
    pub fn by(decisions: &'a Map<Key, Decision>) -> PlaceOwners<'a> {
        let (recorded, handed_over_by) = (BTreeMap::new(), BTreeMap::new());
        PlaceOwners { decisions, by_path: OnceCell::new(), recorded, handed_over_by }
    }

    /// Returns the owners of these paths only. `index` is the index of the state's decisions.
    pub fn at<'p>(
        state: &'a State,
        index: &ObjectIndex,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> PlaceOwners<'a> {
        let paths: BTreeSet<&str> = paths.into_iter().collect();
        let by_path = claims(index.at(paths.iter().copied()), |path| paths.contains(path));
        PlaceOwners { by_path: by_path.into(), ..PlaceOwners::of(state) }
    }

    /// Returns the workloads that own an object in a cluster. A workload whose copy failed counts only if no
    /// other workload has a copy.
    pub fn holders(&self, cluster: &str, path: &str) -> Vec<Owner<'a>> {
        if let Some(recorded) = self.recorded_in(cluster, path) {
            return vec![Owner::of(recorded)];
        }
        let served = self.claims(path).filter(|claim| claim.decision.serves(cluster));
        let (failed, sound): (Vec<_>, Vec<_>) = served.partition(|claim| claim.has_failed(cluster));
        let holders = if sound.is_empty() { failed } else { sound };
        holders.into_iter().map(|claim| Owner { key: &claim.decision.key, object: claim.object }).collect()
    }

    /// Returns the workloads that lose something with a copy: its owners and, if another workload is to take
    /// the object over, that one.
    pub fn losers(&self, cluster: &str, path: &str) -> Vec<Owner<'a>> {
        let mut losers = self.holders(cluster, path);
        if let Some((_, owner)) = self.recorded_in(cluster, path).filter(|(_, owner)| owner.is_handed_over) {
            let claims = self.claims(path).filter(|claim| claim.decision.has(cluster));
            let heirs = claims.map(|claim| Owner { key: &claim.decision.key, object: claim.object });
            losers.extend(heirs.filter(|heir| *heir.key != owner.workload));
        }
        losers
    }

    /// Returns the places whose copies wait until this workload takes them over.
    pub fn awaited(&self, key: &Key) -> Vec<(&'a str, &'a ObjectId)> {
        let Some(decision) = self.decisions.get(key) else { return Vec::new() };
        let recorded =
            decision.objects.iter().filter_map(|object| self.recorded.get(&path::of_object(object)));
        let waiting = recorded.flatten().filter(|(cluster, (_, owner))| {
            owner.is_handed_over && owner.workload != *key && decision.has(cluster)
        });
        waiting.map(|(cluster, (object, _))| (*cluster, *object)).collect()
    }

    /// Returns the owners of an object that the ledger records, by cluster.
    pub fn recorded(&self, path: &str) -> BTreeMap<&'a str, Owner<'a>> {
        let recorded = self.recorded.get(path).into_iter().flatten();
        recorded.map(|(cluster, recorded)| (*cluster, Owner::of(*recorded))).collect()
    }

    fn recorded_in(&self, cluster: &str, path: &str) -> Option<(&'a ObjectId, &'a CopyOwner)> {
        self.recorded.get(path)?.get(cluster).copied()
    }

    /// Reports whether a workload owns the copy at a place.
    pub fn owns(&self, key: &Key, cluster: &str, path: &str) -> bool {
        self.holders(cluster, path).iter().any(|holder| holder.key == key)
    }

    /// Reports whether a workload owns the copy at a place as a part of its release, not only until another
    /// workload takes it over.
    pub fn uses(&self, key: &Key, cluster: &str, path: &str) -> bool {
        let is_handed_over = self.recorded_in(cluster, path).is_some_and(|(_, owner)| owner.is_handed_over);
        !is_handed_over && self.owns(key, cluster, path)
    }

    /// Reports whether no other workload has an object at a path.
    pub fn is_alone(&self, key: &Key, path: &str) -> bool {
        matches!(self.by_path().get(path).map(Vec::as_slice), Some([(only, _)]) if only == key)
            && !self.recorded.contains_key(path)
    }

    fn by_path(&self) -> &Claims {
        self.by_path.get_or_init(|| claims(self.decisions, |_| true))
    }

    /// Returns the workloads with an object at a path, wherever they are placed.
    pub fn claims(&self, path: &str) -> impl Iterator<Item = WorkloadClaim<'a>> {
        self.by_path().get(path).into_iter().flatten().filter_map(|(key, place)| {
            let decision = self.decisions.get(key)?;
            Some(WorkloadClaim { object: decision.objects.get(*place)?, decision })
        })
    }

    /// Returns the places of one workload's copies that the state really has.
    pub fn places(&self, key: &Key, state: &'a State) -> Vec<(&'a str, &'a ObjectId)> {
        let mut places = self.handed_over_by.get(key).cloned().unwrap_or_default();
        let Some(decision) = state.decisions.get(key) else { return places };
        let objects: Vec<(&ObjectId, String)> =
            decision.objects.iter().map(|object| (object, path::of_object(object))).collect();
        for pick in &decision.picks {
            let Some(folder) = state.folders.get(&*pick.cluster) else { continue };
            for (object, path) in objects.iter().filter(|(_, path)| folder.contains_key(path.as_str())) {
                if self.uses(key, &pick.cluster, path) {
                    places.push((&*pick.cluster, object));
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
    fn of((object, owner): (&'a ObjectId, &'a CopyOwner)) -> Owner<'a> {
        Owner { key: &owner.workload, object }
    }
}

impl WorkloadClaim<'_> {
    fn has_failed(&self, cluster: &str) -> bool {
        let failures = &self.decision.failures;
        failures.iter().any(|failure| failure.cluster == cluster && failure.object == *self.object)
    }
}
