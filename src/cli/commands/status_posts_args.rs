//! The flags of a daemon that takes members' statuses by POST: where, and whose.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::info;

use crate::flags::other_remote::StatusRemoteArgs;
use crate::flags::remote::RemoteArgs;
use crate::process::exit::CommandError;
use berth_git::Identity;
use berth_git::protocol::Refs;
use berth_hub::daemon::pass_metrics::PassMeter;
use berth_hub::daemon::status_posts::{Gatherer, SignersFile, StatusPosts};

/// The time for one exchange with the remote. Members wait for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Statuses by POST
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Statuses")]
pub(crate) struct StatusPostsArgs {
    /// Take signed statuses of members at this address, and push many in one commit; a port alone listens on this machine only
    #[arg(long, value_name = "ADDR", env = "BERTH_STATUS_LISTEN", requires_all = ["status_signers", "remote"], value_parser = berth_metrics::address)]
    status_listen: Option<SocketAddr>,
    /// File with the keys of members in the format of `ssh-keygen -Y verify`; a line's principals are the clusters that its key speaks for. Read again when it changes
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_SIGNERS")]
    status_signers: Option<PathBuf>,
}

impl StatusPostsArgs {
    /// Listens for as long as the process lives, if somebody wants that. `copy` is the working copy of the remote.
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
        // Nobody asks who signed statuses, and a signature may cost a question to somebody else.
        let identity = Identity { signer: None, ..identity.clone() };
        let gatherer = Gatherer::new(Box::new(transport), copy, &Refs::default().statuses, identity);
        let counts = meter.map(PassMeter::statuses).unwrap_or_default();
        let listening = |error| CommandError::io(format!("listening at {address}"), &error);
        let (posts, address) = StatusPosts::listen(address, signers, gatherer, counts).map_err(listening)?;
        info!(%address, "listening for statuses");
        Ok(Some(posts))
    }
}
