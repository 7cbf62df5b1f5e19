//! The reasons why a pass cannot do its work.

use crate::next_commit::NextCommitError;
use crate::publish::PublishError;
use crate::verify::VerifyError;
use crate::verify::trust::Untrusted;
use berth_git::transport::TransportError;
use berth_git::{CommitId, GitError};

/// A pass failed. Faults of the fleet are diagnostics instead.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    #[error(transparent)]
    NextCommit(#[from] NextCommitError),
    #[error("the source branch `{0}` has no commit yet")]
    NoSource(String),
    #[error("there is no source branch `{name}`")]
    NoSuchSource { name: String, hint: String },
    /// Nobody named the source, and HEAD names another branch than at the last pass.
    #[error("HEAD is on `{name}`, and the source processed last is `{last}`")]
    OtherBranch { name: String, last: String },
    #[error("`{0}` is the rendered branch, which cannot be the source")]
    SourceIsRendered(String),
    #[error("the remote's `{name}` is at {now}, which does not come after {last}, its last known commit")]
    RenderedRewound { name: String, now: CommitId, last: CommitId },
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    #[error(transparent)]
    Proof(#[from] VerifyError),
    #[error(transparent)]
    Remote(#[from] TransportError),
    #[error("the lease ended during the pass, and nothing was published")]
    LeaseEnded,
}

impl From<GitError> for PassError {
    fn from(error: GitError) -> PassError {
        NextCommitError::from(error).into()
    }
}

impl From<PublishError> for PassError {
    fn from(error: PublishError) -> PassError {
        NextCommitError::from(error).into()
    }
}

impl PassError {
    pub fn hint(&self) -> Option<String> {
        match self {
            PassError::NextCommit(error) => error.hint(),
            PassError::NoSource(_) => {
                Some("commit the fleet's files first, or name a branch with --source".into())
            }
            PassError::NoSuchSource { hint, .. } => Some(hint.clone()),
            PassError::OtherBranch { name, last } => Some(format!(
                "go back with `git switch {last}`, or publish the other branch with `--source {name}`"
            )),
            PassError::SourceIsRendered(_) => Some("name the branch people edit with --source".into()),
            PassError::RenderedRewound { name, last, .. } => Some(format!(
                "push {last} back (git push --force REMOTE {last}:{name}), or accept the older commit for \
                 one run with --allow-rewind"
            )),
            PassError::Untrusted(error) => Some(error.hint()),
            PassError::Proof(error) => error.hint(),
            PassError::Remote(error) => error.hint(),
            PassError::LeaseEnded => None,
        }
    }

    fn git(&self) -> Option<&GitError> {
        if let PassError::NextCommit(error) = self { error.git() } else { None }
    }

    /// Reports whether signing failed.
    pub(super) fn is_unsigned(&self) -> bool {
        matches!(self.git(), Some(GitError::Unsigned { .. }))
    }

    pub(super) fn is_locked(&self) -> bool {
        matches!(self.git(), Some(GitError::Locked { .. }))
    }

    /// Reports whether the remote may work a moment later.
    pub fn is_passing(&self) -> bool {
        matches!(self, PassError::Remote(error) if error.is_passing())
    }

    /// Reports whether the pass was cancelled because the process was asked to stop.
    pub(super) fn is_stop(&self) -> bool {
        matches!(self, PassError::Remote(TransportError::Cancelled { .. }))
    }

    /// Reports whether a damaged repository could be the cause.
    pub(super) fn may_be_damage(&self) -> bool {
        use TransportError::{Failed, Truncated};
        match self {
            PassError::Remote(error) => matches!(error, Failed { .. } | Truncated { .. }),
            PassError::NextCommit(error) => !self.is_race() && !self.is_unsigned() && !error.is_refusal(),
            PassError::Proof(_) => true,
            _ => false,
        }
    }

    pub fn is_race(&self) -> bool {
        matches!(self, PassError::NextCommit(NextCommitError::Publish(PublishError::Raced { .. })))
            || matches!(self, PassError::Remote(error) if error.is_race())
            || self.git().is_some_and(GitError::is_race)
    }
}
