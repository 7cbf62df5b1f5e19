//! The objects of an import: each in its author's form, without everything that only a server or a controller writes,
//! and one per file, in a tree that people can navigate.
//!
//! ```text
//! clusters/<name>.yaml                               the inventory
//! hub/<kind>/<name>.yaml                             the hub's own settings and types
//! namespaces/<namespace>/namespace.yaml              a plain Namespace
//! namespaces/<namespace>/<kind>/<name>.yaml          objects in a namespace
//! cluster-scoped/<kind>/<name>.yaml                  cluster-scoped objects
//! ```
//!
//! Folder names have no meaning for berth: move the files freely.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use berth_base::meta::SERVER_FIELDS;
use berth_base::model::{Key, path};
use berth_base::yaml;
use berth_engine::dialects::{AccessRole, DIALECTS};

/// The metadata that an imported object keeps. Finalizers are dropped, because their controllers are not imported.
const KEPT_METADATA: [&str; 4] = ["annotations", "labels", "name", "namespace"];

/// The annotations that kubectl and servers write for themselves.
const SERVER_ANNOTATIONS: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"];

/// Cleans a whole object: removes the server's metadata and the status.
pub fn object(object: &mut Json) {
    let Some(fields) = object.as_object_mut() else { return };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.retain(|key, _| KEPT_METADATA.contains(&key.as_str()));
        tidy(metadata);
    }
}

/// Cleans an object inside another, such as a template.
pub fn template(template: &mut Json) {
    let Some(fields) = template.as_object_mut() else { return };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.retain(|key, _| key == "generateName" || !SERVER_FIELDS.contains(&key.as_str()));
        tidy(metadata);
        if metadata.is_empty() {
            fields.remove("metadata");
        }
    }
}

/// Removes servers' annotations, and mappings that become empty.
fn tidy(metadata: &mut Map<String, Json>) {
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut) {
        annotations.retain(|key, _| !SERVER_ANNOTATIONS.contains(&key.as_str()));
    }
    let is_empty = |value: &Json| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    for key in ["annotations", "labels"] {
        if metadata.get(key).is_some_and(is_empty) {
            metadata.remove(key);
        }
    }
}

/// Reports whether the object is being deleted.
pub(crate) fn is_deleting(object: &Json) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Returns every file's path and text.
pub fn files<'a>(objects: impl IntoIterator<Item = (&'a Key, &'a Json)>) -> BTreeMap<String, String> {
    objects.into_iter().map(|(key, object)| (path_of(key), yaml::emit(object))).collect()
}

/// Returns the path of an object's file.
pub fn path_of(key: &Key) -> String {
    let name = path::encode(&key.name);
    if DIALECTS.iter().any(|dialect| dialect.is_cluster(key)) {
        return format!("clusters/{name}.yaml");
    }
    let roles: Vec<AccessRole<'_>> = DIALECTS.iter().map(|dialect| (dialect.access_role)(key)).collect();
    // The group is a part of the path unless it is a usual one: two groups may have the same kind.
    let is_usual = key.group.is_empty() || roles.iter().any(|role| *role != AccessRole::Plain);
    let kind = key.kind.to_lowercase();
    let kind = path::encode(&if is_usual { kind } else { format!("{kind}.{}", key.group) });
    match (&*key.group, &*key.kind) {
        _ if roles.contains(&AccessRole::FleetWide) => format!("hub/{kind}/{name}.yaml"),
        ("", "Namespace") => format!("namespaces/{name}/namespace.yaml"),
        _ if key.namespace.is_empty() => format!("cluster-scoped/{kind}/{name}.yaml"),
        _ => format!("namespaces/{}/{kind}/{name}.yaml", path::encode(&key.namespace)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_added_goes_and_what_a_person_wrote_stays() {
        let mut live = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": "shop", "uid": "1", "resourceVersion": "7", "generation": 2, "managedFields": [{}],
                "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubefed.io/sync-controller"],
                "labels": {"team": "a"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        object(&mut live);
        let metadata = json!({"name": "shop", "labels": {"team": "a"}});
        let kept = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": {"finalizers": ["kubernetes"]}});
        assert_eq!(live, kept);
    }

    #[test]
    fn a_template_keeps_its_own_metadata() {
        let mut copied = json!({"metadata": {"creationTimestamp": null, "labels": {"a": "b"}, "annotations": {"c": "d"}}, "data": {}});
        template(&mut copied);
        assert_eq!(
            copied,
            json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "data": {}})
        );
        let mut bare = json!({"metadata": {"creationTimestamp": null}, "status": {}});
        template(&mut bare);
        assert_eq!(bare, json!({}));
    }

    #[test]
    fn every_object_has_a_file_of_its_own() {
        for (key, path) in [
            (
                Key::new("core.kubefed.io", "KubeFedCluster", "kube-federation-system", "oslo"),
                "clusters/oslo.yaml",
            ),
            (
                Key::new("core.kubefed.io", "FederatedTypeConfig", "kube-federation-system", "jobs.batch"),
                "hub/federatedtypeconfig/jobs.batch.yaml",
            ),
            (Key::new("", "Namespace", "", "shop"), "namespaces/shop/namespace.yaml"),
            (
                Key::new("types.kubefed.io", "FederatedDeployment", "shop", "web"),
                "namespaces/shop/federateddeployment/web.yaml",
            ),
            (
                Key::new("types.example.com", "FederatedBoat", "shop", "web"),
                "namespaces/shop/federatedboat.types.example.com/web.yaml",
            ),
            (
                Key::new("types.kubefed.io", "FederatedClusterRole", "", "system:view"),
                "cluster-scoped/federatedclusterrole/system%3Aview.yaml",
            ),
        ] {
            assert_eq!(path_of(&key), path);
        }
    }
}
