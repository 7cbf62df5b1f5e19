//! The status of a policy, as in the next API: four conditions, and the clusters by their progress.

use serde_json::{Value as Json, json};

use crate::dialects::Described;
use crate::dialects::kubefleet::describe::{Step, Word};

/// The indexes of two conditions among those of a cluster.
const SYNCHRONIZED: usize = 2;
const AVAILABLE: usize = 4;

/// Returns the status of a policy. `clusters` has the conditions of each picked cluster, in order.
pub fn describe(described: &Described<'_>, clusters: Vec<Vec<Step>>) -> Json {
    let decision = described.decision;
    let wanted = described.fleet.and_then(|fleet| {
        let policy = fleet.placements.get(&decision.key)?.own_policy()?;
        policy.selection.wanted()
    });
    let reached = |step: usize| {
        clusters.iter().filter(|steps| steps.get(step).is_some_and(|step| step.word == Word::True)).count()
    };
    let (picked, synchronized, available) = (clusters.len(), reached(SYNCHRONIZED), reached(AVAILABLE));
    let condition = |kind: &str, done: bool, reasons: [&str; 2], message: String| {
        let (status, reason) = if done { ("True", reasons[0]) } else { ("False", reasons[1]) };
        json!({"type": kind, "status": status, "reason": reason, "message": message})
    };
    let is_blocked = decision.condition.as_ref().is_some_and(|one| one.reason == "InvalidResourceSelectors");
    let mut conditions = vec![condition(
        "ResourceCollected",
        !is_blocked,
        ["AllResourcesCollected", "FailedToCollectSomeResources"],
        format!("{} objects are selected", decision.objects.len()),
    )];
    conditions.extend(
        decision
            .condition
            .iter()
            .map(|one| condition(&one.kind, one.status, [&one.reason, &one.reason], one.message.clone())),
    );
    conditions.push(condition(
        "Synchronized",
        synchronized == picked,
        ["AllClustersSynchronized", "FailedToSynchronizeSomeClusters"],
        format!("{synchronized} of {picked} clusters have the objects"),
    ));
    conditions.push(condition(
        "Available",
        available == picked,
        ["ResourcesAvailableOnAllClusters", "ResourcesUnavailableOnSomeClusters"],
        format!("in {available} of {picked} clusters the objects are available"),
    ));
    json!({
        "conditions": conditions,
        "desiredClusters": wanted.unwrap_or(picked),
        "scheduledClusters": picked,
        "synchronizedClusters": synchronized,
        "resourcesAvailableClusters": available,
    })
}
