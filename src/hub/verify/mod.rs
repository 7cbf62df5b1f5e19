//! Generated commits → proofs: each is computed again from its source, its parent, its facts and its
//! trailers, and compared whole.
//!
//! - [`select`]: the commits of a range. [`proof`]: a commit computed again. [`compare`]: differences.
//! - [`bounds`]: limits of trailers that no computation gives. [`trust`]: the trust in a tip.
//!
//! Proofs write nothing to the repository and trust no cache. Only [`trust`] remembers what it proved.

pub mod bounds;
pub mod compare;
pub mod proof;
pub mod select;
pub mod trust;

pub use bounds::{Expected, ExpectedLimits};
pub use compare::Difference;
pub use proof::{Proof, Verdict, Verifier};
pub use select::select;

use crate::next_commit::NextCommitError;
use crate::publish::PublishError;
use berth_git::GitError;

/// No verdict could be reached at all.
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
    /// Returns the hint for a person, where there is one.
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
