//! The names of clusters and placements, in the order of the map.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Runs;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Names {
    pub clusters: Vec<String>,
    /// The state of each cluster.
    pub states: Runs,
    /// The labels by which columns can be grouped.
    pub labels: BTreeMap<String, LabelRuns>,
    pub placements: Vec<String>,
    pub kinds: Vec<String>,
    /// The kind of each placement.
    pub kind_of: Vec<u32>,
    pub namespaces: Vec<String>,
    pub namespace_of: Runs,
    /// The publication that changed each placement last; 0 if it is older than the page's history.
    pub changed_by: Vec<u64>,
    /// The placements with a rollout that is not done, and the rollout.
    pub rollouts: Vec<(usize, String)>,
}

/// The values of a label, and the value of each cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelRuns {
    pub values: Vec<String>,
    pub of: Runs,
}
