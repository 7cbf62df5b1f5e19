//! The reasons why a proof has no verdict.

use crate::next_commit::NextCommitError;
use crate::publish::PublishError;
use berth_git::GitError;

/// The proof reached no verdict.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("`{base}` is not before `{tip}` on its branch")]
    NotBefore { base: String, tip: String },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    NextCommit(#[from] NextCommitError),
}

impl VerifyError {
    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        match self {
            VerifyError::NotBefore { .. } => {
                Some("name two commits of one generated branch, the older one first".to_owned())
            }
            VerifyError::Git(error) => error.hint(),
            VerifyError::Publish(error) => error.hint(),
            VerifyError::NextCommit(_) => None,
        }
    }
}
