//! The Secrets of a pod beside the one for its repository.

use super::parameters::{Hub, Install, Member, Remote, Role};

/// The key of a pull secret.
const DOCKER_CONFIG: &str = ".dockerconfigjson";

/// The folder of the registry's credentials.
pub const REGISTRY: &str = "/etc/berth/registry";

/// A Secret with a file for the process.
pub struct OwnSecret<'a> {
    pub secret: &'a str,
    pub about: &'static str,
    pub volume: &'static str,
    pub key: &'static str,
    /// The variable with the file's path.
    pub variable: &'static str,
    /// True if it also has the authority of its server.
    pub own_authority: bool,
}

impl OwnSecret<'_> {
    pub fn folder(&self) -> String {
        format!("/etc/berth/{}", self.volume)
    }

    /// Returns its sort, as `kubectl create secret` names it.
    pub fn sort(&self) -> &'static str {
        // A generic one with this key is refused where a pull secret is looked for.
        if self.key == DOCKER_CONFIG { "docker-registry" } else { "generic" }
    }

    /// Returns all keys that it needs.
    pub fn keys(&self) -> Vec<&'static str> {
        std::iter::once(self.key).chain(self.own_authority.then_some("ca.crt")).collect()
    }
}

/// Returns the Secrets beside the one for the repository.
pub fn own_secrets(install: &Install) -> Vec<OwnSecret<'_>> {
    let collector = install.collector.as_ref().and_then(|collector| collector.secret.as_deref());
    let headers = "the headers for the collector, `name=value` on each line";
    let headers = (collector, headers, "otlp", "headers", "BERTH_OTLP_HEADERS_FILE");
    let registry = install.registry.as_ref();
    let login = registry.and_then(|registry| registry.secret.as_deref());
    let login = (
        login,
        "the credentials for the container registry",
        "registry",
        DOCKER_CONFIG,
        "BERTH_REGISTRY_AUTH",
    );
    let of_role = match &install.role {
        Role::Hub(hub) => of_hub(hub),
        Role::Member(member) => of_member(member),
    };
    of_role
        .into_iter()
        .chain([login, headers])
        .filter_map(|(secret, about, volume, key, variable)| {
            let own_authority =
                key == DOCKER_CONFIG && registry.is_some_and(|registry| registry.own_authority);
            Some(OwnSecret { secret: secret?, about, volume, key, variable, own_authority })
        })
        .collect()
}

/// A Secret, if there is one: its name, its content, its volume, its key and its variable.
type Row<'a> = (Option<&'a str>, &'static str, &'static str, &'static str, &'static str);

fn of_member(member: &Member) -> Vec<Row<'_>> {
    let statuses = member.statuses.as_ref().and_then(|statuses| statuses.secret.as_deref());
    let records = member.reporter.as_ref().and_then(|reporter| reporter.kubeconfig_secret.as_deref());
    vec![
        (statuses, "the key that signs statuses", "status", "key", "BERTH_STATUS_KEY"),
        (records, "the way to the program's cluster", "applier", "kubeconfig", "BERTH_APPLIER_KUBECONFIG"),
    ]
}

fn of_hub(hub: &Hub) -> Vec<Row<'_>> {
    let (source, (key, variable)) = match &hub.source_remote {
        Some(Remote { secret, ssh: true, .. }) => (secret, ("key", "BERTH_SOURCE_SSH_KEY")),
        Some(Remote { secret, .. }) => (secret, ("token", "BERTH_SOURCE_TOKEN_FILE")),
        None => (&None, ("", "")),
    };
    let all = [
        (source, "the credentials for the source's repository", "source", key, variable),
        (&hub.signing_secret, "the key that signs commits", "signing", "key", "BERTH_SIGNING_KEY"),
        (&hub.webhook_secret, "the secret of webhooks", "webhook", "secret", "BERTH_WEBHOOK_SECRET_FILE"),
        (&hub.status_secret, "the keys of members", "status", "signers", "BERTH_STATUS_SIGNERS"),
        (&hub.notify_secret, "the address for messages", "notify", "address", "BERTH_NOTIFY_FILE"),
        (
            &hub.artifact_secret,
            "the key that signs artifacts",
            "artifacts",
            "key",
            "BERTH_ARTIFACT_SIGNING_KEY",
        ),
    ];
    all.into_iter()
        .map(|(secret, about, volume, key, variable)| (secret.as_deref(), about, volume, key, variable))
        .collect()
}
