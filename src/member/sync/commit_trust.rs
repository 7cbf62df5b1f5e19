//! Chooses the commit to apply: the cluster ref's newest one if it is trusted, otherwise the last trusted
//! one.
//!
//! A commit is trusted if this berth can read it, it belongs to this member's fleet and, if there is a file
//! of allowed signers, one of them signed it. The file is read each time, so that removing a key takes effect
//! at once.
//!
//! The fleet is set by a flag, or by the first commit that names one. A key may sign for several fleets, and
//! production must not follow a staging commit. The name is stored in the file `berth/fleet-CLUSTER` of the
//! repository's own folder, which no push can change.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use berth_base::model::{Timestamp, path};
use berth_git::shared_refs::cluster_ref::{CLUSTER_REF_FORMAT, read_cluster_ref};
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
    let text = fs::read_to_string(file)
        .map_err(|error| format!("the allowed signers `{name}` cannot be read: {error}"))?;
    AllowedSigners::read(&name, &text)
}

/// The default name of a fleet. It pins nothing.
const UNNAMED: &str = "fleet";

/// The fleet that one cluster's commits must name.
#[derive(Clone, Debug, Default)]
pub struct FleetPin {
    cluster: String,
    /// The name from the flag.
    wanted: Option<String>,
}

impl FleetPin {
    /// Makes a pin from the flag `--fleet`.
    pub fn new(cluster: &str, fleet: &str) -> FleetPin {
        let wanted = (fleet != UNNAMED).then(|| fleet.to_owned());
        FleetPin { cluster: cluster.to_owned(), wanted }
    }

    /// Checks that a commit with this name may be followed; otherwise returns the reason.
    pub fn check(&self, repo: &Repo, named: Option<&str>) -> Result<(), String> {
        let pinned = self.read(repo);
        match (named, self.wanted.as_ref().or(pinned.as_ref()), &pinned) {
            (Some(named), Some(expected), _) if named != expected => Err(format!(
                "belongs to the fleet `{named}`, and this member follows `{expected}` \
                             (`--fleet`)"
            )),
            // The daemon has no name, or predates names. Once a commit named a fleet, later ones must too.
            (None, _, Some(pinned)) => {
                Err(format!("names no fleet, and commits before it were of `{pinned}`"))
            }
            _ => Ok(()),
        }
    }

    /// Stores the name of a followed commit. A failure to store it does not fail the sync.
    pub fn keep(&self, repo: &Repo, named: Option<&str>) {
        let Some(named) = named.filter(|named| self.read(repo).as_deref() != Some(*named)) else { return };
        let file = self.file(repo);
        if let Some(folder) = file.parent() {
            let _ = fs::create_dir_all(folder);
        }
        // A rename keeps the earlier name intact on a full disk.
        let fresh = file.with_file_name(format!("fleet.{}", std::process::id()));
        let written = fs::write(&fresh, format!("{named}\n")).and_then(|()| fs::rename(&fresh, &file));
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
    }

    fn read(&self, repo: &Repo) -> Option<String> {
        let text = fs::read_to_string(self.file(repo)).ok()?;
        Some(text.trim().to_owned()).filter(|name| !name.is_empty())
    }

    fn file(&self, repo: &Repo) -> PathBuf {
        repo.shared_path().join(format!("berth/fleet-{}", path::ref_part(&self.cluster)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bare;

    #[test]
    fn a_flag_wins_over_the_first_name_seen_and_a_name_once_seen_is_asked_for() {
        let (_folder, repo) = bare();
        let free = FleetPin::new("a", UNNAMED);
        let named = FleetPin::new("a", "production");
        assert_eq!(named.check(&repo, None), Ok(()), "a daemon that is older than names");
        assert_eq!(named.check(&repo, Some("production")), Ok(()));
        assert!(named.check(&repo, Some("staging")).is_err());
        for name in [None, Some("staging")] {
            assert_eq!(free.check(&repo, name), Ok(()), "nothing is pinned yet");
        }
        free.keep(&repo, None);
        assert_eq!(free.check(&repo, Some("staging")), Ok(()));
        free.keep(&repo, Some("staging"));
        assert!(named.check(&repo, None).is_err(), "there was a name, though another one than the flag's");
        assert!(free.check(&repo, Some("production")).is_err());
        assert!(free.check(&repo, None).is_err());
        assert_eq!(FleetPin::new("b", UNNAMED).check(&repo, Some("production")), Ok(()), "another cluster");
        named.keep(&repo, Some("production"));
        assert!(named.check(&repo, None).is_err());
        assert_eq!(free.check(&repo, Some("production")), Ok(()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_leaves_the_name_that_was_kept() {
        let (_folder, repo) = bare();
        let pin = FleetPin::new("a", UNNAMED);
        pin.keep(&repo, Some("staging"));
        let fresh = repo.shared_path().join(format!("berth/fleet.{}", std::process::id()));
        std::os::unix::fs::symlink("/dev/full", &fresh).unwrap();
        pin.keep(&repo, Some("production"));
        assert_eq!(fs::read_to_string(pin.file(&repo)).unwrap(), "staging\n");
        assert!(fresh.symlink_metadata().is_err(), "it is cleared away");
        pin.keep(&repo, Some("production"));
        assert_eq!(pin.read(&repo).as_deref(), Some("production"));
    }
}
