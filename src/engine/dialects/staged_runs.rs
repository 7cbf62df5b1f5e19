//! The documents by which people steer a system's staged runs: the field of a run's state, and an approval.

use serde_json::Value as Json;

use berth_base::model::staged::{RunState, StageGate};
use berth_base::model::{Key, Timestamp};

/// A system's staged runs.
#[derive(Debug)]
pub struct StagedRuns {
    pub group: &'static str,
    /// The path to the field of a run's state.
    pub state: [&'static str; 2],
    pub word: fn(RunState) -> &'static str,
    /// Makes the document that approves a gate of a run.
    pub approval: fn(&RunApproval<'_>) -> Json,
}

/// An approval that a person is about to give.
#[derive(Clone, Copy, Debug)]
pub struct RunApproval<'a> {
    pub run: &'a Key,
    pub gate: &'a StageGate,
    /// The person's message.
    pub message: &'a str,
    pub now: Timestamp,
}
