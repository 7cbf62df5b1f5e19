//! Reads plain objects from a live cluster's API server. Besides this module, only the writing ones name the `kube`
//! crate: `installer`, `cluster_events`, `cluster_lease`, `cluster_writes` and the Kubernetes backend of `sync`.
//!
//! - [`kubeconfig`]: builds a client from a kubeconfig and a context. `session`: the client, the runtime and the time
//!   limit of an answer, shared by all that talk to an API server.
//! - [`client`]: lists in pages, some at once through [`concurrency`], and an account's rights. [`error`]: error
//!   messages. [`resource`]: requests.
//!
//! Callers use the trait [`Host`], so that tests need no cluster. This module never writes to a cluster.

pub mod client;
pub mod concurrency;
pub mod error;
pub mod kubeconfig;
pub mod resource;
pub(crate) mod session;

use std::collections::BTreeSet;

use serde_json::Value as Json;

pub use client::Cluster;
pub use error::LiveError;
pub use kubeconfig::{Access, public};
pub use resource::{Query, Resource};

/// A source of a cluster's objects.
pub trait Host {
    /// Returns the address of the API server.
    fn server(&self) -> &str;

    /// Returns the API groups served; the core group is the empty text.
    fn groups(&self) -> Result<BTreeSet<String>, LiveError>;

    /// Returns every resource that can be listed, each in the version its group prefers.
    fn resources(&self) -> Result<Vec<Resource>, LiveError>;

    /// Returns the objects of each query, in the order of the queries; a failed query does not stop the
    /// others. Objects have their `apiVersion` and `kind`, and are sorted by namespace and name.
    fn list(&self, queries: &[Query]) -> Vec<Result<Vec<Json>, LiveError>>;
}
