//! A new member → its MemberCluster.

use serde_json::{Value as Json, json};

use super::kinds::CLUSTER_GROUP;
use crate::dialects::{ClusterKind, NewCluster};

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

/// The MemberCluster of a member, with the identity that its agent would have at a hub.
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
