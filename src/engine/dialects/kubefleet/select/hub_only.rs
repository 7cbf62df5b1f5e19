//! Objects that stay on the hub: those that controllers make there, and those that every cluster has by
//! itself.

use std::collections::BTreeSet;

use crate::dialects::ParsedDocument;
use crate::dialects::kubefleet::kinds::{CLUSTER_GROUP, PLACEMENT_GROUP};
use berth_base::packed::View;

/// Reports whether an object may go to members. `services` are those of the repository, by namespace and
/// name.
pub fn travels(object: &ParsedDocument, services: &BTreeSet<(&str, &str)>) -> bool {
    let metadata = object.root.get("metadata");
    let has =
        |key: &str| metadata.and_then(|metadata| metadata.get(key)).is_some_and(|value| !value.is_null());
    let owned = || {
        let owners = metadata.and_then(|metadata| metadata.get("ownerReferences"));
        owners.is_some_and(|owners| owners.items().next().is_some())
    };
    if has("deletionTimestamp") {
        return false;
    }
    let key = &object.key;
    match (&*key.group, &*key.kind, &*key.name) {
        (CLUSTER_GROUP | PLACEMENT_GROUP, ..) => false,
        ("events.k8s.io" | "coordination.k8s.io" | "metrics.k8s.io", ..) => false,
        (
            "networking.fleet.azure.com",
            "ServiceImport" | "TrafficManagerProfile" | "TrafficManagerBackend",
            _,
        ) => false,
        ("", "Pod" | "Node", _) => false,
        ("apps", "ReplicaSet" | "ControllerRevision", _) => !owned(),
        ("", "ConfigMap", "kube-root-ca.crt") | ("", "ServiceAccount", "default") => false,
        ("", "Secret", _) => {
            object.root.get("type").and_then(View::as_str) != Some("kubernetes.io/service-account-token")
        }
        ("", "Endpoints", name) => !services.contains(&(&*key.namespace, name)),
        ("discovery.k8s.io", "EndpointSlice", _) => {
            let labels = metadata.and_then(|metadata| metadata.get("labels"));
            labels.and_then(|labels| labels.get("endpointslice.kubernetes.io/managed-by")).is_none()
        }
        _ => true,
    }
}
