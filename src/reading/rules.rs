//! Which commit's access rules hold for what is read: never its own, so that no change gives itself a right.

use std::collections::BTreeMap;

use super::ReadingError;
use super::gate::Basis;
use crate::gate::Limits;
use crate::git::{self, Blobs, CommitId, Repo};
use crate::publish::{self, Previous, Refs};
use crate::source::{Ruled, SourceFile};

/// The folder of rules, as its parent names it.
const FOLDER: &str = "access";

/// The rules of a commit, over what was in force of it: `kept` are the forms of files that were broken or
/// refused then.
pub(super) fn of(
    repo: &Repo,
    commit: Option<CommitId>,
    kept: impl FnOnce() -> Result<BTreeMap<String, Vec<u8>>, ReadingError>,
    blobs: &Blobs,
) -> Result<Ruled, ReadingError> {
    let Some(commit) = commit.filter(|commit| repo.has_commit(*commit)) else { return Ok(Ruled::Own) };
    let kept = kept()?;
    let is_rule = |path: &String| path.strip_prefix(FOLDER).is_some_and(|rest| rest.starts_with('/'));
    let root = repo.tree(repo.commit(commit)?.tree)?;
    if !root.iter().any(|entry| entry.name == FOLDER.as_bytes()) && !kept.keys().any(is_rule) {
        return Ok(Ruled::Free);
    }
    let mut tree = git::read_source_knowing(repo, commit, &mut blobs.clone())?;
    tree.files.retain(|file| !kept.contains_key(&*file.path));
    tree.found.retain(|one| one.at.as_ref().is_none_or(|at| !kept.contains_key(&*at.file)));
    let form = |(path, bytes): (String, Vec<u8>)| SourceFile { path: path.into(), bytes: bytes.into() };
    tree.files.extend(kept.into_iter().map(form));
    tree.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Ruled::By(tree.into()))
}

/// The commit whose rules hold for a source commit, as a daemon would have it.
pub(super) fn for_commit(
    repo: &Repo,
    refs: &Refs,
    previous: Option<&Previous>,
    source: CommitId,
) -> Result<Option<CommitId>, ReadingError> {
    let processed = publish::read_processed(repo, refs)?;
    let basis = Basis::in_force(&Limits::default(), previous, processed.as_ref());
    if basis.since.is_some() {
        return Ok(basis.rules_for(source));
    }
    // Nothing was published yet: what the commit follows decides.
    Ok(repo.commit(source)?.parents.first().copied())
}

/// The commit whose rules hold for a working tree: the one processed last, where it is a part of it.
pub(super) fn for_folder(
    repo: &Repo,
    refs: &Refs,
    previous: Option<&Previous>,
    head: Option<CommitId>,
) -> Result<Option<CommitId>, ReadingError> {
    let processed = publish::read_processed(repo, refs)?;
    let since = Basis::in_force(&Limits::default(), previous, processed.as_ref()).since;
    match (since.filter(|since| repo.has_commit(*since)), head) {
        (Some(since), Some(head)) if repo.is_same_or_after(head, since)? => Ok(Some(since)),
        _ => Ok(head),
    }
}

/// Where a change began: what it and another revision have in common.
pub(super) fn against(repo: &Repo, revision: &str, head: Option<CommitId>) -> Result<CommitId, ReadingError> {
    let other = repo.require(revision)?;
    let common = head.map(|head| repo.common_ancestor(head, other)).transpose()?.flatten();
    Ok(common.unwrap_or(other))
}
