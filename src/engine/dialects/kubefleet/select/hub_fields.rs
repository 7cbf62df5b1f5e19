//! Removes the fields that a hub added to an object: identity, status, assigned addresses.

use serde_json::{Map, Value as Json};

use crate::dialects::ParsedDocument;
use berth_base::model::Object;
use berth_base::packed::Packed;

const METADATA: [&str; 8] = [
    "resourceVersion",
    "generation",
    "uid",
    "selfLink",
    "deletionTimestamp",
    "managedFields",
    "creationTimestamp",
    "ownerReferences",
];

const ANNOTATIONS: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"];

const CONTROLLER_UID: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// Returns the object of a document as members get it.
pub(crate) fn without_hub_fields(document: &ParsedDocument) -> Object {
    let mut content = document.root.to_json();
    if let Some(fields) = content.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = inner(fields, "metadata") {
            METADATA.iter().for_each(|key| drop(metadata.remove(*key)));
            remove_from(metadata, "annotations", &ANNOTATIONS);
        }
        match (&*document.key.group, &*document.key.kind) {
            ("", "Service") => service(fields),
            ("batch", "Job") => job(fields),
            _ => {}
        }
    }
    Object { id: document.id(), origin: document.at.clone(), content: Packed::of(&content) }
}

/// Removes addresses and ports that the hub assigned. Chosen node ports cannot be distinguished from assigned
/// ones.
fn service(fields: &mut Map<String, Json>) {
    let Some(spec) = inner(fields, "spec") else { return };
    if spec.get("clusterIP").and_then(Json::as_str) != Some("None") {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    spec.remove("healthCheckNodePort");
    let ports = spec.get_mut("ports").and_then(Json::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Json::as_object_mut) {
        port.remove("nodePort");
    }
}

/// Removes the labels by which a Job's controller finds its pods, if the controller added them.
fn job(fields: &mut Map<String, Json>) {
    let Some(spec) = inner(fields, "spec") else { return };
    if spec.get("manualSelector").and_then(Json::as_bool) == Some(true) {
        return;
    }
    if let Some(selector) = inner(spec, "selector") {
        remove_in(selector, "matchLabels", &CONTROLLER_UID);
    }
    if let Some(metadata) = inner(spec, "template").and_then(|template| inner(template, "metadata")) {
        metadata.remove("creationTimestamp");
        remove_in(metadata, "labels", &CONTROLLER_UID);
    }
}

fn inner<'a>(fields: &'a mut Map<String, Json>, key: &str) -> Option<&'a mut Map<String, Json>> {
    fields.get_mut(key)?.as_object_mut()
}

/// Removes keys from a mapping, which may become empty.
fn remove_in(fields: &mut Map<String, Json>, key: &str, unwanted: &[&str]) {
    if let Some(map) = inner(fields, key) {
        unwanted.iter().for_each(|key| drop(map.remove(*key)));
    }
}

/// Removes keys like [`remove_in`], and the mapping too if it becomes empty.
fn remove_from(fields: &mut Map<String, Json>, key: &str, unwanted: &[&str]) {
    let had = inner(fields, key).is_some_and(|map| !map.is_empty());
    remove_in(fields, key, unwanted);
    if had && inner(fields, key).is_some_and(|map| map.is_empty()) {
        fields.remove(key);
    }
}
