//! Distinguishes ManifestWorks of people and their pipelines, which are input, from those that a hub makes, and finds
//! the Secrets in manifests.

use serde_json::Value as Json;

use super::WORKS;
use crate::import::{Gathered, Options};
use berth_base::model::Key;

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
