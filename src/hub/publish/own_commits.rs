//! The commits of the rendered branch that are berth's own: their digest matches their tree.

use super::error::PublishError;
use super::owned;
use super::rendered_state::CurrentState;
use super::trailers::Trailers;
use berth_git::{CommitId, CommitInfo, Repo};

/// The number of foreign commits in a row that are skipped. More are an attack.
pub(crate) const LONGEST_WALK: usize = 100_000;

/// Returns the nearest first-parent ancestor whose digest matches its tree.
pub(super) fn last_own(repo: &Repo, from: CommitId) -> Result<Option<(CommitId, Trailers)>, PublishError> {
    for commit in repo.first_parents(from).take(LONGEST_WALK) {
        if let Some(trailers) = claimed(repo, &commit)? {
            return Ok(Some((commit.id, trailers)));
        }
    }
    Ok(None)
}

/// Returns the trailers of a commit that claims to be berth's: its digest matches its tree. The digest has no key, so
/// anyone can make such a commit. A daemon proves commits before it builds on them.
pub fn claimed(repo: &Repo, commit: &CommitInfo) -> Result<Option<Trailers>, PublishError> {
    let Some(trailers) = Trailers::read(&commit.message) else { return Ok(None) };
    let is_own = trailers.fit(owned::state_tree(&repo.tree(commit.tree)?)?);
    Ok(is_own.then_some(trailers))
}

/// Reports whether the last publication has no signature. Another machine that only knows the key would refuse it.
pub fn is_unsigned(repo: &Repo, current: Option<&CurrentState>) -> Result<bool, PublishError> {
    let Some(current) = current else { return Ok(false) };
    let last = last_own(repo, current.commit)?;
    Ok(last.map(|(commit, _)| repo.claimed_key(commit)).transpose()?.is_some_and(|key| key.is_none()))
}

/// Returns the source from which berth made this commit.
pub fn own_source(repo: &Repo, commit: &CommitInfo) -> Result<Option<CommitId>, PublishError> {
    Ok(claimed(repo, commit)?.and_then(|trailers| trailers.source))
}
