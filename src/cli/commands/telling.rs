//! The flags by which a syncer says how it does: where statuses go, and where its numbers are read.

use std::path::PathBuf;

use super::exit::CommandError;
use super::metrics_args::MetricsArgs;
use super::remote::RemoteArgs;
use berth_git::transport::{Cancel, Transport, WorkingCopy};

/// The observation of a syncer
#[derive(Debug, clap::Args)]
pub(crate) struct TellingArgs {
    /// Report to this remote instead of the folder's, with separate credentials
    #[arg(
        long,
        value_name = "URL",
        env = "BERTH_STATUS_REMOTE",
        hide_env_values = true,
        help_heading = "Remote",
        requires = "remote"
    )]
    status_remote: Option<String>,
    /// A file with the token or password for the status remote
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_TOKEN_FILE", help_heading = "Remote")]
    status_token_file: Option<PathBuf>,
    /// The private key for the status remote
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_SSH_KEY", help_heading = "Remote")]
    status_ssh_key: Option<PathBuf>,
    /// Write no status into any repository
    #[arg(long, env = "BERTH_NO_REPORT", conflicts_with = "status_remote")]
    pub no_report: bool,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

impl TellingArgs {
    /// Another remote for statuses, where there is to be one.
    pub(crate) fn status_remote(
        &self,
        remote: &RemoteArgs,
        copy: &WorkingCopy,
        cancel: &Cancel,
    ) -> Result<Option<Box<dyn Transport>>, CommandError> {
        let Some(url) = &self.status_remote else { return Ok(None) };
        let (token, key) = (self.status_token_file.as_deref(), self.status_ssh_key.as_deref());
        let access = remote.access_to_other(url, token, key)?;
        Ok(Some(Box::new(RemoteArgs::transport_in(copy, access, cancel)?)))
    }
}
