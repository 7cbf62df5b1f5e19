//! A new member → its ManagedCluster.

use serde_json::{Value as Json, json};

use crate::dialects::NewCluster;

/// The ManagedCluster of a member.
pub fn cluster(new: &NewCluster) -> Json {
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
