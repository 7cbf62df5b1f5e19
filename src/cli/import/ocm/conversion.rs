//! Converts each kind of object for its file, with the same meaning for berth as for the hub.
//!
//! Distinguishes ManifestWorks of people and their pipelines, which are input, from those that a hub makes, and finds
//! the Secrets in manifests.

use serde_json::{Map, Value as Json};

use super::{CLUSTERS, WORKS};
use crate::import::{Gathered, Options, objects};
use berth_base::model::Key;

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
    objects::object(object);
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
    objects::object(object);
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

/// The label of works made by a ManifestWorkReplicaSet: its namespace, a dot, its name.
const REPLICA_SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";

/// The label of works made by the add-on manager.
const ADD_ON: &str = "open-cluster-management.io/addon-name";

/// The author of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    People,
    ReplicaSet(Key),
    /// An add-on, or another controller that owns the work.
    Hub,
    /// The agent with which a cluster joins a hub, and its credentials.
    Joining,
}

pub(super) fn origin(work: &Json) -> Origin {
    let metadata = &work["metadata"];
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let set = text(&metadata["labels"][REPLICA_SET]);
    // A namespace contains no dots, names may.
    if let Some((namespace, name)) = set.split_once('.') {
        return Origin::ReplicaSet(Key::new(WORKS, "ManifestWorkReplicaSet", namespace, name));
    }
    let (cluster, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let manifests = work.pointer("/spec/workload/manifests").and_then(Json::as_array);
    let is_agent = |one: &Json| {
        text(&one["apiVersion"]).starts_with("operator.open-cluster-management.io/")
            || (one["kind"] == "Secret"
                && text(&one["metadata"]["name"]).starts_with("bootstrap-hub-kubeconfig"))
    };
    let by_name = [format!("{cluster}-klusterlet"), format!("{cluster}-klusterlet-crds")].contains(&name);
    if by_name || manifests.into_iter().flatten().any(is_agent) {
        return Origin::Joining;
    }
    let owned = metadata["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty());
    if owned || metadata["labels"].get(ADD_ON).is_some() { Origin::Hub } else { Origin::People }
}

/// Counts the Secrets among manifests, or removes them unless they are wanted. Returns the number of removed ones.
pub(super) fn settle_secrets(
    work: &mut Json,
    workload: &str,
    options: &Options,
    gathered: &mut Gathered,
) -> usize {
    let Some(manifests) = work.pointer_mut(&format!("{workload}/manifests")).and_then(Json::as_array_mut)
    else {
        return 0;
    };
    let count = manifests.iter().filter(|one| holds_secret(one)).count();
    if options.secrets {
        gathered.secrets += count;
        return 0;
    }
    manifests.retain(|one| !holds_secret(one));
    count
}

/// Reports whether a manifest is a Secret, or a list that contains one.
fn holds_secret(manifest: &Json) -> bool {
    let in_list = || manifest["items"].as_array().is_some_and(|items| items.iter().any(holds_secret));
    manifest["apiVersion"] == "v1"
        && match manifest["kind"].as_str() {
            Some("Secret" | "SecretList") => true,
            Some("List") => in_list(),
            _ => false,
        }
}

/// Reports whether a manifest is left to place.
pub(super) fn has_manifests(work: &Json, workload: &str) -> bool {
    let manifests = work.pointer(&format!("{workload}/manifests")).and_then(Json::as_array);
    manifests.is_some_and(|all| !all.is_empty())
}
