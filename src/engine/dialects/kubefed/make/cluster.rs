//! A new member → its KubeFedCluster.

use serde_json::{Value as Json, json};

use super::SYSTEM_NAMESPACE;
use crate::dialects::{ClusterKind, NewCluster};

/// The marks that a KubeFedCluster may have: only labels.
pub(crate) const CLUSTER_KIND: ClusterKind = ClusterKind {
    group: "core.kubefed.io",
    kind: "KubeFedCluster",
    effects: &[],
    cordon: None,
    dated: false,
    in_default_set: false,
    needs_endpoint: true,
    document: cluster,
};

/// Makes the KubeFedCluster of a member.
fn cluster(new: &NewCluster) -> Json {
    let mut document = json!({
        "apiVersion": "core.kubefed.io/v1beta1",
        "kind": "KubeFedCluster",
        "metadata": {"name": new.name, "namespace": SYSTEM_NAMESPACE},
        "spec": {"secretRef": {"name": new.account.as_ref().unwrap_or(&new.name)}},
    });
    if let Some(endpoint) = &new.endpoint {
        document["spec"]["apiEndpoint"] = endpoint.clone().into();
    }
    if !new.labels.is_empty() {
        document["metadata"]["labels"] = json!(new.labels);
    }
    document
}
