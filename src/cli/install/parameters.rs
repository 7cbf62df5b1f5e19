//! The parameters of one installation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use berth_engine::hub_objects::decisions::Form;

/// The group of the kinds that grant rights.
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
    /// The repository, and how to get in.
    pub remote: Remote,
    /// The allowed signers of commits, in the format of `ssh-keygen -Y verify`.
    pub allowed_signers: Option<String>,
    /// The container registry that the process reads or writes, if there is one.
    pub registry: Option<Registry>,
    /// The collector of OpenTelemetry, if there is one.
    pub collector: Option<Collector>,
    /// Further environment variables.
    pub env: BTreeMap<String, String>,
    /// As a quantity of Kubernetes, like the next one. `None`: the default of the role.
    pub memory_limit: Option<String>,
    /// The limit of the volume with the working copy.
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
    /// The repository of the source alone, if there is one. Its hosts are known as those of the installation's own.
    pub source_remote: Option<Remote>,
    /// The branch that people edit. `None`: the one that the repository's HEAD names.
    pub source: Option<String>,
    /// The name in signed commits.
    pub fleet: Option<String>,
    /// True if the daemon writes Events about its own Deployment.
    pub events: bool,
    /// True for two daemons, of which one publishes, by a Lease of the installation's name.
    pub standby: bool,
    /// The Secret with `key`, which signs commits.
    pub signing_secret: Option<String>,
    /// The Secret with `secret`, which those who send webhooks know.
    pub webhook_secret: Option<String>,
    /// The Secret with `signers`, the keys of members that send their statuses.
    pub status_secret: Option<String>,
    /// The Secret with `address`, to which messages go.
    pub notify_secret: Option<String>,
    /// The address of the registry that gets the clusters' folders.
    pub publish: Option<String>,
    /// The Secret with `key`, which signs artifacts.
    pub artifact_secret: Option<String>,
    pub objects: HubObjects,
}

/// The objects that a daemon writes for others into the cluster that it runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubObjects {
    /// The kinds of PlacementDecisions, if some are written.
    pub decisions: Vec<Form>,
    /// The namespace of all decisions. `None`: that of each placement.
    pub decisions_namespace: Option<String>,
    /// True if ClusterProfiles are written.
    pub profiles: bool,
    /// The namespace of the ClusterProfiles. `None`: the daemon's own default.
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
    /// The kinds of objects it works on.
    pub kinds: BTreeSet<Resource>,
    /// A role of the cluster that gives the rights on objects, in place of rules for the kinds.
    pub cluster_role: Option<String>,
    /// True if the syncer may grant rights that it does not have.
    pub escalate: bool,
    /// The account in each namespace as which objects there are applied.
    pub tenant_account: Option<String>,
    /// The objects in its namespace that hold local overrides.
    pub overrides: Vec<Overrides>,
    /// True if the syncer reports the ClusterProperties of its cluster.
    pub cluster_properties: bool,
    /// The daemon that takes statuses. `None`: they go to the repository.
    pub statuses: Option<Statuses>,
    /// The program that applies the folder, if it is another one: the process then reports how that one does.
    pub reporter: Option<Reporter>,
}

/// A daemon that takes statuses by POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses {
    pub url: String,
    pub port: u16,
    /// The Secret with `key`, which signs statuses. `None`: the key for the repository does.
    pub secret: Option<String>,
}

/// A program that applies the folder, as its reporter sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// The program's name, as `berth sync --applier` takes it.
    pub program: String,
    /// Namespace and name of the program's object for the folder, where it is not the usual one.
    pub object: Option<String>,
    /// The objects of the program that are read. Empty if they are in another cluster.
    pub reads: Vec<Read>,
    /// The Secret with `kubeconfig`, the way to the cluster that has them.
    pub kubeconfig_secret: Option<String>,
}

/// A right to read one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub namespace: String,
    pub name: String,
    pub kinds: Vec<Resource>,
}

/// A container registry as a pod sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    pub port: u16,
    /// The Secret of type `kubernetes.io/dockerconfigjson` with the credentials.
    pub secret: Option<String>,
    /// True if that Secret also holds `ca.crt`, the registry's authority.
    pub own_authority: bool,
    /// True for http.
    pub plain: bool,
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
    /// True if the Secret has a key that berth made.
    pub deploy_key: bool,
    /// The known hosts, where they are not in the Secret.
    pub known_hosts: Option<String>,
}

/// A collector of OpenTelemetry as a pod sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    pub url: String,
    pub port: u16,
    /// The Secret with `headers`.
    pub secret: Option<String>,
}

/// The limits of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    Open,
    /// Only what berth needs, and these ports.
    Limited {
        ports: BTreeSet<u16>,
    },
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

impl Remote {
    /// The port of the Git server.
    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(if self.ssh { 22 } else { 443 })
    }
}

impl Member {
    /// Reports whether some of these kinds grant rights.
    pub(super) fn has_access_kinds(&self) -> bool {
        self.kinds.iter().any(|kind| kind.group == RBAC)
    }
}

impl Install {
    pub(super) fn metadata(&self) -> Json {
        self.metadata_of(&self.name)
    }

    /// The metadata of one more object in the namespace.
    pub(super) fn metadata_of(&self, name: &str) -> Json {
        json!({"name": name, "namespace": self.namespace, "labels": self.labels()})
    }

    /// The metadata of an object of the whole cluster.
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

    /// Reports whether the process talks to the API server of its cluster.
    pub(super) fn asks_the_api_server(&self) -> bool {
        match &self.role {
            Role::Hub(hub) => hub.events || hub.standby || hub.objects.are_wanted(),
            Role::Member(_) => true,
        }
    }
}
