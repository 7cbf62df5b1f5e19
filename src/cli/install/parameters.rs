//! The parameters of one installation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use berth_engine::hub_objects::decisions::DecisionApi;

/// The API group of the kinds that grant rights.
pub const RBAC: &str = "rbac.authorization.k8s.io";

/// The parameters of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// The name of its own objects.
    pub name: String,
    pub namespace: String,
    pub image: String,
    /// The Secret with the credentials for the image's registry.
    pub pull_secret: Option<String>,
    /// The repository, and the access to it.
    pub remote: Remote,
    /// The allowed signers of commits, in the format of `ssh-keygen -Y verify`.
    pub allowed_signers: Option<String>,
    /// The container registry that the process reads or writes, if there is one.
    pub registry: Option<Registry>,
    /// The collector of OpenTelemetry, if there is one.
    pub collector: Option<Collector>,
    /// Further environment variables.
    pub env: BTreeMap<String, String>,
    /// The memory limit as a quantity of Kubernetes. `None`: the default of the role.
    pub memory_limit: Option<String>,
    /// The limit of the volume with the working copy, as a quantity.
    pub cache_limit: Option<String>,
    pub network: Network,
    pub role: Role,
}

/// The process that the pods run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    Hub(Hub),
    Member(Member),
}

/// The settings of a daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hub {
    /// The repository that contains only the source, if there is one. Its hosts are known like those of `remote`.
    pub source_remote: Option<Remote>,
    /// The source branch. `None`: the branch that the repository's HEAD names.
    pub source: Option<String>,
    /// The fleet's name in signed commits.
    pub fleet: Option<String>,
    /// True if the daemon writes Events about its own Deployment.
    pub events: bool,
    /// True for two daemons, of which the holder of the Lease with the installation's name publishes.
    pub standby: bool,
    /// The Secret whose `key` signs commits.
    pub signing_secret: Option<String>,
    /// The Secret whose `secret` is known to the senders of webhooks.
    pub webhook_secret: Option<String>,
    /// The Secret whose `signers` are the keys of members that send their statuses.
    pub status_secret: Option<String>,
    /// The Secret whose `address` receives messages.
    pub notify_secret: Option<String>,
    /// The address of the registry to which clusters' folders are published.
    pub publish: Option<String>,
    /// The Secret whose `key` signs artifacts.
    pub artifact_secret: Option<String>,
    pub objects: HubObjects,
}

/// The objects that a daemon writes for other systems in its own cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubObjects {
    /// The kinds of PlacementDecisions to write, if any.
    pub decisions: Vec<DecisionApi>,
    /// The namespace of all decisions. `None`: the namespace of each placement.
    pub decisions_namespace: Option<String>,
    /// True if ClusterProfiles are written.
    pub profiles: bool,
    /// The namespace of the ClusterProfiles. `None`: the daemon's default.
    pub profiles_namespace: Option<String>,
}

impl HubObjects {
    pub(super) fn are_wanted(&self) -> bool {
        self.profiles || !self.decisions.is_empty()
    }
}

/// The settings of a syncer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub cluster: String,
    pub fleet: String,
    /// The kinds of objects in its folder.
    pub kinds: BTreeSet<Resource>,
    /// A ClusterRole that grants the rights on objects, instead of rules for the kinds.
    pub cluster_role: Option<String>,
    /// True if the syncer may grant rights that it does not have itself.
    pub escalate: bool,
    /// The account in each namespace that applies the objects there.
    pub tenant_account: Option<String>,
    /// The objects in its namespace that contain local overrides.
    pub overrides: Vec<Overrides>,
    /// True if the syncer reports the ClusterProperties of its cluster.
    pub cluster_properties: bool,
    /// The daemon to which statuses are sent. `None`: statuses go to the repository.
    pub statuses: Option<Statuses>,
    /// Another program that applies the folder. The process then only reports the program's results.
    pub reporter: Option<Reporter>,
}

/// A daemon that accepts statuses by POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses {
    pub url: String,
    pub port: u16,
    /// The Secret whose `key` signs statuses. `None`: the key for the repository is used.
    pub secret: Option<String>,
}

/// Another program that applies the folder, and the objects for its reporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// The program's name for `berth sync --applier`.
    pub program: String,
    /// Namespace and name of the program's object for the folder, if it is not the usual one.
    pub object: Option<String>,
    /// The program's objects that the reporter reads. Empty if they are in another cluster.
    pub reads: Vec<Read>,
    /// The Secret whose `kubeconfig` gives access to the cluster with these objects.
    pub kubeconfig_secret: Option<String>,
}

/// A right to read one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub namespace: String,
    pub name: String,
    pub kinds: Vec<Resource>,
}

/// A pod's access to a container registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    pub port: u16,
    /// The Secret of type `kubernetes.io/dockerconfigjson` with the credentials.
    pub secret: Option<String>,
    /// True if that Secret also contains `ca.crt`, the registry's authority.
    pub own_authority: bool,
    /// Uses http.
    pub plain: bool,
}

/// A pod's access to a Git remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    pub url: String,
    pub port: Option<u16>,
    /// The Secret with `token`, or with `key` and `known_hosts`; also with `ca.crt` if required. `None` if the server
    /// needs no credentials.
    pub secret: Option<String>,
    pub ssh: bool,
    pub own_authority: bool,
    /// True if the Secret contains a key made by berth.
    pub deploy_key: bool,
    /// The known hosts, unless the Secret contains them.
    pub known_hosts: Option<String>,
}

/// A pod's access to an OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    pub url: String,
    pub port: u16,
    /// The Secret with `headers`.
    pub secret: Option<String>,
}

/// The restriction of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    Open,
    /// Only the connections that berth needs, and these ports.
    Limited {
        ports: BTreeSet<u16>,
    },
}

/// A kind as named in access rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub plural: String,
}

/// The source of local overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrides {
    /// The value of the flag `berth sync --overrides-from`.
    pub text: String,
    /// `configmaps` or `secrets`.
    pub plural: String,
    /// The object's name. `None`: all objects of the kind.
    pub name: Option<String>,
}

impl Remote {
    /// The port of the Git server.
    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(if self.ssh { 22 } else { 443 })
    }
}

impl Member {
    /// Reports whether one of these kinds grants rights.
    pub(super) fn has_access_kinds(&self) -> bool {
        self.kinds.iter().any(|kind| kind.group == RBAC)
    }
}

impl Install {
    pub(super) fn metadata(&self) -> Json {
        self.metadata_of(&self.name)
    }

    /// Returns the metadata of another object in the namespace.
    pub(super) fn metadata_of(&self, name: &str) -> Json {
        json!({"name": name, "namespace": self.namespace, "labels": self.labels()})
    }

    /// Returns the metadata of a cluster-scoped object.
    pub(super) fn cluster_metadata(&self, name: &str) -> Json {
        json!({"name": name, "labels": self.labels()})
    }

    pub(super) fn labels(&self) -> Json {
        let process = match self.role {
            Role::Hub(_) => "berth-run",
            Role::Member(_) => "berth-sync",
        };
        json!({"app.kubernetes.io/name": process, "app.kubernetes.io/instance": self.name})
    }

    /// Reports whether the process uses the API server of its cluster.
    pub(super) fn asks_the_api_server(&self) -> bool {
        match &self.role {
            Role::Hub(hub) => hub.events || hub.standby || hub.objects.are_wanted(),
            Role::Member(_) => true,
        }
    }
}
