//! The copies of pinned clusters in the state that a change leads to: no rollout changes them.

use std::collections::BTreeSet;

use super::labels::ClusterLabels;
use super::policy::Orders;
use crate::state::{PlaceOwners, State};
use berth_base::model::{ContentId, Fleet, Folder, Key, ObjectId, path};

/// Puts the copies of pinned clusters from the step into a later state.
pub(crate) fn keep(fleet: &Fleet, labels: &ClusterLabels<'_>, step: &State, end: &mut State) {
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
