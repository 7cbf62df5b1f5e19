//! The details of a rollout that is not done.

use serde::{Deserialize, Serialize};

use super::Place;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutDetails {
    pub placement: String,
    pub name: String,
    /// `None` if the source is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good: Option<u64>,
    pub state: String,
    pub reason: String,
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<i64>,
    /// The next moment at which it continues by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
    pub at: Place,
    pub stages: Vec<StageForm>,
    pub clusters: Vec<RolloutClusterForm>,
    /// The publications since it began that changed it, the oldest first: number, moment and title.
    pub events: Vec<(u64, i64, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageForm {
    pub name: String,
    pub clusters: usize,
    pub assigned: usize,
    pub succeeded: usize,
    pub failed: usize,
    /// The clusters that may be under way at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<usize>,
    /// The tasks before and after it, in words.
    pub before: Vec<String>,
    pub after: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<i64>,
}

/// A cluster of the rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolloutClusterForm {
    pub cluster: String,
    /// The index of its stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    /// When it was assigned the release, and when its verdict came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<i64>,
    pub verdict: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub words: String,
}
