//! The cache that work on a repository leaves for later work on it: the larger trees used last, and the packed refs.
//!
//! Each publication edits the folder of all clusters, many edit the same namespaces, and a source is compared with its
//! predecessor.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use git2::ObjectType;

use super::error::GitError;
use super::id::TreeId;
use super::packed_file::RecentRefs;
use super::raw_tree::Tree;
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

/// The size from which a tree is cached, in bytes.
const LARGE: usize = 1 << 14;

/// The number of trees cached whatever their size.
const FEW: usize = 8;

/// The total bytes up to which more trees are cached.
const MOST: usize = 8 << 20;

/// Trees as Git stores them. Clones share the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentTrees(Arc<Mutex<VecDeque<RecentTree>>>);

#[derive(Debug)]
struct RecentTree {
    id: TreeId,
    tree: Tree,
}

impl Repo {
    /// Returns one tree as Git stores it.
    pub(super) fn raw_tree(&self, id: TreeId) -> Result<Tree, GitError> {
        if id == TreeId::EMPTY {
            return Ok(Tree::default());
        }
        if let Some(tree) = self.recent.trees.get(id) {
            return Ok(tree);
        }
        self.raw_object(ObjectType::Tree, id.oid()).map(Tree::of)
    }
}

impl RecentTrees {
    pub(super) fn get(&self, id: TreeId) -> Option<Tree> {
        let trees = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        trees.iter().find(|known| known.id == id).map(|known| known.tree.clone())
    }

    /// Caches a tree in place of its predecessor.
    pub(super) fn replace(&self, before: TreeId, id: TreeId, tree: Tree) {
        if tree.bytes().len() < LARGE {
            return;
        }
        let mut trees = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        trees.retain(|known| known.id != before && known.id != id);
        trees.push_front(RecentTree { id, tree });
        let mut size = 0;
        let fitting = trees.iter().take_while(|known| {
            size += known.tree.bytes().len();
            size <= MOST
        });
        let fitting = fitting.count();
        trees.truncate(fitting.max(FEW));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_trees_that_came_last_are_known_each_in_place_of_the_one_before() {
        let (trees, large) = (RecentTrees::default(), Tree::of(vec![7; MOST].into()));
        let id = |number: u8| TreeId([number; 20]);
        for number in 1..=9 {
            trees.replace(TreeId::EMPTY, id(number), large.clone());
        }
        assert!(trees.get(id(1)).is_none() && (2..=9).all(|number| trees.get(id(number)).is_some()));
        trees.replace(id(5), id(10), large.clone());
        assert!(trees.get(id(5)).is_none() && trees.get(id(2)).is_some());
        assert!(trees.get(id(10)).is_some());
        trees.replace(id(2), id(11), Tree::of(vec![7; LARGE - 1].into()));
        assert!(trees.get(id(11)).is_none());
    }

    #[test]
    fn many_small_trees_are_known_up_to_a_size() {
        let (trees, small) = (RecentTrees::default(), Tree::of(vec![7; MOST / 64].into()));
        let id = |number: u8| TreeId([number; 20]);
        for number in 1..=65 {
            trees.replace(TreeId::EMPTY, id(number), small.clone());
        }
        assert!(trees.get(id(1)).is_none() && (2..=65).all(|number| trees.get(id(number)).is_some()));
    }
}
