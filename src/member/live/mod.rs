//! A live cluster's API server → plain objects. The member's Kubernetes backend, `apply`, `cluster_events`,
//! `cluster_lease` and `cluster_objects`, which write, are the only others that name the `kube` crate.
//!
//! - [`access`]: a kubeconfig and a context → a client. `session`: the client with the runtime and the time limit of
//!   every answer, for all that talk to an API server.
//! - [`client`]: lists in pages, some at once by [`concurrency`]. [`error`]: what went wrong, in sentences.
//!   [`resource`]: what can be asked for. [`rights`]: what the account may do.
//!
//! Whoever asks does so through [`Host`], so that it can be asked about without a cluster. Nothing is
//! ever written to a cluster from here.

pub mod access;
pub mod client;
pub mod concurrency;
pub mod error;
pub mod resource;
pub mod rights;
pub(crate) mod session;

use std::collections::BTreeSet;

use serde_json::Value as Json;

pub use access::{Access, public};
pub use client::Cluster;
pub use error::LiveError;
pub use resource::{Query, Resource};

/// A cluster that can be asked what it holds.
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
