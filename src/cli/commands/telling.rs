//! The flags by which a syncer says how it does: where statuses go, and where its numbers are read.

use super::metrics_args::MetricsArgs;
use super::status_remote::StatusRemoteArgs;

/// The observation of a syncer
#[derive(Debug, clap::Args)]
pub(crate) struct TellingArgs {
    #[command(flatten)]
    pub status_remote: StatusRemoteArgs,
    /// Write no status into any repository
    #[arg(long, env = "BERTH_NO_REPORT", conflicts_with = "status_remote")]
    pub no_report: bool,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}
