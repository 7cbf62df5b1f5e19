//! The cache that work on a repository leaves for later work on it.

use super::packed_file::RecentRefs;
use super::recent_trees::RecentTrees;
use super::repo::Repo;

/// The packed refs and large trees used last. Clones share the memory.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    pub(super) trees: RecentTrees,
    pub(super) refs: RecentRefs,
}

impl Repo {
    /// Makes this repository use and fill the cache.
    #[must_use]
    pub fn recalling(self, recent: &Recent) -> Repo {
        Repo { recent: recent.clone(), ..self }
    }
}
