//! The publications of the window, as far as the removals to judge depend on them.
//!
//! Removals in many steps are judged like removals in one step: the next state is compared with the state
//! before each publication of the window that removed something. Copies that returned do not count, nor do
//! removals that an approval or a rollback allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::state::State;
use crate::state::ledger::{Cause, Place};
use berth_base::model::{Folder, Key, path};

/// The paths in one cluster's folder.
pub type Paths = Arc<BTreeSet<Arc<str>>>;

/// A publication of the window that removed something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastPublication {
    /// The workloads that lost something, as they were right before.
    pub had: BTreeMap<Key, WorkloadPlaces>,
    /// The losses that were carried out.
    pub took: Vec<Taken>,
    /// The paths in clusters' folders right before, of the clusters that lost something then or since.
    pub folders: BTreeMap<String, Paths>,
}

/// A loss that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub place: Place,
    pub cause: Cause,
    /// An approval or a rollback permitted it, so that it does not count.
    pub exempt: bool,
}

/// A workload's places: each of the paths in each of the clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadPlaces {
    pub clusters: BTreeSet<String>,
    pub paths: Vec<Arc<str>>,
}

/// The state before one publication, compared with the desired one.
#[derive(Debug)]
pub(super) struct Since<'a> {
    past: &'a PastPublication,
    /// Places, as clusters and paths, removed since then with an approval or by a rollback.
    exempt: BTreeSet<(&'a str, String)>,
}

/// The states before each publication of the window, newest first.
pub(super) fn since(pasts: &[PastPublication]) -> Vec<Since<'_>> {
    let mut exempt = BTreeSet::new();
    let mut all = Vec::new();
    for past in pasts {
        let taken = past.took.iter().filter(|taken| taken.exempt);
        exempt.extend(
            taken.map(|Taken { place: (cluster, object), .. }| (cluster.as_str(), path::of_object(object))),
        );
        all.push(Since { past, exempt: exempt.clone() });
    }
    all
}

/// Returns the places that statuses or time took, and that count.
pub(super) fn taken_without_edit(pasts: &[PastPublication]) -> impl Iterator<Item = &Place> {
    let taken = pasts.iter().flat_map(|past| &past.took);
    taken.filter(|taken| !taken.exempt && !taken.cause.is_edit()).map(|taken| &taken.place)
}

impl<'a> Since<'a> {
    /// Returns how many clusters of that time lose all copies of what a workload has, and how many there were; `None`
    /// if it lost nothing in that publication. Its objects count, whatever the workload was called then.
    pub(super) fn clusters(&self, paths: &BTreeSet<String>, desired: &State) -> Option<(usize, usize)> {
        let (mut lost, mut of) = (BTreeSet::new(), BTreeSet::new());
        let mut took_some = false;
        for had in self.past.had.values() {
            let common: Vec<&Arc<str>> = had.paths.iter().filter(|path| paths.contains(&***path)).collect();
            took_some |= !common.is_empty();
            for cluster in &had.clusters {
                let mut counting = common.iter().filter(|path| !self.is_exempt(cluster, path)).peekable();
                if counting.peek().is_none() {
                    continue;
                }
                of.insert(cluster);
                let folder = desired.folders.get(cluster);
                if !counting.any(|path| holds(folder, path)) {
                    lost.insert(cluster);
                }
            }
        }
        took_some.then_some((lost.len(), of.len()))
    }

    /// The objects that each cluster had then and would not have any more, and how many it had.
    pub(super) fn objects(&self, desired: &State) -> BTreeMap<&'a str, (usize, usize)> {
        let of_cluster = |(cluster, paths): (&'a String, &'a Paths)| {
            let folder = desired.folders.get(cluster);
            let counting = paths.iter().filter(|path| !self.is_exempt(cluster, path));
            let (mut lost, mut of) = (0, 0);
            for path in counting {
                of += 1;
                lost += usize::from(!holds(folder, path));
            }
            (cluster.as_str(), (lost, of))
        };
        self.past.folders.iter().map(of_cluster).collect()
    }

    fn is_exempt(&self, cluster: &str, path: &str) -> bool {
        !self.exempt.is_empty() && self.exempt.contains(&(cluster, path.to_owned()))
    }
}

fn holds(folder: Option<&Folder>, path: &str) -> bool {
    folder.is_some_and(|folder| folder.contains_key(path))
}
