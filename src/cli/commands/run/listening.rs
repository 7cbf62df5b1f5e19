//! The flags of a daemon's listeners: for statuses that members send by POST, and for forges' webhooks.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::info;

use crate::flags::remote::{RemoteArgs, StatusRemoteArgs};
use crate::process::exit::CommandError;
use berth_git::Identity;
use berth_git::shared_refs::Refs;
use berth_hub::daemon::pass_metrics::PassMeter;
use berth_hub::daemon::status_posts::{Gatherer, SignersFile, StatusPosts};
use berth_hub::daemon::webhooks::{SecretFile, Webhooks};

/// The time limit of an exchange with the remote, for which members wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Statuses by POST
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Statuses")]
pub(crate) struct StatusPostsArgs {
    /// Take signed statuses of members at this address, and push many in one commit; a port alone listens on this machine only
    #[arg(long, value_name = "ADDR", env = "BERTH_STATUS_LISTEN", requires_all = ["status_signers", "remote"], value_parser = berth_http::listener::address)]
    status_listen: Option<SocketAddr>,
    /// File with the keys of members in the format of `ssh-keygen -Y verify`; a line's principals are the clusters that its key speaks for. Read again when it changes
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_SIGNERS")]
    status_signers: Option<PathBuf>,
}

impl StatusPostsArgs {
    /// Listens while the process runs, if requested. `copy` is the working copy of the remote.
    pub fn listen(
        &self,
        remote: &RemoteArgs,
        status_remote: &StatusRemoteArgs,
        copy: &Path,
        identity: &Identity,
        meter: Option<&PassMeter>,
    ) -> Result<Option<StatusPosts>, CommandError> {
        let (Some(address), Some(file)) = (self.status_listen, &self.status_signers) else { return Ok(None) };
        let signers = SignersFile::new(file).map_err(|why| {
            let problem = CommandError::usage(format!("the keys of members cannot be used: {why}"));
            problem.hint("write a line for each member: CLUSTER namespaces=\"berth-status\" ssh-ed25519 …")
        })?;
        let (transport, copy) = status_remote.named().open_beside(remote, copy, "statuses", PATIENCE)?;
        // The gathered commit needs no signature, which could cost a request to a signer.
        let identity = Identity { signer: None, ..identity.clone() };
        let gatherer = Gatherer::new(Box::new(transport), copy, &Refs::default().statuses, identity);
        let counts = meter.map(PassMeter::statuses).unwrap_or_default();
        let listening = |error| CommandError::io(format!("listening at {address}"), &error);
        let (posts, address) = StatusPosts::listen(address, signers, gatherer, counts).map_err(listening)?;
        info!(%address, "listening for statuses");
        Ok(Some(posts))
    }
}

/// The webhooks of a daemon
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Webhooks")]
pub(crate) struct WebhookArgs {
    /// Look for changes as soon as a forge tells of a push at this address; a port alone listens on this machine only
    #[arg(long, value_name = "ADDR", env = "BERTH_WEBHOOK", requires = "webhook_secret_file", value_parser = berth_http::listener::address)]
    webhook: Option<SocketAddr>,
    /// File with the secrets of the forge's webhooks, one a line. berth reads it for each delivery
    #[arg(long, value_name = "FILE", env = "BERTH_WEBHOOK_SECRET_FILE")]
    webhook_secret_file: Option<PathBuf>,
}

impl WebhookArgs {
    /// Returns the address and the file of secrets, if webhooks are requested.
    pub fn given(&self) -> Option<(SocketAddr, &Path)> {
        self.webhook.zip(self.webhook_secret_file.as_deref())
    }

    /// Listens while the process runs, if requested.
    pub fn listen(&self, meter: Option<&PassMeter>) -> Result<Option<Webhooks>, CommandError> {
        let (Some(address), Some(file)) = (self.webhook, &self.webhook_secret_file) else { return Ok(None) };
        let secrets = SecretFile::new(file).map_err(|why| {
            let shown = file.display();
            let problem =
                CommandError::usage(format!("the webhook secrets in `{shown}` cannot be used: {why}"));
            problem.hint("write one secret a line; make one: openssl rand -hex 32")
        })?;
        let counts = meter.map(PassMeter::webhooks).unwrap_or_default();
        let listening = |error| CommandError::io(format!("listening at {address}"), &error);
        let (webhooks, address) = Webhooks::listen(address, secrets, counts).map_err(listening)?;
        info!(%address, "listening for webhooks");
        Ok(Some(webhooks))
    }
}
