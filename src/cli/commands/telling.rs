//! The flags by which a syncer says how it does: where statuses go, and where its numbers are read.

use tracing::warn;

use super::status_post::StatusPostArgs;
use crate::flags::other_remote::StatusRemoteArgs;
use crate::flags::remote::RemoteArgs;
use crate::flags::telemetry::MetricsArgs;
use crate::process::exit::CommandError;
use berth_git::transport::{Cancel, WorkingCopy};
use berth_member::sync::remote::StatusPlace;

const HINT: &str = "name a daemon with `--status-post`, or a repository with `--status-remote`";

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
    /// Reports whether statuses go anywhere. A registry takes none.
    pub fn reports(&self, remote: &RemoteArgs) -> bool {
        let has_place = self.status_remote.named().is_given() || self.status_post.is_given();
        !self.no_report && (has_place || !remote.is_registry())
    }

    /// Says once that statuses stay here, where nobody wanted that.
    pub fn say_where(&self, remote: &RemoteArgs) {
        if !self.no_report && !self.reports(remote) {
            warn!(
                hint = HINT,
                "no status is sent, since a registry takes none: rollouts wait for this cluster"
            );
        }
    }

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
        let other = self.status_remote.named().open(remote, copy, cancel)?;
        Ok(other.map_or(StatusPlace::Remote, StatusPlace::Other))
    }
}
