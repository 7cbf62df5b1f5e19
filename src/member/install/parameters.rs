//! The parameters of one installation.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

/// The group of the kinds that grant rights.
pub const RBAC: &str = "rbac.authorization.k8s.io";

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

impl Install {
    /// Reports whether some of these kinds grant rights.
    pub(crate) fn has_access_kinds(&self) -> bool {
        self.kinds.iter().any(|kind| kind.group == RBAC)
    }

    pub fn metadata(&self) -> Json {
        json!({"name": self.name, "namespace": self.namespace, "labels": self.labels()})
    }

    pub fn labels(&self) -> Json {
        json!({"app.kubernetes.io/name": "berth-sync", "app.kubernetes.io/instance": self.name})
    }
}
