//! Questions about commits: revisions, as people name them; ancestry, and the commits between two others; three-way
//! merges; signatures.
//!
//! Merges are meant for a rehearsal: the merge commit is written like any other object.

use std::collections::BTreeSet;

use git2::{MergeOptions, ObjectType, Oid};

use super::error::GitError;
use super::id::{CommitId, TreeId};
use super::repo::{CommitInfo, PathChange, Repo, names_nothing};
use super::tree_changes::Changed;
use super::tree_size::{Measure, Measured};
use super::write::{Identity, Writer};
use crate::signature::{AllowedSigners, PublicKey, commit};
use berth_base::diag::did_you_mean;
use berth_base::model::Timestamp;
use berth_base::text::some_quoted;

impl Repo {
    /// Returns the commit that a revision names (`main`, `HEAD~2`, a tag, an id), or `None`.
    pub fn resolve(&self, revision: &str) -> Result<Option<CommitId>, GitError> {
        self.flush()?;
        let found = self.inner.revparse_single(revision).and_then(|object| object.peel_to_commit());
        match found {
            Ok(commit) => Ok(Some(CommitId::of(commit.id()))),
            Err(error) if names_nothing(error.code()) => Ok(None),
            Err(error) => Err(GitError::failed(format!("looking up `{revision}`"))(error)),
        }
    }

    /// Like [`Repo::resolve`], but a missing revision is an error that lists the branches.
    pub fn require(&self, revision: &str) -> Result<CommitId, GitError> {
        if let Some(commit) = self.resolve(revision)? {
            return Ok(commit);
        }
        let (own, fetched) = (self.short_refs("refs/heads/")?, self.short_refs("refs/remotes/")?);
        let of_remote = fetched.iter().find(|name| name.ends_with(&format!("/{revision}")));
        let hint = match of_remote {
            Some(name) => format!("did you mean `{name}`?"),
            None if own.is_empty() => "the repository has no commits yet".to_owned(),
            None => did_you_mean(revision, own.iter().chain(&fetched).map(String::as_str))
                .unwrap_or_else(|| format!("its branches are {}", some_quoted(&own, 5))),
        };
        Err(GitError::NoSuchRevision { wanted: revision.to_owned(), hint })
    }

    /// Lists the names of the refs below `folder`, without that prefix.
    fn short_refs(&self, folder: &str) -> Result<Vec<String>, GitError> {
        let refs = self.list_refs(folder)?.into_iter();
        Ok(refs.filter_map(|(name, _)| name.strip_prefix(folder).map(str::to_owned)).collect())
    }
}

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

impl Repo {
    /// The bytes of a commit, as Git stores them.
    pub fn raw_commit(&self, id: CommitId) -> Result<Vec<u8>, GitError> {
        self.raw_object(ObjectType::Commit, id.oid())
    }

    /// Checks that one of these keys signed a commit at the commit's date. Otherwise returns why the signature is not
    /// valid.
    pub fn vouch(&self, id: CommitId, allowed: &AllowedSigners) -> Result<Result<(), String>, GitError> {
        let raw = self.raw_commit(id)?;
        let at = Timestamp::from_second(self.commit(id)?.seconds);
        let Ok(at) = at else { return Ok(Err("its date is out of range".to_owned())) };
        Ok(allowed.check(&raw, at).map(|_| ()))
    }

    /// Returns the key that the commit claims to be signed by. Proves nothing.
    pub fn claimed_key(&self, id: CommitId) -> Result<Option<PublicKey>, GitError> {
        Ok(commit::claimed_key(&self.raw_commit(id)?))
    }

    /// Returns the id that the commit would have without its signature.
    pub fn unsigned_id(&self, id: CommitId) -> Result<CommitId, GitError> {
        let Some(signed) = commit::split(&self.raw_commit(id)?) else { return Ok(id) };
        let hashed = Oid::hash_object(ObjectType::Commit, &signed.payload);
        hashed.map(CommitId::of).map_err(GitError::failed("hashing a commit"))
    }
}
