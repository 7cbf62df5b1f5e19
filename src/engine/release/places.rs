//! The copies that a workload has in each cluster of a state.

use std::sync::Arc;

use berth_base::model::{ContentId, Decision, Key, path};

use crate::state::{PlaceOwners, State};

/// A workload's copies in one cluster: paths in its folder, each with its content.
pub(super) type CopySet = Vec<(Arc<str>, ContentId)>;

/// A state with the owners of its places.
#[derive(Debug)]
pub(super) struct Places<'a> {
    pub(super) state: &'a State,
    owners: PlaceOwners<'a>,
}

impl<'a> Places<'a> {
    pub(super) fn of(state: &'a State) -> Places<'a> {
        Places { state, owners: PlaceOwners::of(&state.decisions) }
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
        WorkloadPlaces { places: self, key, decision, paths: objects.iter().map(place).collect() }
    }
}

/// The places of a workload's objects, which are the same in every cluster's folder.
#[derive(Debug)]
pub(super) struct WorkloadPlaces<'p> {
    places: &'p Places<'p>,
    key: &'p Key,
    decision: Option<&'p Decision>,
    /// Each with true where no other workload has an object for it.
    paths: Vec<(Arc<str>, bool)>,
}

impl WorkloadPlaces<'_> {
    /// Returns the workload's own copies in a cluster.
    pub(super) fn copies(&self, cluster: &str) -> CopySet {
        let Places { state, owners } = self.places;
        let Some(folder) = state.folders.get(cluster) else { return CopySet::new() };
        let serves = self.decision.is_some_and(|decision| decision.serves(cluster));
        let is_own = |(path, is_alone): &&(Arc<str>, bool)| match is_alone {
            true => serves,
            false => owners.owns(self.key, cluster, path),
        };
        let own = self.paths.iter().filter(is_own);
        own.filter_map(|(path, _)| folder.get(path).map(|id| (path.clone(), *id))).collect()
    }
}
