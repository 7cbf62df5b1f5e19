//! A workload's copies: those in one cluster's folder, with the digest that names exactly these copies;
//! those in each cluster of a state; and those of pinned clusters, which no rollout changes.
//!
//! Releases, reports and facts name copies by this digest. A verdict on other copies has another digest,
//! so it never counts for these copies.

use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::policy::Orders;
use super::stages::ClusterLabels;
use crate::state::{PlaceOwners, State};
use berth_base::model::map::Cursor;
use berth_base::model::{ContentId, Decision, Digest, Fleet, Folder, Key, ObjectId, PickCursor, path};

/// The paths of a workload's objects, which are the same in every cluster's folder.
#[derive(Clone, Debug)]
pub struct ObjectPaths<'a>(Vec<(&'a ObjectId, String)>);

/// A copy of an object in one cluster's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy<'a> {
    pub object: &'a ObjectId,
    pub path: &'a str,
    pub content: ContentId,
}

impl<'a> ObjectPaths<'a> {
    /// Returns the paths of these objects.
    pub fn of(objects: &'a [ObjectId]) -> ObjectPaths<'a> {
        ObjectPaths(objects.iter().map(|object| (object, path::of_object(object))).collect())
    }

    /// Returns the copies in a folder, given by its content at a path.
    pub fn copies(&self, mut content_at: impl FnMut(&str) -> Option<ContentId>) -> Vec<Copy<'_>> {
        let paths = self.0.iter();
        paths.filter_map(|(object, path)| Some(Copy { object, path, content: content_at(path)? })).collect()
    }
}

/// Returns the digest of a workload's copies in one cluster. Each is a path in the cluster's folder with its
/// content, in any order.
pub fn digest<'a>(copies: impl IntoIterator<Item = (&'a str, ContentId)>) -> Digest {
    let mut copies: Vec<(&str, ContentId)> = copies.into_iter().collect();
    copies.sort_unstable();
    let mut hash = Sha256::new();
    for (path, id) in copies {
        hash.update(path);
        // No path holds a NUL and all ids have one length, so two lists of copies never give the same bytes.
        hash.update([0]);
        hash.update(id.0);
        hash.update(b"\n");
    }
    let mut short = [0; 16];
    short.copy_from_slice(&hash.finalize()[..16]);
    Digest(short)
}

/// A workload's copies in one cluster: paths in its folder, each with its content.
pub(super) type CopySet = Vec<(Arc<str>, ContentId)>;

/// A state with the owners of its places.
#[derive(Debug)]
pub(super) struct OwnedPlaces<'a> {
    pub(super) state: &'a State,
    pub(super) owners: PlaceOwners<'a>,
}

impl<'a> OwnedPlaces<'a> {
    pub(super) fn of(state: &'a State) -> OwnedPlaces<'a> {
        OwnedPlaces { state, owners: PlaceOwners::of(state) }
    }

    /// Returns the places of one workload's objects.
    pub(super) fn of_workload(&self, key: &'a Key) -> WorkloadPlaces<'_> {
        let decision = self.state.decisions.get(key);
        let objects = decision.map(|decision| decision.objects.as_slice()).unwrap_or_default();
        let place = |object| {
            let path = path::of_object(object);
            let is_own = self.owners.is_alone(key, &path);
            (path.into(), is_own)
        };
        WorkloadPlaces {
            owners: &self.owners,
            key,
            picks: decision.map(Decision::cursor),
            folders: self.state.folders.cursor(),
            paths: objects.iter().map(place).collect(),
        }
    }
}

/// The places of a workload's objects, which are the same in every cluster's folder.
#[derive(Debug)]
pub(super) struct WorkloadPlaces<'p> {
    owners: &'p PlaceOwners<'p>,
    key: &'p Key,
    picks: Option<PickCursor<'p>>,
    folders: Cursor<'p, String, Folder>,
    /// Each path with true if no other workload has an object for it.
    paths: Vec<(Arc<str>, bool)>,
}

impl WorkloadPlaces<'_> {
    /// Returns the workload's own copies in a cluster.
    pub(super) fn copies(&mut self, cluster: &str) -> CopySet {
        let Some(folder) = self.folders.get(cluster) else { return CopySet::new() };
        let pick = self.picks.as_mut().and_then(|picks| picks.pick(cluster));
        let serves = pick.is_some_and(|pick| !pick.pending);
        let is_own = |(path, is_alone): &&(Arc<str>, bool)| match is_alone {
            true => serves,
            false => self.owners.uses(self.key, cluster, path),
        };
        let own = self.paths.iter().filter(is_own);
        own.filter_map(|(path, _)| folder.get(path).map(|id| (path.clone(), *id))).collect()
    }
}

