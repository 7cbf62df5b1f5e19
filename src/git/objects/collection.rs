//! Git's removal of unreachable objects (`git gc`): the repository's settings for it, and whether one is running.

use git2::ConfigLevel;

use super::repo::Repo;

/// The lock file that `git gc` holds while it works.
const RUNNING: &str = "gc.pid";

impl Repo {
    /// Reports whether berth may pack the repository on its own (`gc.auto`).
    pub fn may_be_packed(&self) -> bool {
        self.own_setting("gc.auto").is_none_or(|number| number.trim() != "0")
    }

    /// Reports whether the owner has set the age at which unreachable objects are pruned (`gc.pruneExpire`).
    pub fn has_expiry(&self) -> bool {
        self.own_setting("gc.pruneExpire").is_some()
    }

    /// Reports whether the repository has no work tree, and so no reflog of a person's work.
    pub fn is_bare(&self) -> bool {
        self.inner.is_bare()
    }

    /// Reports whether a running `git gc` may remove unreachable objects at any moment.
    pub(super) fn is_being_collected(&self) -> bool {
        self.inner.commondir().join(RUNNING).exists()
    }

    fn own_setting(&self, name: &str) -> Option<String> {
        let config = self.inner.config().ok()?.open_level(ConfigLevel::Local).ok()?;
        config.get_string(name).ok()
    }
}
