//! The Secrets of a pod other than the one for its repository.

use super::parameters::{Hub, Install, Member, Remote, Role};

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
        Role::Hub(hub) => of_hub(hub),
        Role::Member(member) => of_member(member),
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

fn of_member(member: &Member) -> Vec<(Option<&str>, SecretUse)> {
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

fn of_hub(hub: &Hub) -> Vec<(Option<&str>, SecretUse)> {
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
