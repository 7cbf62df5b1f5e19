//! Converts each kind of object for its file, with the same meaning for berth as for the hub.

use serde_json::{Map, Value as Json};

use super::CLUSTERS;
use crate::import::clean;

/// The status fields that placements read.
const KEPT_STATUS: [&str; 4] = ["allocatable", "capacity", "clusterClaims", "version"];

/// Sets that a hub creates itself, and that berth has without a file.
const BUILT_IN_SETS: [&str; 2] = ["default", "global"];

/// Keeps the parts of a cluster that placements read. Its health would be outdated in a file, and is kept only if an
/// expression reads it.
pub(super) fn cluster(mut cluster: Json, conditions: bool) -> Json {
    if let Some(status) = cluster.get_mut("status").and_then(Json::as_object_mut) {
        status.retain(|key, value| {
            let kept = KEPT_STATUS.contains(&key.as_str()) || (conditions && key == "conditions");
            let empty = value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(Map::is_empty);
            kept && !empty
        });
    }
    let since = cluster.pointer("/metadata/creationTimestamp").cloned().unwrap_or_default();
    for taint in taints_mut(&mut cluster) {
        if is_undated(taint) {
            taint.insert("timeAdded".to_owned(), since.clone());
        }
    }
    cluster
}

/// Removes the server's additions, and keeps the status.
pub(super) fn cleaned(object: &mut Json) {
    let status = object["status"].take();
    clean::object(object);
    if let (Some(fields), Some(false)) = (object.as_object_mut(), status.as_object().map(Map::is_empty)) {
        fields.insert("status".to_owned(), status);
    }
}

/// Keeps the scores and their expiry.
pub(super) fn score(object: &mut Json) {
    if let Some(status) = object.get_mut("status").and_then(Json::as_object_mut) {
        status.retain(|key, value| ["scores", "validUntil"].contains(&key.as_str()) && !value.is_null());
    }
    cleaned(object);
}

/// Cleans a set. Converts an old hub's selector type to the present one.
pub(super) fn set(object: &mut Json) {
    clean::object(object);
    if let Some(selector) = object.pointer_mut("/spec/clusterSelector").and_then(Json::as_object_mut)
        && selector.get("selectorType").and_then(Json::as_str) == Some("LegacyClusterSetLabel")
    {
        selector.insert("selectorType".to_owned(), "ExclusiveClusterSetLabel".into());
    }
}

/// Reports whether the hub creates the set itself and reverts all changes of it.
pub(super) fn is_kept_by_the_hub(set: &Json) -> bool {
    let metadata = &set["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let left_alone = metadata["annotations"][format!("{CLUSTERS}/autoupdate")] == "false";
    BUILT_IN_SETS.contains(&name) && !left_alone
}

/// Returns the keys of taints that the hub adds to clusters that do not answer.
pub(super) fn taints_of_the_hub(cluster: &Json) -> Vec<String> {
    let known = [format!("{CLUSTERS}/unavailable"), format!("{CLUSTERS}/unreachable")];
    let taints = cluster.pointer("/spec/taints").and_then(Json::as_array);
    let keys = taints.into_iter().flatten().filter_map(|taint| taint["key"].as_str());
    keys.filter(|key| known.iter().any(|one| one == key)).map(str::to_owned).collect()
}

/// Reports whether a taint has no `timeAdded`.
pub(super) fn has_undated_taints(cluster: &Json) -> bool {
    let taints = cluster.pointer("/spec/taints").and_then(Json::as_array);
    taints.into_iter().flatten().filter_map(Json::as_object).any(is_undated)
}

fn is_undated(taint: &Map<String, Json>) -> bool {
    taint.get("timeAdded").is_none_or(Json::is_null)
}

fn taints_mut(cluster: &mut Json) -> impl Iterator<Item = &mut Map<String, Json>> {
    let taints = cluster.pointer_mut("/spec/taints").and_then(Json::as_array_mut);
    taints.into_iter().flatten().filter_map(Json::as_object_mut)
}
