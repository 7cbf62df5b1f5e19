//! Converts an object from its server's form to its author's: removes everything that only a server or a controller
//! writes.

use berth_base::meta::SERVER_FIELDS;
use serde_json::{Map, Value as Json};

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
}
