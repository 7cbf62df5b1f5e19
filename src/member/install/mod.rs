//! A member and the kinds in its folder → the manifests that run its syncer in its own cluster.
//!
//! Pure, and the same bytes each time. Nobody gets more rights than the kinds ask for, and no credential
//! is in a manifest: those are named by their Secret.

mod access;
mod syncer;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

/// The parameters of one installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Install {
    pub cluster: String,
    pub fleet: String,
    /// The name of the syncer's own objects and of its record.
    pub name: String,
    pub namespace: String,
    pub image: String,
    /// The repository with the rendered branch, and how to get in.
    pub remote: Remote,
    /// The kinds of objects it works on.
    pub kinds: BTreeSet<Resource>,
    /// True if the syncer may grant rights that it does not have.
    pub escalate: bool,
    /// The account in each namespace as which objects there are applied.
    pub tenant_account: Option<String>,
    /// The objects in its namespace that hold local overrides.
    pub overrides: Vec<Overrides>,
    pub network_policy: bool,
}

/// A Git remote as a pod sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    pub url: String,
    pub port: Option<u16>,
    /// The Secret with `token`, or with `key` and `known_hosts`; and with `ca.crt` where one is asked for.
    /// `None` if the server asks for no credentials.
    pub secret: Option<String>,
    pub ssh: bool,
    pub own_authority: bool,
}

/// A kind as rules of access name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Empty for Kubernetes' core.
    pub group: String,
    pub plural: String,
}

/// The origin of local overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrides {
    /// The text of the flag `berth sync --overrides-from`.
    pub text: String,
    /// `configmaps` or `secrets`.
    pub plural: String,
    /// The object's name. `None`: all of its kind may be listed.
    pub name: Option<String>,
}

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

impl Install {
    /// Reports whether some of these kinds grant rights.
    pub fn has_access_kinds(&self) -> bool {
        self.kinds.iter().any(|kind| kind.group == access::RBAC)
    }

    fn metadata(&self) -> Json {
        json!({"name": self.name, "namespace": self.namespace, "labels": self.labels()})
    }

    fn labels(&self) -> Json {
        json!({"app.kubernetes.io/name": "berth-sync", "app.kubernetes.io/instance": self.name})
    }
}

fn namespace_of(install: &Install) -> Json {
    // Nothing that berth runs needs more than the strictest profile gives.
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": install.namespace,
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    }})
}
