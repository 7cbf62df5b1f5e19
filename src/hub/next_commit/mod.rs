//! A step of the rendered branch: from a source commit, the current state and the outside to the next commit, which
//! is written while no ref points to it yet.
//!
//! - [`step`]: the next step as of now. Refuses steps that must not be published. The daemon publishes the step; a
//!   plan shows it.
//! - [`compute`]: the underlying computation, which proofs repeat.
//!
//! The daemon uses the outside as it is now, a proof uses the outside as a commit recorded it. Both call [`compute`],
//! so every input of a publication is also proven: the result may depend only on [`CommitInputs`], and inputs from
//! flags or a clock must be recorded in the commit.

mod compute;
mod step;

pub use compute::{CommitInputs, NextCommit, NextCommitError, Outside, compute};
pub use step::{Exemptions, StepInputs, rehearse, step};
