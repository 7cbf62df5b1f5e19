//! The in-process cache of a rendering, so that only changed objects are made again.
//!
//! Losing it costs time only. An object is reused if one workload alone places it, its copies had no fault,
//! and workload, picks and clusters are equal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cache_key::CacheKeys;
use super::claims::{self, Claim, Picks};
use berth_base::model::{ContentId, Fleet, Folder, Folders, Shared, Workload, differences};

/// The inputs and the result of the last rendering.
#[derive(Clone, Debug)]
pub struct ProcessCache {
    pub(super) fleet: Shared<Fleet>,
    /// The stand-ins of the fleet's frozen workloads.
    pub(super) frozen: Vec<Workload>,
    pub(super) picks: Picks,
    pub(super) folders: Folders,
    /// The paths, in lower case, whose copies may be reused.
    pub(super) clean: BTreeSet<String>,
    /// The cache keys made so far, see [`super::StoredCache`].
    pub(super) keys: CacheKeys,
}

impl ProcessCache {
    /// Forgets copies that are not in these folders: contents that were not published may be missing from the
    /// store.
    pub fn keep_published(&mut self, published: &Folders) {
        let nothing = Folder::new();
        let mut lost: BTreeMap<&Arc<str>, BTreeSet<ContentId>> = BTreeMap::new();
        for (cluster, folder) in &self.folders {
            let there = published.get(cluster).unwrap_or(&nothing);
            for one in differences(there, folder) {
                if let Some(id) = one.after {
                    lost.entry(one.path).or_default().insert(id);
                }
            }
        }
        // A workload that rolls out has clusters that wait for contents which others have already.
        for (path, mut ids) in lost {
            for id in published.values().filter_map(|folder| folder.get(path)) {
                ids.remove(id);
            }
            if !ids.is_empty() {
                self.clean.remove(&path.to_lowercase());
            }
        }
    }
}

/// The start of a rendering: reused copies, and nothing at the other paths.
pub(super) struct Reused {
    pub(super) folders: Folders,
    pub(super) unchanged: BTreeSet<String>,
    /// The cache keys of unchanged paths.
    pub(super) keys: CacheKeys,
}

/// Starts with an empty folder for every cluster.
pub(super) fn nothing(fleet: &Fleet) -> Reused {
    let folders = fleet.clusters.keys().map(|name| (name.clone(), Folder::new())).collect();
    Reused { folders, unchanged: BTreeSet::new(), keys: CacheKeys::new() }
}

pub(super) fn reuse(
    cache: &ProcessCache,
    fleet: &Fleet,
    groups: &BTreeMap<String, Vec<Claim<'_>>>,
) -> Reused {
    if cache.fleet.clusters != fleet.clusters || cache.fleet.list_kinds != fleet.list_kinds {
        return nothing(fleet);
    }
    let before = claims::group(&cache.fleet, &cache.frozen, &cache.picks);
    let mut folders = cache.folders.clone();
    let mut unchanged = BTreeSet::new();
    let mut keys = cache.keys.clone();
    for (path, old) in before {
        let same = match (old.as_slice(), groups.get(&path).map(Vec::as_slice)) {
            ([old], Some([new])) => cache.clean.contains(&path) && old.is_as(new),
            _ => false,
        };
        if same {
            unchanged.insert(path);
        } else {
            if keys.contains_key(&*path) {
                keys.remove(&*path);
            }
            old.iter().for_each(|claim| clear(&mut folders, claim));
        }
    }
    folders.retain(|name, folder| !folder.is_empty() || fleet.clusters.contains_key(name));
    Reused { folders, unchanged, keys }
}

fn clear(folders: &mut Folders, claim: &Claim<'_>) {
    for cluster in claim.clusters() {
        if let Some(folder) = folders.get_mut(cluster).filter(|folder| folder.contains_key(&claim.path)) {
            folder.remove(&claim.path);
        }
    }
}
