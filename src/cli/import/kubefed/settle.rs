//! Removes from Federated objects the fields that KubeFed's replica scheduler wrote.
//!
//! For every preference, the scheduler lists the clusters under `spec.placement.clusters` and sets `/spec/replicas`
//! in the overrides. berth computes both itself, so in a file they would become outdated. If berth ignores a
//! preference, the fields take effect, and are kept.

use serde_json::{Map, Value as Json, json};

use crate::import::{Gathered, some_of};
use berth_base::diag::Diagnostic;
use berth_base::model::{Fleet, Source};

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
