//! The fleet that a member follows: set by a flag, or by the first commit that names one.
//!
//! A key may sign for several fleets, and production must not follow a staging commit. The name is stored in the file
//! `berth/fleet-CLUSTER` of the repository's own folder, which no push can change.

use std::fs;
use std::path::PathBuf;

use berth_base::model::path;
use berth_git::Repo;

/// The default name of a fleet. It pins nothing.
pub(crate) const UNNAMED: &str = "fleet";

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
