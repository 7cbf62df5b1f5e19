//! The member's remote as the loop uses it: polled, with growing pauses after errors, and sent statuses; and the
//! choice of the commits to follow.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::result::PushedReport;
use crate::process::exit::{CommandError, Exit};
use berth_base::backoff::{self, Backoff};
use berth_base::model::Timestamp;
use berth_git::transport::TransportError;
use berth_git::{CommitId, Repo};
use berth_member::sync::SyncError;
use berth_member::sync::cluster_folder::FolderError;
use berth_member::sync::commit_trust::{self, CommitTrust, FleetPin};
use berth_member::sync::remote::{MemberRemote, RemoteError};
use berth_member::sync::sync_loop::{Freshness, Sync};

/// The shortest time between two checks for damage.
const EXAMINE: Duration = Duration::from_secs(60);

const PAUSES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));

/// A remote, with the times of the next exchanges.
pub(crate) struct PacedLink {
    link: MemberRemote,
    every: Duration,
    paces: Paces,
    /// The reason why the folder is not the remote's newest.
    trouble: Option<RemoteError>,
    /// The time of the last check of the local repository for damage.
    examined: Option<Instant>,
}

#[derive(Default)]
struct Paces {
    fetching: Pace,
    pushing: Pace,
}

impl Paces {
    /// Records a successful fetch. Returns true if earlier ones failed: then the status is also pushed at once.
    fn fetched(&mut self, every: Duration) -> bool {
        let is_back = self.fetching.failures > 0;
        self.fetching.done(every);
        if is_back {
            self.pushing.next = None;
        }
        is_back
    }
}

#[derive(Default)]
struct Pace {
    next: Option<Instant>,
    failures: u32,
}

impl Pace {
    fn is_due(&self) -> bool {
        self.next.is_none_or(|next| Instant::now() >= next)
    }

    fn done(&mut self, every: Duration) {
        self.failures = 0;
        self.next = Some(Instant::now() + backoff::spread(every, backoff::chance()));
    }

    fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.next = Some(Instant::now() + PAUSES.jittered(self.failures, backoff::chance()));
    }
}

impl PacedLink {
    pub fn new(link: MemberRemote, every: Duration) -> PacedLink {
        PacedLink { link, every, paces: Paces::default(), trouble: None, examined: None }
    }

    /// Fetches from the remote, if it is time to.
    pub fn refresh(&mut self) -> Freshness {
        if self.paces.fetching.is_due() {
            match self.link.fetch() {
                Ok(_) => {
                    if self.paces.fetched(self.every) {
                        info!(remote = self.link.shown(), "the remote can be used again");
                    }
                    self.trouble = None;
                    self.link.tidy();
                }
                Err(problem) => {
                    self.paces.fetching.failed();
                    // A request to stop needs no explanation.
                    if !matches!(problem, RemoteError::Transport(TransportError::Cancelled { .. })) {
                        warn!(error = %problem, hint = problem.hint(), "keeping the last folder");
                    }
                    self.trouble = Some(problem);
                }
            }
        }
        match &self.trouble {
            None => Freshness::Newest,
            Some(problem) if problem.is_refusal() => Freshness::Refused(problem.to_string()),
            Some(problem) => Freshness::Unreachable(problem.to_string()),
        }
    }

    /// Recreates the local repository if something was unreadable in it and it is damaged. Returns true if it did:
    /// then everything is fetched at once.
    pub fn mend(&mut self, is_unreadable: bool) -> bool {
        let is_suspect = is_unreadable || self.trouble.as_ref().is_some_and(RemoteError::may_be_damage);
        if !is_suspect || self.examined.is_some_and(|at| at.elapsed() < EXAMINE) {
            return false;
        }
        self.examined = Some(Instant::now());
        let is_mended = self.link.mend();
        if is_mended {
            self.paces = Paces::default();
        }
        is_mended
    }

    /// Like [`PacedLink::mend`], after a round.
    pub fn mend_after(&mut self, round: &Sync) -> bool {
        let has_folder = !matches!(round.result, Err(SyncError::Folder(FolderError::Git(_))));
        self.mend(!has_folder || round.reported.is_err())
    }

    /// Returns the reason why the folder is not the remote's newest.
    pub fn trouble(&mut self) -> Option<CommandError> {
        self.trouble.take().map(CommandError::from)
    }

    /// Pushes the status, if the remote lacks it and it is time to.
    pub fn push(&mut self) {
        let pace = &mut self.paces.pushing;
        if !pace.is_due() {
            return;
        }
        let pushed = self.link.push_status();
        for lock in self.link.cleared_locks() {
            warn!(lock, "removed a stale lock left by a process that has exited");
        }
        match pushed {
            Ok(_) => *pace = Pace::default(),
            Err(problem) if problem.refuses_status() => {
                if pace.failures == 0 {
                    let hint = problem.hint();
                    warn!(error = %problem, hint, "the status is kept in the local repository for now");
                }
                // A temporary failure passes soon; otherwise the pauses grow.
                pace.failed();
            }
            Err(problem) => {
                pace.failed();
                warn!(error = %problem, hint = problem.hint(), "the status could not be reported");
            }
        }
    }

    /// Like [`PacedLink::push`], for a single round.
    pub(crate) fn push_once(&mut self) -> PushedReport {
        let failure = self.link.push_status().err().map(|problem| {
            let lacks_rights = problem.refuses_status();
            let message = problem.to_string();
            (CommandError { message, ..problem.into() }, lacks_rights)
        });
        PushedReport { cleared_locks: self.link.cleared_locks(), failure }
    }
}

impl From<RemoteError> for CommandError {
    fn from(error: RemoteError) -> CommandError {
        let hint = error.hint();
        let message = error.to_string();
        let mut made = match error {
            RemoteError::Transport(error) => CommandError::from(error),
            RemoteError::Git(error) => error.into(),
            RemoteError::Send(_) => CommandError::new(Exit::Unreachable, message),
            RemoteError::NotOurs { .. } | RemoteError::Refused { .. } | RemoteError::Rewound { .. } => {
                CommandError::new(Exit::Held, message)
            }
        };
        made.hint = hint;
        made
    }
}

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
    /// Checks the file of allowed signers before any work is done.
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

/// The choice of the commit to follow, and the problem of the newest one.
pub(crate) struct Following {
    vouching: CommitTrust,
    /// True if the member stores the fleet of the folder that it applies.
    remembers: bool,
    /// The reason not to apply the newest folder, or to doubt that it is the newest.
    refused: Option<String>,
    /// True if the reason is the doubt.
    is_stale: bool,
}

impl Following {
    pub fn new(vouching: CommitTrust, remembers: bool) -> Following {
        Following { vouching, remembers, refused: None, is_stale: false }
    }

    /// Returns the commit to apply, and the problem of the newest one.
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

    /// Returns an error if the folder was applied but a newer one is probably withheld.
    pub(crate) fn staleness(&self) -> Option<CommandError> {
        let why = self.refused.as_ref().filter(|_| self.is_stale)?;
        Some(CommandError::new(Exit::Unreachable, why.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_could_not_be_sent_is_offered_once_the_remote_is_back() {
        let mut paces = Paces::default();
        for _ in 0..9 {
            paces.fetching.failed();
            paces.pushing.failed();
        }
        assert!(!paces.pushing.is_due());
        assert!(paces.fetched(Duration::from_secs(60)));
        assert!(paces.pushing.is_due());
        // A reachable remote that refuses gets growing pauses.
        paces.pushing.failed();
        assert!(!paces.fetched(Duration::from_secs(60)));
        assert!(!paces.pushing.is_due());
    }
}
