//! Chooses the commit to apply: the cluster ref's newest one if it is trusted, otherwise the last trusted one.
//!
//! A commit is trusted if this berth can read it, it belongs to this member's fleet and, if there is a file of
//! allowed signers, one of them signed it. The file is read each time, so that removing a key takes effect at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::sync::fleet_pin::FleetPin;
use berth_base::model::Timestamp;
use berth_git::protocol::cluster_ref::{CLUSTER_REF_FORMAT, read_cluster_ref};
use berth_git::signature::AllowedSigners;
use berth_git::{CommitId, GitError, Repo};

/// Decides which commits are trusted, and remembers the last trusted one.
#[derive(Clone, Debug, Default)]
pub struct CommitTrust {
    allowed: Option<PathBuf>,
    fleet: FleetPin,
    max_age: Option<Duration>,
    last_trusted: Option<CommitId>,
}

impl CommitTrust {
    /// Requires a signature of the allowed signers in the file, if one is given.
    pub fn new(allowed: Option<PathBuf>) -> CommitTrust {
        CommitTrust { allowed, ..CommitTrust::default() }
    }

    /// Trusts only commits of this fleet.
    #[must_use]
    pub fn of_fleet(self, fleet: FleetPin) -> CommitTrust {
        CommitTrust { fleet, ..self }
    }

    /// Reports a newest commit that is older than this.
    #[must_use]
    pub fn noticing(self, max_age: Option<Duration>) -> CommitTrust {
        CommitTrust { max_age, ..self }
    }

    /// Reports whether only signed commits are trusted.
    pub fn asks_for_signatures(&self) -> bool {
        self.allowed.is_some()
    }

    /// Stores the fleet of a commit that the member follows.
    pub fn keep(&self, repo: &Repo, commit: CommitId) {
        if let Some(said) = read_cluster_ref(repo, commit) {
            self.fleet.keep(repo, said.fleet.as_deref());
        }
    }

    /// Describes why a commit is too old to be the newest. The text for a commit never changes.
    pub fn stale(&self, repo: &Repo, commit: CommitId, now: Timestamp) -> Option<String> {
        let longest = self.max_age?;
        let said = read_cluster_ref(repo, commit)?;
        let dated = Timestamp::from_second(repo.commit(commit).ok()?.seconds).ok()?;
        let newest = said.alive.map_or(dated, |alive| alive.max(dated));
        let age = Duration::try_from(now.duration_since(newest)).unwrap_or_default();
        (age > longest).then(|| {
            format!(
                "commit {}, the newest, is of {newest}, which is older than `--max-age {}`: no daemon \
                 runs with `--heartbeat`, or the Git server hides new commits",
                commit.short(),
                longest.as_secs()
            )
        })
    }

    /// Returns the commit to apply, and the reason if it is not the newest. Fails if none is trusted.
    pub fn choose(&mut self, repo: &Repo, newest: CommitId) -> Result<(CommitId, Option<String>), String> {
        let why = match self.check(repo, newest) {
            Ok(()) => {
                self.last_trusted = Some(newest);
                return Ok((newest, None));
            }
            Err(why) => why,
        };
        match self.last_trusted.filter(|last_trusted| self.check(repo, *last_trusted).is_ok()) {
            Some(last_trusted) => Ok((last_trusted, Some(why))),
            None => Err(why),
        }
    }

    /// Checks that a commit may be followed; otherwise returns the reason.
    pub fn check(&self, repo: &Repo, commit: CommitId) -> Result<(), String> {
        let failed = |error: GitError| error.to_string();
        let short = commit.short();
        if let Some(said) = read_cluster_ref(repo, commit)
            && said.format > CLUSTER_REF_FORMAT
        {
            return Err(format!(
                "commit {short} has format {}, and this berth reads at most {}: install a newer berth",
                said.format, CLUSTER_REF_FORMAT
            ));
        }
        if let Some(file) = &self.allowed {
            let vouched = repo.vouch(commit, &read_allowed_signers(file)?).map_err(failed)?;
            vouched.map_err(|why| format!("commit {short} is not trusted: {why}"))?;
        }
        // The fleet's name is read after the signature, which makes it trustworthy.
        let said = read_cluster_ref(repo, commit);
        let fleet = said.as_ref().and_then(|said| said.fleet.as_deref());
        self.fleet.check(repo, fleet).map_err(|why| format!("commit {short} {why}"))
    }
}

/// Reads the file of allowed signers.
pub fn read_allowed_signers(file: &Path) -> Result<AllowedSigners, String> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("the allowed signers `{name}` cannot be read: {error}"))?;
    AllowedSigners::read(&name, &text)
}
