//! The first commit of a rendered branch that begins with an imported state instead of decisions.
//!
//! It has no parent and names no source; its trailer `Berth-Import` names its origin. It cannot be computed again, so
//! a proof must trust it. A proof does so if [`Refs::root`], which is written once, or the caller names exactly this
//! commit.

use super::commit::{Committed, Published, point, refuse_gone};
use super::error::PublishError;
use super::summary::Summary;
use super::trailers::Trailers;
use super::{owned, tree};
use berth_base::model::Timestamp;
use berth_engine::plan::plan;
use berth_engine::state::State;
use berth_git::protocol::Refs;
use berth_git::protocol::trailers::{IMPORT, one_line};
use berth_git::{CommitId, CommitInfo, Identity, Repo, Writer};

/// The origin, moment and author of an import.
#[derive(Clone, Debug)]
pub struct Import {
    pub from: String,
    pub now: Timestamp,
    pub identity: Identity,
}

/// Begins the branch with a state that clusters already have. Refuses an existing branch.
pub fn begin(repo: &Repo, refs: &Refs, state: &State, import: &Import) -> Result<CommitId, PublishError> {
    refuse_begun(repo, refs)?;
    let mut writer = Writer::new(repo)?;
    let written = tree::write(&mut writer, None, state)?;
    let state_tree = owned::state_tree(&written.entries)?;
    let root = writer.tree(written.entries)?;
    let others = vec![(IMPORT.to_owned(), one_line(&import.from))];
    let mut trailers = Trailers { source: None, now: Some(import.now), seq: 1, digest: None, others };
    let (paragraph, digest) = trailers.write(state_tree);
    trailers.digest = Some(digest);
    let summary = Summary::of(&plan(&State::default(), state), true);
    let message = format!("{}\nImported from {}\n\n{paragraph}", summary.text(), one_line(&import.from));
    let seconds = import.now.as_second();
    let commit = writer.commit(root, &[], &message, &import.identity, seconds)?;
    let committed = Committed::new(commit, &trailers, seconds, root, written.trees);
    // The root is written first: an import without a pinned root could be anybody's.
    repo.move_ref(&refs.root, None, commit)?;
    point(repo, refs, None, &Published::Committed(Box::new(committed)))?;
    Ok(commit)
}

/// Refuses an import before any work is done, if the branch exists or existed.
pub fn refuse_begun(repo: &Repo, refs: &Refs) -> Result<(), PublishError> {
    match repo.read_ref(&refs.rendered)? {
        Some(_) => Err(PublishError::Begun { name: refs.rendered.clone() }),
        None => refuse_gone(repo, refs),
    }
}

/// Returns the origin of an import's commit, and true if the commit is genuine. `None` for all other commits.
pub(crate) fn import_of(repo: &Repo, commit: &CommitInfo) -> Result<Option<(String, bool)>, PublishError> {
    let Some(trailers) = Trailers::read(&commit.message) else { return Ok(None) };
    let line = trailers.others.iter().find(|(name, _)| name == IMPORT);
    let Some((_, from)) = line.filter(|_| trailers.source.is_none()) else { return Ok(None) };
    let genuine = trailers.fit(owned::state_tree(&repo.tree(commit.tree)?)?);
    Ok(Some((from.clone(), genuine && commit.parents.is_empty())))
}
