//! Proofs of generated commits: each is computed again from its source, parent, facts and trailers, and compared
//! completely.
//!
//! - [`proof`]: selects the commits of a range, and computes each again. [`compare`]: differences. [`bounds`]:
//!   bounds of trailers that cannot be computed. [`trust`]: the trust in a tip.
//!
//! Proofs write nothing to the repository and use no cache. Only [`trust`] remembers proven commits.

pub mod bounds;
pub mod compare;
pub mod proof;
pub mod trust;

use crate::next_commit::NextCommitError;
use crate::publish::PublishError;
use berth_git::GitError;

pub use bounds::{Expected, ExpectedLimits};
pub use compare::Difference;
pub use proof::select;
pub use proof::{Proof, Verdict, Verifier};

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
