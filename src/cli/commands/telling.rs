//! The flags by which a syncer says how it does: where statuses go, and where its numbers are read.

use super::exit::CommandError;
use super::metrics_args::MetricsArgs;
use super::remote::RemoteArgs;
use super::status_post::StatusPostArgs;
use super::status_remote::StatusRemoteArgs;
use berth_git::transport::{Cancel, WorkingCopy};
use berth_member::sync::remote::StatusPlace;

/// The observation of a syncer
#[derive(Debug, clap::Args)]
pub(crate) struct TellingArgs {
    #[command(flatten)]
    status_remote: StatusRemoteArgs,
    #[command(flatten)]
    status_post: StatusPostArgs,
    /// Write no status into any repository
    #[arg(long, env = "BERTH_NO_REPORT", conflicts_with_all = ["status_remote", "status_post"])]
    pub no_report: bool,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

impl TellingArgs {
    /// Opens the place that statuses go to.
    pub fn place(
        &self,
        remote: &RemoteArgs,
        copy: &WorkingCopy,
        cancel: &Cancel,
    ) -> Result<StatusPlace, CommandError> {
        if let Some(sender) = self.status_post.sender(remote)? {
            return Ok(StatusPlace::Sender(sender));
        }
        let other = self.status_remote.open(remote, copy, cancel)?;
        Ok(other.map_or(StatusPlace::Remote, StatusPlace::Other))
    }
}
