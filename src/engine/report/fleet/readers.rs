//! An index of what workloads' lines are made from: who shows a cluster, and who an object's path.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::with_objects;
use berth_base::model::{Decision, Key, Map, path};

/// The workloads placed in a cluster, and those with an object at a path of clusters' folders, in no order.
#[derive(Debug, Default)]
pub(super) struct Readers {
    of_clusters: BTreeMap<String, Vec<Arc<Key>>>,
    of_paths: BTreeMap<String, Vec<Arc<Key>>>,
}

impl Readers {
    /// Returns the index of decisions.
    pub(super) fn of(decisions: &Map<Key, Decision>) -> Readers {
        let mut readers = Readers::default();
        for (key, decision) in decisions {
            readers.change(key, None, with_objects(Some(decision)));
        }
        readers
    }

    /// Takes over another decision of a workload.
    pub(super) fn change(&mut self, key: &Key, before: Option<&Decision>, after: Option<&Decision>) {
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
            if other.is_none_or(|other| other.objects != one.objects) {
                let paths = one.objects.iter().map(path::of_object);
                paths.for_each(|path| set(&mut self.of_paths, &path, &key, is_new));
            }
        }
    }

    pub(super) fn of_cluster(&self, cluster: &str) -> impl Iterator<Item = &Arc<Key>> {
        self.of_clusters.get(cluster).into_iter().flatten()
    }

    pub(super) fn of_path(&self, path: &str) -> impl Iterator<Item = &Arc<Key>> {
        self.of_paths.get(path).into_iter().flatten()
    }
}

/// Adds a workload to those of a cluster or path, or takes it away.
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
