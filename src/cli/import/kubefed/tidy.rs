//! Converts each of KubeFed's kinds for its file, with the same meaning for berth as for KubeFed.

use serde_json::{Map, Value as Json, json};

use crate::import::{Gathered, clean, some_of};
use berth_member::live::public;

/// Keeps the parts of a cluster's status that decisions read: readiness and location. Removes credentials from its
/// addresses; the Secrets with tokens stay on the host.
pub(super) fn cluster(object: &mut Json) {
    let ready = is_ready(object);
    let mut status = Map::new();
    for key in ["region", "zones"] {
        let value = object.pointer(&format!("/status/{key}")).filter(|value| !is_empty(value));
        status.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    if !ready || !status.is_empty() {
        // A status without the condition would mean that the cluster is not ready.
        let word = if ready { "True" } else { "False" };
        status.insert("conditions".to_owned(), json!([{"type": "Ready", "status": word}]));
    }
    clean::object(object);
    for key in ["apiEndpoint", "proxyURL"] {
        if let Some(Json::String(url)) = object.pointer_mut(&format!("/spec/{key}"))
            && url.contains('@')
        {
            *url = public(url);
        }
    }
    if let (Some(fields), false) = (object.as_object_mut(), status.is_empty()) {
        fields.insert("status".to_owned(), status.into());
    }
}

/// Reports whether KubeFed considers the cluster ready: its condition `Ready` is `True`.
pub(super) fn is_ready(cluster: &Json) -> bool {
    let conditions = cluster.pointer("/status/conditions").and_then(Json::as_array);
    let ready =
        |one: &Json| one.get("type") == Some(&json!("Ready")) && one.get("status") == Some(&json!("True"));
    conditions.is_some_and(|conditions| conditions.iter().any(ready))
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(list) => list.is_empty(),
        _ => false,
    }
}

pub(super) fn federated(object: &mut Json) {
    clean::object(object);
    let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) else { return };
    if let Some(template) = spec.get_mut("template") {
        clean::template(template);
    }
    let overrides = spec.get_mut("overrides").and_then(Json::as_array_mut).into_iter().flatten();
    let lists = overrides.filter_map(|entry| entry.get_mut("clusterOverrides").and_then(Json::as_array_mut));
    for operation in lists.flatten().filter_map(Json::as_object_mut) {
        spell_null(operation);
    }
}

/// Writes a dropped null. KubeFed's server drops it, and KubeFed takes a missing value for null; berth requires it.
fn spell_null(operation: &mut Map<String, Json>) {
    let sets = operation.get("op").and_then(Json::as_str).is_none_or(|op| op != "remove");
    if sets && !operation.contains_key("value") {
        operation.insert("value".to_owned(), Json::Null);
    }
}

/// Removes the fields of a Namespace that the server fills in.
pub(in crate::import) fn namespace(object: &mut Json) {
    clean::object(object);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("spec");
    }
    if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Json::as_object_mut) {
        labels.remove("kubernetes.io/metadata.name");
        if labels.is_empty()
            && let Some(metadata) = object.pointer_mut("/metadata").and_then(Json::as_object_mut)
        {
            metadata.remove("labels");
        }
    }
}

/// Reports fields with more effect in berth than in KubeFed.
pub(super) fn report(gathered: &mut Gathered) {
    let annotated = gathered.objects.iter().filter(|(_, object)| {
        let annotations = object.pointer("/spec/template/metadata/annotations").and_then(Json::as_object);
        annotations.is_some_and(|annotations| !annotations.is_empty())
    });
    let annotated: Vec<_> = annotated.map(|(key, _)| key.to_string()).collect();
    if !annotated.is_empty() {
        let message = format!(
            "KubeFed dropped a template's annotations, and berth keeps them: members will get those of {}",
            some_of(annotated)
        );
        gathered.warn(message, Some("remove from the templates the annotations that members must not get"));
    }
}
