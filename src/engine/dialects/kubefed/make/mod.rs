//! Makes KubeFed's documents, as its command line did, for `berth federate`, `join` and `enable`.
//!
//! - [`federate`]: plain objects → Federated objects, with their options and the faults that the reader would
//!   report. `template`: an object → its template, or the reason why it is left out.
//! - [`ApiResource`]: a type by its several names. [`KnownTypes`]: the types with a Federated kind.
//! - `new_cluster`: a new member → its KubeFedCluster.

mod federate;
mod template;
mod types;

#[cfg(test)]
mod tests;

use serde_json::{Value as Json, json};

use crate::dialects::{ClusterKind, NewCluster};

pub use federate::{FederateOptions, FederateSubject, Federated, GeneratedDocument, Where, federate};
pub use types::{
    ApiResource, FederatedKind, KnownTypes, Resources, TYPE_CONFIG_KIND, federated_names, plural_of,
    read_type_config, type_config,
};

/// The namespace of KubeFed's own objects.
const SYSTEM_NAMESPACE: &str = super::config::DEFAULT_NAMESPACE;

/// The group of FederatedTypeConfigs.
pub const TYPE_CONFIG_GROUP: &str = super::kinds::CORE;

/// The annotation that lets members keep the objects of a removed Federated object.
pub const ORPHAN: &str = super::lifecycle::ORPHAN;

/// The marks that a KubeFedCluster may have: only labels.
pub(super) const CLUSTER_KIND: ClusterKind = ClusterKind {
    group: "core.kubefed.io",
    kind: "KubeFedCluster",
    effects: &[],
    cordon: None,
    dated: false,
    in_default_set: false,
    needs_endpoint: true,
    document: new_cluster,
};

/// Makes the KubeFedCluster of a member.
fn new_cluster(new: &NewCluster) -> Json {
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
