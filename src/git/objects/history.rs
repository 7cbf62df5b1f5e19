//! Commit history: ancestry, and the commits between two others.

use super::error::GitError;
use super::id::CommitId;
use super::repo::{CommitInfo, Repo};

/// Far more commits than arrive between two passes.
const MOST_COMMITS: usize = 10_000;

/// Iterates over a commit and its first parents, newest first, to the root or to the end of a shallow clone.
#[derive(Debug)]
pub struct FirstParents<'r> {
    repo: &'r Repo,
    next: Option<CommitId>,
}

impl Iterator for FirstParents<'_> {
    type Item = CommitInfo;

    fn next(&mut self) -> Option<CommitInfo> {
        let commit = self.repo.commit(self.next.take()?).ok()?;
        self.next = commit.parents.first().copied();
        Some(commit)
    }
}

impl Repo {
    pub fn first_parents(&self, from: CommitId) -> FirstParents<'_> {
        FirstParents { repo: self, next: Some(from) }
    }

    /// Reports whether `commit` equals or descends from `earlier`.
    pub fn is_same_or_after(&self, commit: CommitId, earlier: CommitId) -> Result<bool, GitError> {
        let doing = || format!("comparing the histories of {commit} and {earlier}");
        let after = || self.inner.graph_descendant_of(commit.oid(), earlier.oid());
        Ok(commit == earlier || after().map_err(GitError::failed(doing()))?)
    }

    /// Returns the newest commit that is part of both histories.
    pub fn common_ancestor(&self, a: CommitId, b: CommitId) -> Result<Option<CommitId>, GitError> {
        match self.inner.merge_base(a.oid(), b.oid()) {
            Ok(found) => Ok(Some(CommitId::of(found))),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(GitError::failed(format!("comparing the histories of {a} and {b}"))(error)),
        }
    }

    /// Lists the commits that lead to `to` and are not part of `since`, merged branches included.
    pub fn commits_between(&self, since: CommitId, to: CommitId) -> Result<Vec<CommitInfo>, GitError> {
        let doing = || format!("listing the commits from {since} to {to}");
        let mut walk = self.inner.revwalk().map_err(GitError::failed(doing()))?;
        walk.push(to.oid()).map_err(GitError::failed(doing()))?;
        walk.hide(since.oid()).map_err(GitError::failed(doing()))?;
        let mut found = Vec::new();
        for id in walk.take(MOST_COMMITS) {
            found.push(self.commit(CommitId::of(id.map_err(GitError::failed(doing()))?))?);
        }
        Ok(found)
    }
}
