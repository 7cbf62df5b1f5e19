//! The settings of the process: each flag has a variable. And the Secrets of a pod other than the one for its
//! repository.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::parameters::{Hub, Install, Member, Remote, Role};
use super::pod::{CACHES, CREDENTIALS, METRICS, STATUS, TRUST, WEBHOOK};
use berth_engine::hub_objects::decisions::DecisionApi;

/// Returns the settings as environment variables, including those that users add.
pub fn environment(install: &Install) -> Vec<Json> {
    let own = own_environment(install).into_iter().map(|(name, value)| (name.to_owned(), value));
    let all: BTreeMap<String, String> = install.env.clone().into_iter().chain(own).collect();
    all.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// Returns the variables set by the parameters: each flag has a variable.
pub fn own_environment(install: &Install) -> BTreeMap<&'static str, String> {
    let remote = &install.remote;
    let mut set = BTreeMap::from([
        ("BERTH_REMOTE", remote.url.clone()),
        ("BERTH_METRICS", format!("0.0.0.0:{METRICS}")),
        ("XDG_CACHE_HOME", CACHES.to_owned()),
    ]);
    if remote.secret.is_some() {
        if remote.ssh {
            set.insert("BERTH_SSH_KEY", format!("{CREDENTIALS}/key"));
            set.insert("BERTH_KNOWN_HOSTS", format!("{CREDENTIALS}/known_hosts"));
        } else {
            set.insert("BERTH_TOKEN_FILE", format!("{CREDENTIALS}/token"));
        }
        if remote.own_authority {
            set.insert("BERTH_CA_FILE", format!("{CREDENTIALS}/ca.crt"));
        }
    }
    if let Some(registry) = &install.registry {
        if registry.own_authority {
            set.insert("BERTH_REGISTRY_CA_FILE", format!("{REGISTRY}/ca.crt"));
        }
        if registry.plain {
            set.insert("BERTH_REGISTRY_HTTP", "true".to_owned());
        }
    }
    if remote.known_hosts.is_some() {
        set.insert("BERTH_KNOWN_HOSTS", format!("{TRUST}/known_hosts"));
    }
    if let Some(collector) = &install.collector {
        set.insert("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.clone());
    }
    let secrets = own_secrets(install).into_iter();
    set.extend(secrets.map(|own| (own.variable, format!("{}/{}", own.folder(), own.key))));
    if install.allowed_signers.is_some() {
        set.insert("BERTH_ALLOWED_SIGNERS", format!("{TRUST}/allowed_signers"));
    }
    match &install.role {
        Role::Hub(hub) => {
            set.extend(of_hub_objects(hub));
            let events = hub.events.then(|| format!("deployment/{}/{}", install.namespace, install.name));
            let standby = hub.standby.then(|| format!("lease/{}/{}", install.namespace, install.name));
            let webhook = hub.webhook_secret.is_some().then(|| format!("0.0.0.0:{WEBHOOK}"));
            let status = hub.status_secret.is_some().then(|| format!("0.0.0.0:{STATUS}"));
            let given = [
                ("BERTH_SOURCE_REMOTE", hub.source_remote.as_ref().map(|remote| remote.url.clone())),
                ("BERTH_SOURCE", hub.source.clone()),
                ("BERTH_FLEET", hub.fleet.clone()),
                ("BERTH_EVENTS", events),
                ("BERTH_STANDBY", standby),
                ("BERTH_WEBHOOK", webhook),
                ("BERTH_STATUS_LISTEN", status),
                ("BERTH_PUBLISH", hub.publish.clone()),
            ];
            set.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        }
        Role::Member(member) => set.extend(of_member(install, member)),
    }
    set
}

/// Returns the settings for objects that the daemon writes for other systems in its own cluster.
fn of_hub_objects(hub: &Hub) -> Vec<(&'static str, String)> {
    let objects = &hub.objects;
    let word = |form: &DecisionApi| match form {
        DecisionApi::Sig => "sig",
        DecisionApi::Ocm => "ocm",
    };
    let kinds: Vec<&str> = objects.decisions.iter().map(word).collect();
    let here = |is_wanted: bool| is_wanted.then(|| "kube".to_owned());
    let all = [
        ("BERTH_PUBLISH_DECISIONS", here(!kinds.is_empty())),
        // Without the variable, the daemon writes every kind that the cluster serves.
        ("BERTH_DECISION_KINDS", (kinds.len() == 1).then(|| kinds.join(","))),
        ("BERTH_DECISIONS_NAMESPACE", objects.decisions_namespace.clone()),
        ("BERTH_PUBLISH_PROFILES", here(objects.profiles)),
        ("BERTH_PROFILES_NAMESPACE", objects.profiles_namespace.clone()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn of_member(install: &Install, member: &Member) -> Vec<(&'static str, String)> {
    let mut set = vec![
        ("BERTH_CLUSTER", member.cluster.clone()),
        ("BERTH_FLEET", member.fleet.clone()),
        ("BERTH_NAMESPACE", install.namespace.clone()),
        ("BERTH_TARGET", "kube".to_owned()),
    ];
    set.extend(member.tenant_account.clone().map(|account| ("BERTH_TENANT_SERVICE_ACCOUNT", account)));
    if !member.overrides.is_empty() {
        let from: Vec<&str> = member.overrides.iter().map(|from| from.text.as_str()).collect();
        set.push(("BERTH_OVERRIDES_FROM", from.join(",")));
    }
    if member.cluster_properties {
        set.push(("BERTH_CLUSTER_PROPERTIES", "true".to_owned()));
    }
    set.extend(member.statuses.as_ref().map(|statuses| ("BERTH_STATUS_POST", statuses.url.clone())));
    if let Some(reporter) = &member.reporter {
        set.push(("BERTH_APPLIER", reporter.program.clone()));
        set.extend(reporter.object.clone().map(|object| ("BERTH_APPLIER_OBJECT", object)));
    }
    set
}

/// The key of a pull secret.
const DOCKER_CONFIG: &str = ".dockerconfigjson";

/// The folder with the registry's credentials.
pub const REGISTRY: &str = "/etc/berth/registry";

/// A Secret that is mounted as a file for the process.
pub struct OwnSecret<'a> {
    pub secret: &'a str,
    pub about: &'static str,
    pub volume: &'static str,
    pub key: &'static str,
    /// The variable for the file's path.
    pub variable: &'static str,
    /// True if it also contains the authority of its server.
    pub own_authority: bool,
}

impl OwnSecret<'_> {
    pub fn folder(&self) -> String {
        format!("/etc/berth/{}", self.volume)
    }

    /// Returns its type for `kubectl create secret`.
    pub fn sort(&self) -> &'static str {
        // A pull secret must not be generic.
        if self.key == DOCKER_CONFIG { "docker-registry" } else { "generic" }
    }

    /// Returns all required keys.
    pub fn keys(&self) -> Vec<&'static str> {
        std::iter::once(self.key).chain(self.own_authority.then_some("ca.crt")).collect()
    }
}

