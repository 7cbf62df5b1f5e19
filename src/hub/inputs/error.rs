//! The reasons why a fleet cannot be read at all. Faults of its files are diagnostics instead.

use crate::publish::PublishError;
use berth_base::model::ContentError;
use berth_base::source;
use berth_git::{CommitId, GitError};

/// A fleet could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Folder(#[from] source::SourceError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error("the commit {commit}, which holds the current access rules, is not in this repository")]
    NoRules { commit: CommitId },
    #[error("there is no rendered branch `{wanted}` in this repository")]
    NoSuchState { wanted: String },
    /// The remote may have a state, and this clone does not know.
    #[error(
        "the current state is not in this clone: the rendered branch of the remote `{remote}` was not fetched"
    )]
    NoState { remote: String, fetch: String },
    #[error("the current state is not in this clone, and berth cannot tell which remote has it: {}", .remotes.join(", "))]
    NoRemote { remotes: Vec<String> },
    /// Something shows that there was a state.
    #[error(transparent)]
    Gone(PublishError),
    #[error("the history of `{what}` is incomplete in this clone")]
    CutOff { what: String, fetch: String },
    #[error("`{name}` is older in this clone than the fetched `refs/berth/processed`")]
    Outdated { name: String, fetch: String },
    /// A proof needs a source that was rendered when the commit was made.
    #[error("{what} cannot be rendered here: {message}")]
    NotRendered { what: String, message: String, hint: Option<String> },
    #[error("commit {commit} is dated {date}, which is in the future")]
    FutureCommit { commit: CommitId, date: String },
}

impl InputError {
    /// Reports whether this clone lacks the current state or the history that it needs, where the files are here.
    pub fn is_missing_state(&self) -> bool {
        matches!(
            self,
            InputError::NoRules { .. }
                | InputError::NoState { .. }
                | InputError::NoRemote { .. }
                | InputError::CutOff { .. }
                | InputError::Outdated { .. }
        )
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            InputError::Git(error) => error.hint(),
            InputError::Publish(error) => error.hint(),
            InputError::Folder(_) | InputError::Content(_) => None,
            InputError::NoState { fetch, .. } => Some(format!(
                "fetch it: {fetch}\n  or name it with `--rendered`; only if nothing was ever published, \
                 use `--first`"
            )),
            InputError::NoRemote { remotes } => Some(format!(
                "name one: `--rendered {}/berth/rendered`, or set one: git config branch.BRANCH.remote NAME",
                remotes.first().map_or("REMOTE", String::as_str)
            )),
            InputError::NoSuchState { .. } => {
                Some("name a ref, such as `origin/berth/rendered` or `refs/heads/berth/rendered`".to_owned())
            }
            InputError::NotRendered { hint, .. } => hint.clone(),
            InputError::Gone(error) => error.hint(),
            InputError::CutOff { fetch, .. } | InputError::Outdated { fetch, .. } => {
                Some(format!("fetch the rest: {fetch}"))
            }
            InputError::NoRules { .. } => {
                Some("fetch more of the history: `git fetch --unshallow`, and the rendered branch".into())
            }
            InputError::FutureCommit { .. } => Some(
                "commit again with a correct clock, or correct this machine's clock; otherwise deadlines \
                 pass too early"
                    .into(),
            ),
        }
    }
}
