//! Stages and the picked clusters with their labels → the clusters of each stage in order, or the faults.
//!
//! Follows KubeFleet's plan of a staged update run: each picked cluster must be in exactly one stage. Within
//! a stage, clusters are ordered by the integer value of a label, then by name. A stage without clusters
//! stays, with its tasks.
//!
//! The labels of clusters, with those that members report. Stages, their order and pins select by them.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::decide::overlay;
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::rollout::Stage;
use berth_base::model::selector::Labels;
use berth_base::model::staged::{StageCluster, StageProgress};
use berth_base::model::{ClusterStatus, Fleet, Map, Shared};
use berth_base::text::some_quoted;

/// The number of cluster names in a message.
const SHOWN: usize = 10;

/// The reason why stages cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageFault {
    InTwoStages {
        cluster: String,
        stages: [String; 2],
    },
    InNoStage {
        clusters: Vec<String>,
    },
    /// The label that orders the stage's clusters is no integer. `None`: the cluster lacks the label.
    NoInteger {
        cluster: String,
        stage: String,
        label: String,
        value: Option<String>,
    },
}

/// Returns the stages with their clusters, none of which has begun. `clusters` are the picked ones.
pub fn plan<'c>(
    stages: &[Stage],
    clusters: impl IntoIterator<Item = (&'c str, &'c Labels)>,
) -> Result<Vec<StageProgress>, Vec<StageFault>> {
    let clusters: BTreeMap<&str, &Labels> = clusters.into_iter().collect();
    let mut faults = Vec::new();
    let mut stage_of: BTreeMap<&str, &str> = BTreeMap::new();
    let mut planned = Vec::new();
    for stage in stages {
        let mut members: BTreeSet<(i64, &str)> = BTreeSet::new();
        for (cluster, labels) in clusters.iter().filter(|(_, labels)| takes(stage, labels)) {
            if let Some(first) = stage_of.insert(cluster, &stage.name) {
                let stages = [first.to_owned(), stage.name.clone()];
                faults.push(StageFault::InTwoStages { cluster: (*cluster).to_owned(), stages });
            }
            match order(stage, labels) {
                Ok(number) => drop(members.insert((number, cluster))),
                Err((label, value)) => faults.push(StageFault::NoInteger {
                    cluster: (*cluster).to_owned(),
                    stage: stage.name.clone(),
                    label: label.to_owned(),
                    value: value.map(str::to_owned),
                }),
            }
        }
        let members = members.into_iter().map(|(_, cluster)| StageCluster::waiting(cluster));
        planned.push(StageProgress::new(stage, members.collect()));
    }
    let left: Vec<String> =
        clusters.keys().filter(|cluster| !stage_of.contains_key(*cluster)).map(ToString::to_string).collect();
    if !left.is_empty() {
        faults.push(StageFault::InNoStage { clusters: left });
    }
    if faults.is_empty() { Ok(planned) } else { Err(faults) }
}

/// Reports whether a stage includes clusters with these labels. A stage without a selector includes none.
pub(super) fn takes(stage: &Stage, labels: &Labels) -> bool {
    stage.selector.as_ref().is_some_and(|selector| selector.matches(labels))
}

/// Returns the number that orders a cluster in its stage; the error is the label and its value.
fn order<'a>(stage: &'a Stage, labels: &'a Labels) -> Result<i64, (&'a str, Option<&'a str>)> {
    let Some(label) = stage.sorted_by.as_deref() else { return Ok(0) };
    let value = labels.get(label).map(String::as_str);
    value.and_then(|value| value.parse().ok()).ok_or((label, value))
}

impl StageFault {
    /// Returns the fault as an error at the place of the stages.
    pub fn diagnostic(&self, at: &Pos) -> Diagnostic {
        let error = |message: String, hint: String| Diagnostic::error(at.clone(), message).hint(hint);
        match self {
            StageFault::InTwoStages { cluster, stages: [first, second] } => error(
                format!("cluster `{cluster}` is in two stages, `{first}` and `{second}`"),
                format!("change the selector of one, so that only one of them matches `{cluster}`"),
            ),
            StageFault::InNoStage { clusters } => error(
                format!("no stage selects {}", some_quoted(clusters, SHOWN)),
                "change a stage's selector, or add a stage for these clusters".to_owned(),
            ),
            StageFault::NoInteger { cluster, stage, label, value } => {
                let message = match value {
                    None => format!("cluster `{cluster}` of stage `{stage}` lacks the label `{label}`"),
                    Some(value) => format!(
                        "cluster `{cluster}` of stage `{stage}` has the label `{label}: {value}`, which is not an \
                         integer"
                    ),
                };
                error(
                    message,
                    format!(
                        "set the label `{label}` of `{cluster}` to an integer: it orders the clusters of the stage"
                    ),
                )
            }
        }
    }
}

/// The labels of the files, with the allowed labels of the members' reports.
#[derive(Clone, Debug)]
pub struct ClusterLabels<'a> {
    fleet: &'a Fleet,
    statuses: Map<String, Shared<ClusterStatus>>,
    /// The labels of clusters with a status, computed at first use.
    overlaid: OnceCell<BTreeMap<String, Labels>>,
}

impl<'a> ClusterLabels<'a> {
    pub fn of(fleet: &'a Fleet, statuses: &Map<String, Shared<ClusterStatus>>) -> ClusterLabels<'a> {
        ClusterLabels { fleet, statuses: statuses.clone(), overlaid: OnceCell::new() }
    }

    pub fn get(&self, cluster: &str) -> Option<&Labels> {
        let overlaid = self.overlaid.get_or_init(|| {
            let changed =
                overlay(self.fleet, &self.statuses).into_iter().filter_map(|cluster| match cluster {
                    Cow::Owned(cluster) => Some((cluster.name.to_string(), cluster.labels)),
                    Cow::Borrowed(_) => None,
                });
            changed.collect()
        });
        overlaid.get(cluster).or_else(|| Some(&self.fleet.clusters.get(cluster)?.labels))
    }
}

impl PartialEq for ClusterLabels<'_> {
    fn eq(&self, other: &ClusterLabels<'_>) -> bool {
        std::ptr::eq(self.fleet, other.fleet) && self.statuses == other.statuses
    }
}
