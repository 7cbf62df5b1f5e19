//! Three-way merges of commits. Meant for a rehearsal: the merge commit is written like any other object.

use std::collections::BTreeSet;

use git2::MergeOptions;

use super::error::GitError;
use super::id::{CommitId, TreeId};
use super::repo::{PathChange, Repo};
use super::tree_changes::Changed;
use super::tree_size::{Measure, Measured};
use super::write::{Identity, Writer};

/// The bytes of all added and removed files above which renames are not detected, since detection compares each pair.
const MOST_RENAMED: u64 = 16 << 20;

/// The outcome of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// One of the two contains the other: no merge is needed.
    Contained(CommitId),
    /// A new commit with both as parents.
    Merge(CommitId),
    /// Both changed these files in conflicting ways.
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
        let Some(ancestor) = self.common_ancestor(base, head)? else { return Ok(Merged::Unrelated) };
        let bases = self.inner.merge_bases(base.oid(), head.oid()).map_err(GitError::failed(doing()))?;
        // libgit2 looks at every path of every tree.
        let mut measure = Measure::new(self, Measured::Everything)?;
        for id in [base, head].into_iter().chain(bases.iter().map(|id| CommitId::of(*id))) {
            if let Some(path) = measure.too_large(self.commit(id)?.tree)? {
                let path = if path.is_empty() { ".".to_owned() } else { path };
                return Err(GitError::TooLarge { path });
            }
        }
        let mut options = MergeOptions::new();
        options.find_renames(self.has_few_moved_bytes(ancestor, [base, head])?);
        let (ours, theirs) = (self.find_commit(base)?, self.find_commit(head)?);
        let merged = self.inner.merge_commits(&ours, &theirs, Some(&options));
        let mut index = merged.map_err(GitError::failed(doing()))?;
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

    /// Reports whether the files added or removed since the ancestor are small enough to compare each pair.
    fn has_few_moved_bytes(&self, ancestor: CommitId, sides: [CommitId; 2]) -> Result<bool, GitError> {
        let odb = self.inner.odb().map_err(GitError::failed("opening the object database"))?;
        let (before, mut bytes) = (self.commit(ancestor)?.tree, 0_u64);
        for side in sides {
            for Changed { id, change, .. } in self.tree_changes(before, self.commit(side)?.tree, &[])? {
                if change != PathChange::Changed {
                    // A submodule's commit is not in this repository.
                    bytes = bytes.saturating_add(odb.read_header(id).map_or(0, |(size, _)| size as u64));
                }
            }
        }
        Ok(bytes <= MOST_RENAMED)
    }
}
