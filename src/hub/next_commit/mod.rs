//! A step of the rendered branch: from a source commit, the current state and the outside to the next commit, which
//! is written but not pointed at.
//!
//! - [`step`]: the next step as of now. It refuses what must not be published. The daemon publishes the step, a plan
//!   shows it.
//! - [`compute`]: the computation below it, which proofs repeat.
//!
//! The daemon takes the outside as it is now, a proof as an earlier commit recorded it. Both call [`compute`], so
//! every input of a publication is proven as well: the result must be a function of [`CommitInputs`], and inputs from
//! flags or a clock must be recorded in the commit.

mod compute;
mod step;

pub use compute::{CommitInputs, NextCommit, NextCommitError, Outside, compute};
pub use step::{Exemptions, StepInputs, rehearse, step};
