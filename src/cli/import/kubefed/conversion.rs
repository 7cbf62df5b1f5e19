//! Converts each of KubeFed's kinds for its file, with the same meaning for berth as for KubeFed, and removes from
//! Federated objects the fields that KubeFed's replica scheduler wrote.
//!
//! For every preference, the scheduler lists the clusters under `spec.placement.clusters` and sets `/spec/replicas`
//! in the overrides. berth computes both itself, so in a file they would become outdated. If berth ignores a
//! preference, the fields take effect, and are kept.

use serde_json::{Map, Value as Json, json};

use crate::import::{Gathered, objects, some_of};
use berth_base::diag::Diagnostic;
use berth_base::model::{Fleet, Source};
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
    objects::object(object);
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
    objects::object(object);
    let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) else { return };
    if let Some(template) = spec.get_mut("template") {
        objects::template(template);
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
    objects::object(object);
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

/// The path that the scheduler writes.
pub(super) const REPLICAS: &str = "/spec/replicas";

pub(super) fn settle(gathered: &mut Gathered, fleet: &Fleet) {
    let mut settled = Vec::new();
    for (key, placement) in &fleet.placements {
        let divided = matches!(&placement.source, Source::Own(policy) if policy.division.is_some());
        let Some(object) = gathered.objects.get_mut(key).filter(|_| divided) else { continue };
        let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) else { continue };
        let (placement, numbers) = (drop_clusters(spec), drop_numbers(spec));
        if placement || numbers {
            settled.push(key.clone());
        }
    }
    if !settled.is_empty() {
        let message = format!(
            "removed the clusters and replicas that KubeFed's scheduler had written into {}; berth \
             divides by the preference",
            some_of(&settled)
        );
        gathered.diagnostics.push(Diagnostic::note(message));
    }
}

/// Removes the scheduler's clusters. It leaves a selector in place; without a selector, every ready cluster took
/// part.
fn drop_clusters(spec: &mut Map<String, Json>) -> bool {
    let Some(placement) = spec.get_mut("placement").and_then(Json::as_object_mut) else { return false };
    let dropped = placement.remove("clusters").is_some();
    if dropped && placement.get("clusterSelector").is_none_or(Json::is_null) {
        placement.insert("clusterSelector".to_owned(), json!({}));
    }
    dropped
}

fn drop_numbers(spec: &mut Map<String, Json>) -> bool {
    let Some(overrides) = spec.get_mut("overrides").and_then(Json::as_array_mut) else { return false };
    let mut dropped = false;
    for entry in overrides.iter_mut() {
        let Some(operations) = entry.get_mut("clusterOverrides").and_then(Json::as_array_mut) else {
            continue;
        };
        // Next to an operation on the parent of the number, the position in the list matters.
        if operations.iter().any(|one| ["", "/spec"].contains(&path_of(one))) {
            continue;
        }
        let before = operations.len();
        operations.retain(|one| path_of(one) != REPLICAS || one.get("op") == Some(&json!("remove")));
        dropped |= operations.len() < before;
    }
    let is_empty =
        |entry: &Json| entry.get("clusterOverrides").and_then(Json::as_array).is_some_and(Vec::is_empty);
    if dropped {
        overrides.retain(|entry| !is_empty(entry));
    }
    if overrides.is_empty() {
        spec.remove("overrides");
    }
    dropped
}

fn path_of(operation: &Json) -> &str {
    operation.get("path").and_then(Json::as_str).unwrap_or_default()
}
