//! A change that is not published yet.

use serde::{Deserialize, Serialize};

use super::{CauseForm, ChangesForm, ConsequenceForm, HeldForm};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeDetails {
    pub title: String,
    /// The base and the change.
    pub words: String,
    /// The commit whose files the causes name.
    pub source: String,
    /// The objects that the first step changes, and those that are changed in the end. Held ones are not counted.
    pub now: ChangesForm,
    pub end: ChangesForm,
    pub held: Vec<HeldForm>,
    /// Problems first, then rollouts and deadlines.
    pub remarks: Vec<RemarkForm>,
    pub rows: Vec<StepsForm>,
    /// Edits that change no cluster.
    pub idle: Vec<CauseForm>,
}

/// The consequences of the same edits: in the first step, and in the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepsForm {
    pub causes: Vec<CauseForm>,
    /// How the causes relate, where it needs words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    pub now: StepForm,
    pub end: StepForm,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepForm {
    pub consequences: Vec<ConsequenceForm>,
    /// Moves of replicas, in words.
    pub replicas: Vec<String>,
}

/// A heading, and its lines with their marks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RemarkForm {
    pub heading: String,
    pub lines: Vec<(char, String)>,
}
