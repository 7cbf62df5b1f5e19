//! Frozen workloads: no new copy may be rendered, so their current copies are used.

use std::sync::Arc;

use serde_json::Value as Json;

use super::Previous;
use berth_base::model::{Decision, Key, Object, ObjectId, Shared, Template, Workload};
use berth_base::packed::Packed;

/// Returns a frozen workload with its current objects. Their contents are taken from the current state.
pub(super) fn with_objects(workload: &Workload, previous: Previous<'_>) -> Workload {
    let before = previous.decisions.get(&workload.key);
    let objects = before.map(|before| before.objects.as_slice()).unwrap_or_default();
    Workload {
        templates: objects.iter().map(|id| template(workload, id)).collect(),
        overrides: Shared::default(),
        ..workload.clone()
    }
}

fn template(workload: &Workload, id: &ObjectId) -> Template {
    let object = Object { id: id.clone(), origin: workload.origin.clone(), content: Packed::of(&Json::Null) };
    Template {
        object: Arc::new(object),
        final_labels: Arc::default(),
        sync_annotations: Arc::default(),
        retained: Vec::new(),
    }
}

/// Restores the objects of the current decision.
pub(super) fn note(previous: Previous<'_>, key: &Key, decision: &mut Decision) {
    let Some(before) = previous.decisions.get(key) else { return };
    decision.objects.clone_from(&before.objects);
    let stays = before.failures.iter().filter(|failure| decision.has(&failure.cluster));
    decision.failures = stays.cloned().collect();
}
