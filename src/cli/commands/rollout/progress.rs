//! Rollouts as rows of tables, and for programs.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::output::results::NameForm;
use berth_base::model::Timestamp;
use berth_base::model::staged::{StageCluster, StageProgress};
use berth_engine::rollouts::{RolloutClusterProgress, RolloutProgress};

/// Returns a workload's row in the table of rollouts.
pub(super) fn workload_row(line: &RolloutProgress) -> Vec<String> {
    let (reached, all) = line.reached();
    vec![
        line.key.to_string(),
        or_dash(line.strategy.map(str::to_owned)),
        or_dash(line.release.map(|release| release.to_string())),
        format!("{reached} of {all}"),
        line.state.word().to_owned(),
        line.reason.clone(),
    ]
}

/// Returns a cluster's row in the table of one rollout.
pub(super) fn cluster_row(line: &RolloutClusterProgress) -> Vec<String> {
    vec![
        line.cluster.clone(),
        or_dash(line.release.map(|release| release.to_string())),
        line.health().to_owned(),
        or_dash(line.since().map(|since| since.to_string())),
        line.words(),
    ]
}

/// A workload's rollout, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkloadRolloutForm<'a> {
    group: &'a str,
    #[serde(flatten)]
    name: NameForm,
    strategy: Option<&'static str>,
    release: Option<u64>,
    begun: Option<Timestamp>,
    last_good: Option<u64>,
    state: &'static str,
    reason: &'a str,
    reached: usize,
    picked: usize,
    next: Option<Timestamp>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    details: Option<DetailsForm<'a>>,
}

/// The parts of a rollout, for programs.
#[derive(Debug, Serialize)]
struct DetailsForm<'a> {
    notes: &'a BTreeSet<String>,
    stages: Vec<StageForm<'a>>,
    clusters: Vec<ClusterForm<'a>>,
}

#[derive(Debug, Serialize)]
struct StageForm<'a> {
    name: &'a str,
    started: Option<Timestamp>,
    updated: Option<Timestamp>,
    finished: Option<Timestamp>,
    clusters: Vec<StageClusterForm<'a>>,
}

#[derive(Debug, Serialize)]
struct StageClusterForm<'a> {
    cluster: &'a str,
    started: Option<Timestamp>,
    succeeded: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct ClusterForm<'a> {
    cluster: &'a str,
    release: Option<u64>,
    health: &'static str,
    since: Option<Timestamp>,
    message: &'a str,
    leaving: bool,
    waits: Option<&'a str>,
}

impl<'a> WorkloadRolloutForm<'a> {
    pub fn of(line: &'a RolloutProgress) -> WorkloadRolloutForm<'a> {
        let (reached, picked) = line.reached();
        WorkloadRolloutForm {
            group: &line.key.group,
            name: NameForm::of(&line.key),
            strategy: line.strategy,
            release: line.release,
            begun: line.begun,
            last_good: line.good,
            state: line.state.word(),
            reason: &line.reason,
            reached,
            picked,
            next: line.next,
            details: None,
        }
    }

    /// Returns the form with the rollout's stages and clusters.
    pub fn with_details(line: &'a RolloutProgress) -> WorkloadRolloutForm<'a> {
        let stage = |stage: &'a StageProgress| StageForm {
            name: &stage.name,
            started: stage.started,
            updated: stage.updated,
            finished: stage.finished,
            clusters: stage.clusters.iter().map(StageClusterForm::of).collect(),
        };
        let details = DetailsForm {
            notes: &line.notes,
            stages: line.stages.iter().map(stage).collect(),
            clusters: line.clusters.iter().map(ClusterForm::of).collect(),
        };
        WorkloadRolloutForm { details: Some(details), ..WorkloadRolloutForm::of(line) }
    }
}

impl<'a> StageClusterForm<'a> {
    fn of(cluster: &'a StageCluster) -> StageClusterForm<'a> {
        let StageCluster { name, started, succeeded, .. } = cluster;
        StageClusterForm { cluster: name, started: *started, succeeded: *succeeded }
    }
}

impl<'a> ClusterForm<'a> {
    fn of(line: &'a RolloutClusterProgress) -> ClusterForm<'a> {
        ClusterForm {
            cluster: &line.cluster,
            release: line.release,
            health: line.health(),
            since: line.since(),
            message: line.report.as_ref().map(|report| report.message.as_str()).unwrap_or_default(),
            leaving: line.leaving,
            waits: line.waits.as_deref(),
        }
    }
}

pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}