/// Puts the copies of pinned clusters from the step into a later state.
pub(crate) fn keep_pinned(fleet: &Fleet, labels: &ClusterLabels<'_>, step: &State, end: &mut State) {
    if fleet.rollout_policies.values().all(|policy| policy.pins.is_empty()) {
        return;
    }
    let decisions = end.decisions.clone();
    let owners = [PlaceOwners::of(step), PlaceOwners::by(&decisions)];
    for key in fleet.workloads.keys() {
        let objects = objects_of(key, [step, end]);
        for cluster in pinned(&Orders::of(fleet, key), labels, end) {
            let had = step.folders.get(&cluster);
            for path in objects.iter().map(path::of_object) {
                // Another workload's copy at this path has no pin.
                let mut has = owners.iter().flat_map(|owners| owners.holders(&cluster, &path));
                if has.all(|owner| owner.key == key) {
                    put(end.folders.or_default(&cluster), &path, had.and_then(|had| had.get(path.as_str())));
                }
            }
        }
    }
}

fn objects_of(key: &Key, states: [&State; 2]) -> BTreeSet<ObjectId> {
    let decisions = states.into_iter().filter_map(|state| state.decisions.get(key));
    decisions.flat_map(|decision| decision.objects.iter().cloned()).collect()
}

/// Returns the clusters of a workload that have a pin.
fn pinned(orders: &Orders<'_>, labels: &ClusterLabels<'_>, end: &State) -> Vec<String> {
    if orders.policies().iter().all(|policy| policy.pins.is_empty()) {
        return Vec::new();
    }
    let picks = end.decisions.get(orders.workload()).into_iter().flat_map(|decision| decision.picked());
    let names = picks.map(|pick| pick.cluster.to_string());
    names.filter(|name| labels.get(name).is_some_and(|labels| orders.pin(name, labels).is_some())).collect()
}

fn put(folder: &mut Folder, path: &str, content: Option<&ContentId>) {
    match content {
        Some(content) => drop(folder.put((path.into(), *content).into())),
        None => drop(folder.take(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(copies: &[(&str, u8)]) -> Digest {
        digest(copies.iter().map(|(path, id)| (*path, ContentId([*id; 20]))))
    }

    #[test]
    fn a_digest_names_the_copies_in_any_order_and_no_others() {
        let copies = of(&[("hello/ConfigMap_a.yaml", 1), ("hello/ConfigMap_b.yaml", 2)]);
        assert_eq!(of(&[("hello/ConfigMap_b.yaml", 2), ("hello/ConfigMap_a.yaml", 1)]), copies);
        assert_ne!(of(&[("hello/ConfigMap_a.yaml", 1), ("hello/ConfigMap_b.yaml", 3)]), copies);
        assert_ne!(of(&[("hello/ConfigMap_a.yaml", 1), ("hello/ConfigMap_c.yaml", 2)]), copies);
        assert_ne!(of(&[("hello/ConfigMap_a.yaml", 1)]), copies);
        assert_ne!(of(&[]), copies);
    }

    #[test]
    fn a_digest_is_the_same_on_any_machine_and_in_any_version() {
        assert_eq!(of(&[]).to_string(), "e3b0c44298fc1c149afbf4c8996fb924");
        let one = Sha256::digest(
            b"a\0\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\n",
        );
        assert_eq!(of(&[("a", 1)]).0, one[..16]);
    }
}