/// Returns all Secrets other than the one for the repository.
pub fn own_secrets(install: &Install) -> Vec<OwnSecret<'_>> {
    let collector = install.collector.as_ref().and_then(|collector| collector.secret.as_deref());
    let headers = SecretUse {
        about: "the headers for the collector, `name=value` on each line",
        volume: "otlp",
        key: "headers",
        variable: "BERTH_OTLP_HEADERS_FILE",
    };
    let registry = install.registry.as_ref();
    let login = registry.and_then(|registry| registry.secret.as_deref());
    let credentials = SecretUse {
        about: "the credentials for the container registry",
        volume: "registry",
        key: DOCKER_CONFIG,
        variable: "BERTH_REGISTRY_AUTH",
    };
    let of_role = match &install.role {
        Role::Hub(hub) => secrets_of_hub(hub),
        Role::Member(member) => secrets_of_member(member),
    };
    let own = |(secret, SecretUse { about, volume, key, variable }): (Option<_>, SecretUse)| {
        let own_authority = key == DOCKER_CONFIG && registry.is_some_and(|registry| registry.own_authority);
        Some(OwnSecret { secret: secret?, about, volume, key, variable, own_authority })
    };
    of_role.into_iter().chain([(login, credentials), (collector, headers)]).filter_map(own).collect()
}

/// The use of a Secret: its content, volume, key and variable.
struct SecretUse {
    about: &'static str,
    volume: &'static str,
    key: &'static str,
    variable: &'static str,
}

fn secrets_of_member(member: &Member) -> Vec<(Option<&str>, SecretUse)> {
    let statuses = member.statuses.as_ref().and_then(|statuses| statuses.secret.as_deref());
    let records = member.reporter.as_ref().and_then(|reporter| reporter.kubeconfig_secret.as_deref());
    vec![
        (
            statuses,
            SecretUse {
                about: "the key that signs statuses",
                volume: "status",
                key: "key",
                variable: "BERTH_STATUS_KEY",
            },
        ),
        (
            records,
            SecretUse {
                about: "the way to the program's cluster",
                volume: "applier",
                key: "kubeconfig",
                variable: "BERTH_APPLIER_KUBECONFIG",
            },
        ),
    ]
}

fn secrets_of_hub(hub: &Hub) -> Vec<(Option<&str>, SecretUse)> {
    let (source, (key, variable)) = match &hub.source_remote {
        Some(Remote { secret, ssh: true, .. }) => (secret, ("key", "BERTH_SOURCE_SSH_KEY")),
        Some(Remote { secret, .. }) => (secret, ("token", "BERTH_SOURCE_TOKEN_FILE")),
        None => (&None, ("", "")),
    };
    let all = [
        (
            source,
            SecretUse {
                about: "the credentials for the source's repository",
                volume: "source",
                key,
                variable,
            },
        ),
        (
            &hub.signing_secret,
            SecretUse {
                about: "the key that signs commits",
                volume: "signing",
                key: "key",
                variable: "BERTH_SIGNING_KEY",
            },
        ),
        (
            &hub.webhook_secret,
            SecretUse {
                about: "the secret of webhooks",
                volume: "webhook",
                key: "secret",
                variable: "BERTH_WEBHOOK_SECRET_FILE",
            },
        ),
        (
            &hub.status_secret,
            SecretUse {
                about: "the keys of members",
                volume: "status",
                key: "signers",
                variable: "BERTH_STATUS_SIGNERS",
            },
        ),
        (
            &hub.notify_secret,
            SecretUse {
                about: "the address for messages",
                volume: "notify",
                key: "address",
                variable: "BERTH_NOTIFY_FILE",
            },
        ),
        (
            &hub.artifact_secret,
            SecretUse {
                about: "the key that signs artifacts",
                volume: "artifacts",
                key: "key",
                variable: "BERTH_ARTIFACT_SIGNING_KEY",
            },
        ),
    ];
    all.into_iter().map(|(secret, its_use)| (secret.as_deref(), its_use)).collect()
}
