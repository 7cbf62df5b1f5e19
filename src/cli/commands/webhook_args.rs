//! The flags of the daemon's webhooks: where they are heard, and who may send them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tracing::info;

use crate::process::exit::CommandError;
use berth_hub::daemon::pass_metrics::PassMeter;
use berth_hub::daemon::webhooks::{SecretFile, Webhooks};

/// The webhooks of a daemon
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Webhooks")]
pub(crate) struct WebhookArgs {
    /// Look for changes as soon as a forge tells of a push at this address; a port alone listens on this machine only
    #[arg(long, value_name = "ADDR", env = "BERTH_WEBHOOK", requires = "webhook_secret_file", value_parser = berth_metrics::address)]
    webhook: Option<SocketAddr>,
    /// File with the secrets of the forge's webhooks, one a line. berth reads it for each delivery
    #[arg(long, value_name = "FILE", env = "BERTH_WEBHOOK_SECRET_FILE")]
    webhook_secret_file: Option<PathBuf>,
}

impl WebhookArgs {
    /// Returns the address and the file of secrets, if somebody wants webhooks.
    pub fn given(&self) -> Option<(SocketAddr, &Path)> {
        self.webhook.zip(self.webhook_secret_file.as_deref())
    }

    /// Listens for as long as the process lives, if somebody wants that.
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
