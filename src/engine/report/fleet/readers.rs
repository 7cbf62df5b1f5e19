//! An index of the workloads' lines: the lines that depend on a cluster, and on an object's path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::with_objects;
use crate::state::ObjectIndex;
use berth_base::model::{Decision, Key, Map};

/// The workloads placed in a cluster, and those with an object at a path of clusters' folders, in no order.
#[derive(Debug, Default)]
pub(super) struct Readers {
    of_clusters: BTreeMap<String, Vec<Arc<Key>>>,
    of_objects: ObjectIndex,
}

impl Readers {
    /// Returns the index of decisions.
    pub(super) fn of(decisions: &Map<Key, Decision>) -> Readers {
        let mut readers = Readers::default();
        readers.update(&Map::new(), decisions);
        readers
    }

    /// Updates the index from earlier decisions to later ones.
    pub(super) fn update(&mut self, before: &Map<Key, Decision>, after: &Map<Key, Decision>) {
        self.of_objects.update(after);
        for one in before.changes(after) {
            self.change(one.key, with_objects(one.before), with_objects(one.after));
        }
    }

    fn change(&mut self, key: &Key, before: Option<&Decision>, after: Option<&Decision>) {
        let has_same_picks = |other: Option<&Decision>, one: &Decision| {
            other.is_some_and(|other| other.picks.is_same(&one.picks))
        };
        let key = Arc::new(key.clone());
        for (one, other, is_new) in [(before, after, false), (after, before, true)] {
            let Some(one) = one else { continue };
            if !has_same_picks(other, one) {
                let mut known = other.map(Decision::cursor);
                for pick in one.picks.iter() {
                    if !known.as_mut().is_some_and(|known| known.has(&pick.cluster)) {
                        set(&mut self.of_clusters, &pick.cluster, &key, is_new);
                    }
                }
            }
        }
    }

    pub(super) fn of_cluster(&self, cluster: &str) -> impl Iterator<Item = &Arc<Key>> {
        self.of_clusters.get(cluster).into_iter().flatten()
    }

    pub(super) fn of_paths(&self, paths: &BTreeSet<String>) -> impl Iterator<Item = Arc<Key>> {
        let keys = self.of_objects.at(paths.iter().map(String::as_str)).into_keys();
        keys.map(|key| Arc::new(key.clone()))
    }
}

/// Adds a workload to the workloads of a cluster, or removes it.
fn set(index: &mut BTreeMap<String, Vec<Arc<Key>>>, name: &str, key: &Arc<Key>, is_there: bool) {
    if is_there {
        return match index.get_mut(name) {
            Some(readers) => readers.push(key.clone()),
            None => drop(index.insert(name.to_owned(), vec![key.clone()])),
        };
    }
    let Some(readers) = index.get_mut(name) else { return };
    readers.retain(|reader| reader != key);
    if readers.is_empty() {
        index.remove(name);
    }
}
