//! A new member → its ManagedCluster.

use serde_json::{Value as Json, json};

use super::cluster::EFFECT_WORDS;
use super::groups::CLUSTER;
use crate::dialects::{ClusterKind, NewCluster};

/// The marks that a ManagedCluster may have.
pub(super) const CLUSTER_KIND: ClusterKind = ClusterKind {
    group: CLUSTER,
    kind: "ManagedCluster",
    effects: &EFFECT_WORDS,
    cordon: Some("NoSelectIfNew"),
    dated: true,
    in_default_set: true,
    needs_endpoint: false,
    document: cluster,
};

/// Makes the ManagedCluster of a member.
fn cluster(new: &NewCluster) -> Json {
    let mut document = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": new.name},
        "spec": {"hubAcceptsClient": true},
    });
    if let Some(endpoint) = &new.endpoint {
        document["spec"]["managedClusterClientConfigs"] = json!([{"url": endpoint}]);
    }
    if !new.labels.is_empty() {
        document["metadata"]["labels"] = json!(new.labels);
    }
    document
}
