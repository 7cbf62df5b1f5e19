//! The cache between two renderings: the inputs of the last one, and its results by workload and by path. The
//! next rendering makes only the paths that a change affects.
//!
//! Losing the cache costs only time. Paths that read the current state or have diagnostics are made again
//! each time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::PlacedCopy;
use super::claims::{self, Groups, TemplateClaim};
use super::inputs::RenderInputs;
use super::warnings::Warnings;
use crate::state::ObjectIndex;
use berth_base::model::{ContentId, Decision, Fleet, Folder, Folders, Key, Map, Shared, differences};

/// The inputs and results of the last rendering.
#[derive(Clone, Debug, Default)]
pub struct ProcessCache {
    pub(super) inputs: RenderInputs,
    pub(super) results: Results,
    /// The number of paths that the last rendering made.
    pub(crate) made: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    /// The decisions with their objects, without failures.
    pub(super) decisions: Map<Key, Decision>,
    /// The index of these decisions, as of the last search for changes.
    pub(super) objects: ObjectIndex,
    /// The folders, with only the copies of claims.
    pub(super) folders: Folders,
    /// The paths, in lower case, that the next rendering must make.
    pub(super) unsettled: BTreeSet<String>,
    pub(super) warnings: Warnings,
}

/// The difference between two inputs, and the claims that it affects.
pub(super) struct Changes<'o, 'n> {
    /// The changed workloads, and changed placements without one.
    pub(super) keys: BTreeSet<Key>,
    /// The claims at each path to make, before and now.
    pub(super) before: Groups<'o>,
    pub(super) now: Groups<'n>,
}

impl ProcessCache {
    /// Returns the fleet that was rendered.
    pub(crate) fn fleet(&self) -> &Shared<Fleet> {
        &self.inputs.fleet
    }

    /// Drops copies that are not in these folders: unpublished contents may be missing from the store.
    pub fn keep_published(&mut self, published: &Folders) {
        let mut lost: BTreeMap<&Arc<str>, BTreeSet<ContentId>> = BTreeMap::new();
        let nothing = Folder::new();
        for one in published.changes(&self.results.folders) {
            let [there, made] = [one.before, one.after].map(|folder| folder.unwrap_or(&nothing));
            for one in differences(there, made) {
                if let Some(id) = one.after {
                    lost.entry(one.path).or_default().insert(*id);
                }
            }
        }
        // During a rollout, some clusters wait for contents that others already have, so a content in any
        // published folder is kept.
        for (path, mut ids) in lost {
            let mut there = published.values().filter_map(|folder| folder.get(path));
            while !ids.is_empty()
                && let Some(id) = there.next()
            {
                ids.remove(id);
            }
            if !ids.is_empty() {
                self.results.unsettled.insert(path.to_lowercase());
            }
        }
    }
}

impl Results {
    /// Finds everything that later inputs change. Copies stay where a claim has the same effect.
    pub(super) fn changes<'o, 'n>(
        &mut self,
        old: &'o RenderInputs,
        new: &'n RenderInputs,
    ) -> Changes<'o, 'n> {
        let moved = old.moved_by_clusters(new);
        let mut keys = old.changes(new);
        keys.extend(moved.iter().cloned());
        let (before, now) = (claims::group(old, &keys), claims::group(new, &keys));
        let unsettled = std::mem::take(&mut self.unsettled);
        let paths: BTreeSet<String> = before.keys().chain(now.keys()).chain(&unsettled).cloned().collect();
        self.objects.update(&self.decisions);
        let claimants = self.objects.at(paths.iter().map(String::as_str)).into_keys();
        let others: BTreeSet<&Key> = claimants.filter(|key| !keys.contains(*key)).collect();
        let mut before = with_others(before, old, &others, &paths);
        let mut now = with_others(now, new, &others, &paths);
        for path in &paths {
            let (Some([old]), Some([new])) =
                (before.get_mut(path).map(Vec::as_mut_slice), now.get_mut(path).map(Vec::as_mut_slice))
            else {
                continue;
            };
            if unsettled.contains(path) || moved.contains(&new.workload.key) || !old.makes_as(new) {
                continue;
            }
            if old.picks_as(new) {
                before.remove(path);
                now.remove(path);
            } else {
                // Copies in clusters of both claims stay.
                (*old, *new) = (old.without(new), new.without(old));
            }
        }
        Changes { keys, before, now }
    }

    /// Replaces the earlier claims' copies at one path.
    pub(super) fn put(&mut self, fleet: &Fleet, before: &[TemplateClaim<'_>], placed: &[PlacedCopy<'_>]) {
        for claim in before {
            for cluster in claim.clusters() {
                let at = placed.binary_search_by(|one| one.cluster.cmp(cluster));
                let stays = at.is_ok_and(|at| placed[at].entry.0 == claim.path);
                let Some(folder) = self.folders.get(cluster).filter(|_| !stays) else { continue };
                if folder.contains_key(&claim.path)
                    && let Some(folder) = self.folders.get_mut(cluster)
                {
                    folder.take(&claim.path);
                    if folder.is_empty() && !fleet.clusters.contains_key(cluster) {
                        self.folders.remove(cluster);
                    }
                }
            }
        }
        // Reading first keeps an unchanged folder shared. A new object has nothing to read.
        let is_new = before.is_empty();
        for PlacedCopy { cluster, entry } in placed {
            let (path, content) = &**entry;
            if is_new || self.folders.get(*cluster).and_then(|folder| folder.get(path)) != Some(content) {
                // A cluster missing from the inventory also keeps its folder.
                self.folders.or_default(*cluster).put(entry.clone());
            }
        }
    }

    /// Gives each cluster of the fleet a folder. Clusters that left the fleet keep a folder that is not
    /// empty.
    pub(super) fn keep_folders(&mut self, old: &Fleet, new: &Fleet) {
        for one in old.clusters.changes_by(&new.clusters, |_, _| true) {
            match one.after {
                Some(_) => drop(self.folders.or_default(one.key)),
                None if self.folders.get(one.key).is_some_and(|folder| folder.is_empty()) => {
                    self.folders.remove(one.key);
                }
                None => {}
            }
        }
    }
}

/// Adds the claims of other workloads at the same paths.
fn with_others<'a>(
    mut groups: Groups<'a>,
    inputs: &'a RenderInputs,
    others: &BTreeSet<&Key>,
    paths: &BTreeSet<String>,
) -> Groups<'a> {
    for (path, claims) in claims::group(inputs, others.iter().copied()) {
        if paths.contains(&path) {
            let group = groups.entry(path).or_default();
            group.extend(claims);
            group.sort_by(|a, b| a.workload.key.cmp(&b.workload.key));
        }
    }
    groups
}
