//! Refs that hold one parentless commit with a few files and are replaced as a whole.

use std::collections::BTreeMap;

use crate::{CommitId, EntryKind, GitError, Identity, RefMove, Repo, TreeId, Writer};
use berth_base::model::ContentId;

/// The content of a ref: its files by path, and the message of its commit.
#[derive(Clone, Debug)]
pub struct RefContent<'a> {
    pub files: BTreeMap<&'a str, Vec<u8>>,
    pub message: &'a str,
}

/// The commit of such a ref: its tree, message, author and time. It has no parent.
#[derive(Clone, Copy, Debug)]
pub struct RefCommit<'a> {
    pub tree: TreeId,
    pub message: &'a str,
    pub identity: &'a Identity,
    pub seconds: i64,
}

/// Points the ref to a commit with exactly these files. Leaves a ref that already has them unchanged.
pub fn replace(
    repo: &Repo,
    name: &str,
    content: &RefContent<'_>,
    identity: &Identity,
    seconds: i64,
) -> Result<CommitId, GitError> {
    let mut writer = Writer::new(repo)?;
    let mut written: BTreeMap<&str, ContentId> = BTreeMap::new();
    for (path, bytes) in &content.files {
        written.insert(path, writer.blob(bytes)?);
    }
    let tree = writer.folder(written)?;
    let commit = RefCommit { tree, message: content.message, identity, seconds };
    point(repo, &mut writer, name, commit)
}

/// Points the ref to this commit. Leaves a ref that already has its tree unchanged.
pub fn point(
    repo: &Repo,
    writer: &mut Writer<'_>,
    name: &str,
    commit: RefCommit<'_>,
) -> Result<CommitId, GitError> {
    let RefCommit { tree, message, identity, seconds } = commit;
    let old = repo.read_ref(name)?;
    if let Some(id) = old
        && repo.commit(id).is_ok_and(|commit| commit.tree == tree && commit.parents.is_empty())
    {
        return Ok(id);
    }
    let commit = writer.commit(tree, &[], message, identity, seconds)?;
    if old.is_none() {
        repo.clear_above(name)?;
        repo.clear_below(name)?;
    }
    repo.move_refs(&[RefMove { name: name.to_owned(), old, new: commit }])?;
    Ok(commit)
}

/// Reads a file of the commit that a ref points to.
pub fn file(repo: &Repo, commit: CommitId, name: &str) -> Result<Option<Vec<u8>>, GitError> {
    let entries = repo.tree(repo.commit(commit)?.tree)?;
    let entry = entries.into_iter().find(|entry| entry.name == name.as_bytes());
    match entry.map(|entry| entry.kind) {
        Some(EntryKind::File(id)) => Ok(Some(repo.blob(id)?)),
        _ => Ok(None),
    }
}
