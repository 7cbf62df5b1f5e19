//! The copies that a workload has in each cluster of a state.

use std::sync::Arc;

use berth_base::model::{ContentId, Key, path};

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

    /// Returns the paths of a workload's objects.
    pub(super) fn paths(&self, key: &Key) -> Vec<Arc<str>> {
        let objects = self.state.decisions.get(key).map(|decision| decision.objects.as_slice());
        objects.unwrap_or_default().iter().map(|object| path::of_object(object).into()).collect()
    }

    /// Returns the workload's own copies among these paths.
    pub(super) fn copies(&self, key: &Key, cluster: &str, paths: &[Arc<str>]) -> CopySet {
        let Some(folder) = self.state.folders.get(cluster) else { return CopySet::new() };
        let own = paths.iter().filter(|path| self.owners.owns(key, cluster, path));
        own.filter_map(|path| folder.get(path).map(|id| (path.clone(), *id))).collect()
    }
}
