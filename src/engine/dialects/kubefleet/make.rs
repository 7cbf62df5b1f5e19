//! A new member → its MemberCluster; a person's approval → its request.

use serde_json::{Value as Json, json};

use super::kinds::{CLUSTER_GROUP, PLACEMENT_GROUP};
use crate::dialects::{ClusterKind, NewCluster, RunApproval, StagedRuns};
use berth_base::model::staged::RunState;

/// The marks that a MemberCluster may have.
pub(super) const CLUSTER_KIND: ClusterKind = ClusterKind {
    group: CLUSTER_GROUP,
    kind: "MemberCluster",
    effects: &["NoSchedule"],
    cordon: Some("NoSchedule"),
    dated: false,
    in_default_set: false,
    needs_endpoint: false,
    document: cluster,
};

/// Makes the MemberCluster of a member, with the identity that its agent would have at a hub.
fn cluster(new: &NewCluster) -> Json {
    let account = new.account.clone().unwrap_or_else(|| format!("fleet-member-agent-{}", new.name));
    let mut document = json!({
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": new.name},
        "spec": {"identity": {
            "apiGroup": "", "kind": "ServiceAccount", "namespace": "fleet-system", "name": account,
        }},
    });
    if !new.labels.is_empty() {
        document["metadata"]["labels"] = json!(new.labels);
    }
    document
}

/// The documents that steer staged update runs.
pub(super) const STAGED_RUNS: StagedRuns = StagedRuns {
    group: PLACEMENT_GROUP,
    state: ["spec", "state"],
    word: |state| match state {
        RunState::Initialize => "Initialize",
        RunState::Run => "Run",
        RunState::Stop => "Stop",
    },
    approval,
};

/// Makes the approval request as the hub does, with the condition that a person sets.
fn approval(given: &RunApproval<'_>) -> Json {
    let RunApproval { run, gate, message, now } = given;
    let kind = if run.namespace.is_empty() { "ClusterApprovalRequest" } else { "ApprovalRequest" };
    let name = format!("{}-{}-{}", run.name, gate.side.word(), gate.stage);
    let mut document = json!({
        "apiVersion": format!("{PLACEMENT_GROUP}/v1beta1"),
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"parentStageRollout": run.name, "targetStage": gate.stage},
        "status": {"conditions": [{
            "type": "Approved", "status": "True", "reason": "Approved", "message": message,
            "lastTransitionTime": now.to_string(),
        }]},
    });
    if !run.namespace.is_empty() {
        document["metadata"]["namespace"] = json!(run.namespace);
    }
    document
}
