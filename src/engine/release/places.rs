//! The copies that a workload has in each cluster of a state.

use std::sync::Arc;

use berth_base::model::PickCursor;
use berth_base::model::map::Cursor;
use berth_base::model::{ContentId, Decision, Folder, Key, path};

use crate::state::{PlaceOwners, State};

/// A workload's copies in one cluster: paths in its folder, each with its content.
pub(super) type CopySet = Vec<(Arc<str>, ContentId)>;

/// A state with the owners of its places.
#[derive(Debug)]
pub(super) struct Places<'a> {
    pub(super) state: &'a State,
    pub(super) owners: PlaceOwners<'a>,
}

impl<'a> Places<'a> {
    pub(super) fn of(state: &'a State) -> Places<'a> {
        Places { state, owners: PlaceOwners::of(state) }
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
