//! The Secrets of a pod beside the one for its repository.

use super::parameters::{Install, Remote, Role};

/// A Secret with one file for the process.
pub struct OwnSecret<'a> {
    pub secret: &'a str,
    pub about: &'static str,
    pub volume: &'static str,
    pub key: &'static str,
    /// The variable with the file's path.
    pub variable: &'static str,
}

impl OwnSecret<'_> {
    pub fn folder(&self) -> String {
        format!("/etc/berth/{}", self.volume)
    }
}

/// Returns the Secrets beside the one for the repository.
pub fn own_secrets(install: &Install) -> Vec<OwnSecret<'_>> {
    let collector = install.collector.as_ref().and_then(|collector| collector.secret.as_deref());
    let headers = collector.map(|secret| OwnSecret {
        secret,
        about: "the headers for the collector, `name=value` on each line",
        volume: "otlp",
        key: "headers",
        variable: "BERTH_OTLP_HEADERS_FILE",
    });
    let Role::Hub(hub) = &install.role else { return headers.into_iter().collect() };
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
    ];
    all.into_iter()
        .filter_map(|(secret, about, volume, key, variable)| {
            Some(OwnSecret { secret: secret.as_deref()?, about, volume, key, variable })
        })
        .chain(headers)
        .collect()
}
