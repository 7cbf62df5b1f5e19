//! Makes KubeFed's documents, as its command line did, for `berth federate`, `join` and `enable`.
//!
//! - [`federate`]: plain objects → Federated objects. `template`: an object → its template. `skip`: objects
//!   that are left out, with the reason. `check`: faults that the reader would report.
//! - [`ApiResource`]: a type by its several names. [`KnownTypes`]: the types with a Federated kind.
//! - `cluster`: a new member → its KubeFedCluster.

mod check;
mod cluster;
mod federate;
mod options;
mod resources;
mod skip;
mod template;
#[cfg(test)]
mod tests;
mod types;

pub(super) use cluster::CLUSTER_KIND;
pub use federate::{Federated, Made, Subject, federate};
pub use options::{Options, Where};
pub use resources::{ApiResource, Resources, plural_of};
pub use types::{
    FederatedKind, KnownTypes, TYPE_CONFIG_KIND, federated_names, read_type_config, type_config,
};

/// The namespace of KubeFed's own objects.
pub(crate) const SYSTEM_NAMESPACE: &str = super::config::DEFAULT_NAMESPACE;

/// The group of FederatedTypeConfigs.
pub const TYPE_CONFIG_GROUP: &str = super::kinds::CORE;

/// The annotation that lets members keep the objects of a removed Federated object.
pub const ORPHAN: &str = super::lifecycle::ORPHAN;
