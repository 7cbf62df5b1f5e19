//! The memory that work on a repository leaves for later work on it.

use super::packed_file::RecentRefs;
use super::recent_trees::RecentTrees;
use super::repo::Repo;

/// The packed refs and the large trees that were read or written last. A clone is the same memory.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    pub(super) trees: RecentTrees,
    pub(super) refs: RecentRefs,
}

impl Repo {
    /// Lets work on this repository go on from what earlier work left.
    #[must_use]
    pub fn recalling(self, recent: &Recent) -> Repo {
        Repo { recent: recent.clone(), ..self }
    }
}
