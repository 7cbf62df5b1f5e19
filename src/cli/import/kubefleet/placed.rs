//! Reads a placement's present clusters from its bindings and its status.

use serde_json::Value as Json;

use crate::import::{Gathered, Placed, Standing, clean};
use berth_base::model::Key;

use super::PLACEMENTS;

/// The label that names a binding's placement.
const PARENT: &str = "/metadata/labels/kubernetes-fleet.io~1parent-CRP";

/// Condition names of older hubs → the current names.
const OLD_NAMES: [(&str, &str); 6] = [
    ("ClusterResourcePlacementSynchronized", "WorkSynchronized"),
    ("ResourceApplied", "Applied"),
    ("ResourceScheduled", "Scheduled"),
    ("ResourcesApplied", "Applied"),
    ("SynchronizeSucceeded", "WorkSynchronized"),
    ("WorkSynchronizeSucceeded", "WorkSynchronized"),
];

/// Conditions of a cluster that are False if a member may have other objects than the hub's.
const TELLING: [&str; 3] = ["Overridden", "WorkSynchronized", "Applied"];

/// Returns the current name of a condition, with or without its kind's prefix.
pub(super) fn condition_name(name: &str) -> &str {
    let known = |name: &str| OLD_NAMES.iter().find(|(old, _)| *old == name).map(|(_, new)| *new);
    let bare = name.strip_prefix("ClusterResourcePlacement").or(name.strip_prefix("ResourcePlacement"));
    known(name).or_else(|| bare.map(|bare| known(bare).unwrap_or(bare))).unwrap_or(name)
}

/// Returns the clusters with problems in the placement's status. Bindings name the other clusters.
pub(super) fn placed(placement: &Json) -> Placed {
    let statuses = placement.pointer("/status/placementStatuses").and_then(Json::as_array);
    let mut placed = Placed::default();
    for status in statuses.into_iter().flatten() {
        let Some(cluster) = status["clusterName"].as_str() else { continue };
        let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let bad = conditions.iter().find(|one| {
            one["status"] == "False"
                && TELLING.contains(&condition_name(one["type"].as_str().unwrap_or_default()))
        });
        if let Some(bad) = bad {
            let word = bad["reason"].as_str().unwrap_or_default().to_owned();
            // The object counts as missing until a binding shows otherwise.
            placed.clusters.insert(cluster.to_owned(), Standing { there: false, doubtful: false, word });
        }
    }
    placed
}

/// Adds a binding's cluster to its placement.
pub(super) fn bind(gathered: &mut Gathered, binding: &Json) {
    let text = |pointer: &str| binding.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    let (parent, cluster, state) = (text(PARENT), text("/spec/targetCluster"), text("/spec/state"));
    let namespace = text("/metadata/namespace");
    let kind = if namespace.is_empty() { "ClusterResourcePlacement" } else { "ResourcePlacement" };
    let key = Key::new(PLACEMENTS, kind, namespace, parent);
    if !gathered.placed.contains_key(&key) {
        return;
    }
    if state == "Unscheduled" || clean::is_deleting(binding) {
        let message = format!("the hub is removing {key} from `{cluster}`, so it is no longer placed there");
        let hint = "objects that the hub has not removed by the time it is shut down stay there, unmanaged";
        return gathered.warn(message, Some(hint));
    }
    let Some(placed) = gathered.placed.get_mut(&key) else { return };
    let standing = placed.clusters.entry(cluster.to_owned()).or_insert_with(|| Standing {
        there: true,
        doubtful: state == "Scheduled",
        word: if state == "Scheduled" { state.to_owned() } else { String::new() },
    });
    standing.there = true;
    standing.doubtful |= !standing.word.is_empty();
    if state == "Scheduled" {
        placed.pending.insert(cluster.to_owned());
    }
    if let Some(scores) = binding.pointer("/spec/clusterDecision/clusterScore") {
        let names = [("affinityScore", "affinityScore"), ("priorityScore", "topologySpreadScore")];
        let score = |(theirs, ours): (&str, &str)| Some((ours.to_owned(), scores.get(theirs)?.as_i64()?));
        let scores = names.into_iter().map(|names| score(names).unwrap_or((names.1.to_owned(), 0)));
        placed.scores.insert(cluster.to_owned(), scores.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::condition_name;

    #[test]
    fn old_names_of_conditions_are_known() {
        for (name, today) in [
            ("ClusterResourcePlacementSynchronized", "WorkSynchronized"),
            ("ClusterResourcePlacementApplied", "Applied"),
            ("ResourcePlacementScheduled", "Scheduled"),
            ("ResourceScheduled", "Scheduled"),
            ("WorkSynchronizeSucceeded", "WorkSynchronized"),
            ("Available", "Available"),
        ] {
            assert_eq!(condition_name(name), today, "{name}");
        }
    }
}
