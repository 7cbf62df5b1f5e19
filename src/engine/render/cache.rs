//! The in-process cache of a rendering, so that only changed objects are made again.
//!
//! Losing it costs time only. An object is reused if one workload alone places it, its copies had no fault,
//! and workload, picks and clusters are equal.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::{self, Claim, Picks};
use super::stored_cache::Fingerprints;
use berth_base::model::{Fleet, Folder, Folders, Shared, Workload};

/// A rendering, to go on from.
#[derive(Clone, Debug)]
pub struct ProcessCache {
    pub(super) fleet: Shared<Fleet>,
    /// The stand-ins of the fleet's frozen workloads.
    pub(super) frozen: Vec<Workload>,
    pub(super) picks: Picks,
    pub(super) folders: Folders,
    /// The paths, in lower case, whose copies depend on nothing else.
    pub(super) clean: BTreeSet<String>,
    /// Fingerprints that were made on the way, see [`super::StoredCache`].
    pub(super) fingerprints: Fingerprints,
}

impl ProcessCache {
    /// Forgets what is not in these folders: what was rendered and then not published may be gone.
    pub fn keep_published(&mut self, published: &Folders) {
        let (clean, nothing) = (&mut self.clean, Folder::new());
        for (cluster, folder) in &self.folders {
            let there = published.get(cluster).unwrap_or(&nothing);
            if folder != there {
                let lost = folder.iter().filter(|(path, id)| there.get(*path) != Some(id));
                lost.for_each(|(path, _)| {
                    clean.remove(&path.to_lowercase());
                });
            }
        }
    }
}

/// The start of a rendering: reused copies, and nothing at the other paths.
pub(super) struct Reused {
    pub(super) folders: Folders,
    pub(super) unchanged: BTreeSet<String>,
    /// Of paths that are unchanged.
    pub(super) fingerprints: Fingerprints,
}

/// Every cluster with an empty folder.
pub(super) fn nothing(fleet: &Fleet) -> Reused {
    let folders = fleet.clusters.keys().map(|name| (name.clone(), Folder::new())).collect();
    Reused { folders, unchanged: BTreeSet::new(), fingerprints: Fingerprints::new() }
}

pub(super) fn take_over(
    memo: &ProcessCache,
    fleet: &Fleet,
    groups: &BTreeMap<String, Vec<Claim<'_>>>,
) -> Reused {
    if memo.fleet.clusters != fleet.clusters || memo.fleet.list_kinds != fleet.list_kinds {
        return nothing(fleet);
    }
    let before = claims::group(&memo.fleet, &memo.frozen, &memo.picks);
    let mut folders = memo.folders.clone();
    let mut unchanged = BTreeSet::new();
    let mut fingerprints = memo.fingerprints.clone();
    for (path, old) in before {
        let same = match (old.as_slice(), groups.get(&path).map(Vec::as_slice)) {
            ([old], Some([new])) => memo.clean.contains(&path) && old.is_as(new),
            _ => false,
        };
        if same {
            unchanged.insert(path);
        } else {
            if fingerprints.contains_key(&*path) {
                fingerprints.remove(&*path);
            }
            old.iter().for_each(|claim| clear(&mut folders, claim));
        }
    }
    folders.retain(|name, folder| !folder.is_empty() || fleet.clusters.contains_key(name));
    Reused { folders, unchanged, fingerprints }
}

fn clear(folders: &mut Folders, claim: &Claim<'_>) {
    for cluster in claim.clusters() {
        if let Some(folder) = folders.get_mut(cluster).filter(|folder| folder.contains_key(&claim.path)) {
            folder.remove(&claim.path);
        }
    }
}
