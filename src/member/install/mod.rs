//! A member and the kinds in its folder → the manifests that run its syncer in its own cluster.
//!
//! Pure, and the same bytes each time. Nobody gets more rights than the kinds ask for, and no credential
//! is in a manifest: those are named by their Secret.

mod access;
mod parameters;
mod syncer;
#[cfg(test)]
mod tests;

use serde_json::{Value as Json, json};

pub use parameters::{Install, Overrides, Remote, Resource};

/// Objects that belong into one file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub name: &'static str,
    /// Notes for the reader, one a line.
    pub about: Vec<String>,
    pub objects: Vec<Json>,
}

/// The files' names, of those too that are only made where asked for.
pub const FILES: [&str; 4] = ["1-namespace.yaml", "2-access.yaml", "3-syncer.yaml", "4-network-policy.yaml"];

/// Returns the manifests, in the order in which they are applied.
pub fn files(install: &Install) -> Vec<File> {
    let [namespace, access, syncer, network] = FILES;
    let file = |name, about, objects| File { name, about, objects };
    let mut files = vec![
        file(namespace, Vec::new(), vec![namespace_of(install)]),
        file(access, access::about(install), access::objects(install)),
        file(syncer, syncer::about(install), vec![syncer::deployment(install)]),
    ];
    if install.network_policy {
        files.push(file(network, Vec::new(), vec![syncer::network_policy(install)]));
    }
    files
}

fn namespace_of(install: &Install) -> Json {
    // Nothing that berth runs needs more than the strictest profile gives.
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": install.namespace,
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    }})
}
