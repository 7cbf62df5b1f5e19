//! Three-way merges of one commit into another. Meant for a rehearsal: the merge is written like any other object.

use std::collections::BTreeSet;

use super::error::GitError;
use super::id::{CommitId, TreeId};
use super::repo::Repo;
use super::write::{Identity, Writer};

/// The outcome of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Either of the two contains the other: no merge is needed.
    Contained(CommitId),
    /// A new commit with both as parents.
    Merge(CommitId),
    /// The two changed these files in ways that do not go together.
    Conflicts(Vec<String>),
    /// The two have no common ancestor, as far as the repository has their histories.
    Unrelated,
}

impl Repo {
    /// Merges `head` into `base`, three ways, as a forge does it.
    pub fn merge(&self, base: CommitId, head: CommitId, message: &str) -> Result<Merged, GitError> {
        let doing = || format!("merging {head} into {base}");
        self.flush()?;
        for (inner, outer) in [(base, head), (head, base)] {
            if self.is_same_or_after(outer, inner)? || self.written_parents(outer)?.contains(&inner) {
                return Ok(Merged::Contained(outer));
            }
        }
        if self.common_ancestor(base, head)?.is_none() {
            return Ok(Merged::Unrelated);
        }
        let (ours, theirs) = (self.find_commit(base)?, self.find_commit(head)?);
        let mut index = self.inner.merge_commits(&ours, &theirs, None).map_err(GitError::failed(doing()))?;
        if index.has_conflicts() {
            let mut paths = BTreeSet::new();
            for conflict in index.conflicts().map_err(GitError::failed(doing()))? {
                let conflict = conflict.map_err(GitError::failed(doing()))?;
                let entries = [conflict.our, conflict.their, conflict.ancestor];
                let path = entries.into_iter().flatten().next().map(|entry| entry.path);
                paths.extend(path.map(|path| String::from_utf8_lossy(&path).into_owned()));
            }
            return Ok(Merged::Conflicts(paths.into_iter().collect()));
        }
        let tree = index.write_tree_to(&self.inner).map_err(GitError::failed(doing()))?;
        let seconds = ours.time().seconds().max(theirs.time().seconds());
        let parents = [base, head];
        let commit =
            Writer::new(self)?.commit(TreeId::of(tree), &parents, message, &Identity::default(), seconds)?;
        Ok(Merged::Merge(commit))
    }
}
