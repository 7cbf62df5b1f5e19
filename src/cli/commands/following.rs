//! The commits that a member follows: the flags, and their use in the loop.

use std::path::PathBuf;
use std::time::Duration;

use tracing::warn;

use crate::process::exit::{CommandError, Exit};
use berth_base::model::Timestamp;
use berth_git::{CommitId, Repo};
use berth_member::sync::commit_trust::{self, CommitTrust};
use berth_member::sync::fleet_pin::FleetPin;

/// Trust in the commits that a member follows
#[derive(Debug, clap::Args)]
pub(crate) struct FollowArgs {
    /// Apply only folders that one of these keys signed: a file in the format of `ssh-keygen -Y verify`
    #[arg(long, value_name = "FILE", env = "BERTH_ALLOWED_SIGNERS")]
    allowed_signers: Option<PathBuf>,
    /// Notice a server that hides new commits: report it, and end with 6, where the newest one is older than this, in
    /// seconds. The daemon needs a shorter `--heartbeat`, since an unchanged fleet makes no commits
    #[arg(long, value_name = "SECONDS", env = "BERTH_MAX_AGE", value_parser = clap::value_parser!(u64).range(1..))]
    max_age: Option<u64>,
}

impl FollowArgs {
    /// Finds a file of allowed signers that cannot be used before any work is done.
    pub fn check(&self) -> Result<(), CommandError> {
        let Some(file) = &self.allowed_signers else { return Ok(()) };
        commit_trust::read_allowed_signers(file).map(|_| ()).map_err(CommandError::usage)
    }

    pub(crate) fn asks_for_signatures(&self) -> bool {
        self.allowed_signers.is_some()
    }

    pub(crate) fn vouching(&self, cluster: &str, fleet: &str) -> CommitTrust {
        CommitTrust::new(self.allowed_signers.clone())
            .of_fleet(FleetPin::new(cluster, fleet))
            .noticing(self.max_age.map(Duration::from_secs))
    }
}

/// The commit that is followed, and what is wrong with the newest one.
pub(crate) struct Following {
    vouching: CommitTrust,
    /// The member remembers the fleet of the folder that it applies.
    remembers: bool,
    /// The reason not to apply the newest folder, or to doubt that it is the newest.
    refused: Option<String>,
    /// True for the latter.
    is_stale: bool,
}

impl Following {
    pub fn new(vouching: CommitTrust, remembers: bool) -> Following {
        Following { vouching, remembers, refused: None, is_stale: false }
    }

    /// The commit to apply, and what is wrong with the newest one.
    pub fn choose(&mut self, repo: &Repo, newest: CommitId) -> Result<(CommitId, Option<String>), String> {
        let (chosen, mut why) = self.vouching.choose(repo, newest)?;
        if self.remembers {
            self.vouching.keep(repo, chosen);
        }
        self.is_stale = false;
        if why.is_none() {
            why = self.vouching.stale(repo, chosen, Timestamp::now());
            self.is_stale = why.is_some();
        }
        if why != self.refused {
            if let Some(why) = &why {
                warn!(error = why, "keeping the last folder");
            }
            self.refused.clone_from(&why);
        }
        Ok((chosen, why))
    }

    /// The folder was applied, and a newer one is probably hidden.
    pub(crate) fn staleness(&self) -> Option<CommandError> {
        let why = self.refused.as_ref().filter(|_| self.is_stale)?;
        Some(CommandError::new(Exit::Unreachable, why.clone()))
    }
}
