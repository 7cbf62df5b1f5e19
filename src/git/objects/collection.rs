//! The collection of objects that nothing leads to: what a repository's owner has set about it, and whether one runs.

use git2::ConfigLevel;

use super::repo::Repo;

/// `git gc` holds it while it works.
const RUNNING: &str = "gc.pid";

impl Repo {
    /// Reports whether the repository may be packed without its owner asking for it (`gc.auto`).
    pub fn may_be_packed(&self) -> bool {
        self.own_setting("gc.auto").is_none_or(|number| number.trim() != "0")
    }

    /// Reports whether the owner has set when objects go that nothing leads to (`gc.pruneExpire`).
    pub fn has_expiry(&self) -> bool {
        self.own_setting("gc.pruneExpire").is_some()
    }

    /// Reports whether the repository has no work tree, and so no reflog of a person's work.
    pub fn is_bare(&self) -> bool {
        self.inner.is_bare()
    }

    /// Reports whether objects that nothing leads to may go at any moment.
    pub(super) fn is_being_collected(&self) -> bool {
        self.inner.commondir().join(RUNNING).exists()
    }

    fn own_setting(&self, name: &str) -> Option<String> {
        let config = self.inner.config().ok()?.open_level(ConfigLevel::Local).ok()?;
        config.get_string(name).ok()
    }
}
