//! The details of one placement.

use serde::{Deserialize, Serialize};

use super::{Place, Runs};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementDetails {
    pub at: Place,
    /// The selection, in words.
    pub rule: String,
    /// The objects of a copy, the first ones by name.
    pub objects: Vec<String>,
    pub object_count: usize,
    /// The clusters that each rule leaves. Empty if the source is not known.
    pub funnel: Vec<FunnelStep>,
    pub reasons: Vec<String>,
    /// The reason of each cluster.
    pub reason_of: Runs,
    pub scorers: Vec<ScorerForm>,
    /// The picked clusters and those that follow, by rank.
    pub scored: Vec<ScoredCluster>,
    pub overrides: Vec<OverrideForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutBrief>,
    /// The copies that are not in sync.
    pub exceptions: Vec<Exception>,
    /// The publication since which each copy is as it is, in the order of the clusters. 0: before the oldest one of the
    /// page, or not known.
    pub since: Runs,
    /// The condition of the decision in its system's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The publications that changed it, the newest first.
    pub history: Vec<ChangeLine>,
}

/// One rule: how many clusters it leaves, and how many it drops for which reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunnelStep {
    pub rule: String,
    /// The object that requires the rule, if it is not the placement itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub left: usize,
    /// Pairs of a reason and a number.
    pub dropped: Vec<(u32, usize)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScorerForm {
    pub name: String,
    pub weight: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoredCluster {
    pub cluster: usize,
    pub rank: usize,
    pub scores: Vec<i64>,
}

/// An override: what it changes, where, and from which line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverrideForm {
    pub to: String,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    pub at: Place,
}

/// The rollout of a placement, as `berth rollout list` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutBrief {
    /// The block with its details, while it is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `None` if the source is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good: Option<u64>,
    pub state: String,
    pub reason: String,
    pub reached: usize,
    pub picked: usize,
}

/// Copies in one condition: their state, the reason, and their clusters as pairs of a first index and a length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exception {
    pub state: u8,
    pub words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    pub clusters: Vec<u32>,
}

/// A publication that changed a placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeLine {
    pub sequence: u64,
    pub published: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub title: String,
    /// The number of clusters that lost it, got another form, and gained it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<[usize; 3]>,
    /// The edit behind the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
}
