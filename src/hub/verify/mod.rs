//! Proofs of generated commits: each is computed again from its source, parent, facts and trailers, and compared
//! completely.
//!
//! - [`select`]: the commits of a range. [`proof`]: computes a commit again. [`compare`]: differences. [`bounds`]:
//!   bounds of trailers that cannot be computed. [`trust`]: the trust in a tip.
//!
//! Proofs write nothing to the repository and use no cache. Only [`trust`] remembers proven commits.

pub mod bounds;
pub mod compare;
mod error;
pub mod proof;
pub mod select;
pub mod trust;

pub use bounds::{Expected, ExpectedLimits};
pub use compare::Difference;
pub use error::VerifyError;
pub use proof::{Proof, Verdict, Verifier};
pub use select::select;
