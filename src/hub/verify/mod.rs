//! Generated commits → proofs: each is computed again from its source, its parent, its facts and its
//! trailers, and compared whole.
//!
//! - [`select`]: the commits of a range. [`proof`]: a commit computed again. [`compare`]: differences.
//! - [`bounds`]: limits of trailers that no computation gives. [`trust`]: the trust in a tip.
//!
//! Proofs write nothing to the repository and trust no cache. Only [`trust`] remembers what it proved.

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
