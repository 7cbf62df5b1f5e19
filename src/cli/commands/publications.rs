//! Publications by name: a revision of the rendered branch or a sequence number → its state, and the inputs it was
//! made from.

use crate::process::exit::CommandError;
use berth_git::{CommitId, Repo};
use berth_hub::inputs::gate_inputs::rules_of;
use berth_hub::inputs::{PassInputs, SourceCommit, current_state};
use berth_hub::publish::{CurrentState, PublishError, Trailers, read_current_at};

/// The longest sequence number that is looked for before a commit's id.
const LONGEST_NUMBER: usize = 6;

/// Finds a publication by its sequence number or any revision.
pub(super) fn find(repo: &Repo, tip: CommitId, name: &str) -> Result<CommitId, CommandError> {
    let number = name.parse::<u64>().ok().filter(|_| name.len() <= LONGEST_NUMBER);
    if let Some(number) = number {
        for commit in repo.first_parents(tip) {
            let sequence = Trailers::read(&commit.message).map(|trailers| trailers.seq);
            if sequence == Some(number) {
                return Ok(commit.id);
            }
        }
        if repo.resolve(name)?.is_none() {
            let error = CommandError::usage(format!("no publication has the number {number}"));
            return Err(error.hint("`berth verify` lists all publications with their numbers"));
        }
    }
    Ok(repo.require(name)?)
}

/// Finds the publication before another.
pub(super) fn before(repo: &Repo, commit: CommitId) -> Result<CommitId, CommandError> {
    let parent = repo.commit(commit)?.parents.first().copied().filter(|parent| repo.has_commit(*parent));
    parent.ok_or_else(|| CommandError::usage(format!("nothing was published before {}", commit.short())))
}

/// Reads a publication's state.
pub(super) fn read(repo: &Repo, branch: &str, commit: CommitId) -> Result<CurrentState, CommandError> {
    read_current_at(repo, branch, commit).map_err(|error| match error {
        PublishError::Unowned { .. } => {
            let error = CommandError::usage(format!("commit {} is not a publication", commit.short()));
            error.hint(format!("name one by its number, or a revision of `{}`", current_state::short(branch)))
        }
        error => error.into(),
    })
}

/// Returns the inputs that a publication was made from, beginning with another state; `None` where its source is not
/// in this clone.
pub(super) fn inputs(repo: &Repo, published: &CurrentState, before: &CurrentState) -> Option<PassInputs> {
    let source = published.trailers.source.filter(|source| repo.has_commit(*source))?;
    let rules = rules_of(&published.trailers, source);
    let now = published.trailers.now.unwrap_or_default();
    let source = SourceCommit { repo, commit: source, rules, current: Some(before) };
    PassInputs::recorded(source, published.state.facts.clone(), now).ok()
}
