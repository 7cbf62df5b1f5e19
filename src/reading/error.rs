//! Why a fleet could not be read at all. Faults of its files are diagnostics, not this.

use crate::git::{CommitId, GitError};
use crate::model::ContentId;
use crate::publish::PublishError;
use crate::source;

/// A fleet could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadingError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Folder(#[from] source::SourceError),
    #[error("the rendered branch has no `{0}`, which an earlier state named")]
    MissingContent(ContentId),
    #[error(
        "the commit {commit} is not in this repository, and which access rules are in force can not be told without it"
    )]
    NoRules { commit: CommitId },
    #[error("commit {commit} is dated {date}, which is in the future")]
    FutureCommit { commit: CommitId, date: String },
}

impl ReadingError {
    pub fn hint(&self) -> Option<String> {
        match self {
            ReadingError::Git(error) => error.hint(),
            ReadingError::Publish(error) => error.hint(),
            ReadingError::Folder(_) | ReadingError::MissingContent(_) => None,
            ReadingError::NoRules { .. } => {
                Some("fetch more of the history: `git fetch --unshallow`, and the rendered branch".into())
            }
            ReadingError::FutureCommit { .. } => Some(
                "deadlines would pass before their time; commit again with a right clock, or set this one's"
                    .into(),
            ),
        }
    }
}
