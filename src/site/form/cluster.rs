//! The details of one cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Place;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDetails {
    /// The places that describe it. Empty if the source is not known.
    pub at: Vec<Place>,
    /// Its state in the words of `berth status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why it fails, is suspended, or counts as unreachable.
    pub words: Vec<String>,
    pub labels: BTreeMap<String, String>,
    /// The labels that its member reported and that count.
    pub reported_labels: BTreeMap<String, String>,
    pub taints: Vec<TaintWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applier: Option<String>,
    /// Measurements from files and reports.
    pub facts: Vec<Fact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<u64>,
    /// `None` if no report has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<i64>,
    /// The seconds between its reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<i64>,
    pub problems: Vec<ObjectWords>,
    pub problem_count: usize,
    /// The publications that changed it, the newest first.
    pub history: Vec<ClusterEvent>,
}

/// A taint as written: `key=value:effect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaintWords {
    pub words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
}

/// A named measurement.
pub type Fact = (String, String);

/// An object, and the member's words about it.
pub type ObjectWords = (String, String);

/// A publication that changed one placement in the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterEvent {
    pub sequence: u64,
    pub published: i64,
    pub title: String,
    #[serde(rename = "move")]
    pub move_: String,
    pub held: bool,
    pub placement: String,
}
