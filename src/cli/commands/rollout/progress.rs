//! Rollouts as rows of tables, and for programs.

use std::collections::{BTreeMap, BTreeSet};

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
        picture(line),
        line.state.word().to_owned(),
        line.reason.clone(),
    ]
}

/// The width of a picture, without the bars between stages.
const WIDTH: usize = 20;

/// The marks of a picture: succeeded, assigned, failed, and to come.
const MARKS: [char; 4] = ['#', '>', 'x', '.'];

/// Draws a rollout in ASCII, as `####|##>.|....` with a part for each stage, or as one part.
fn picture(line: &RolloutProgress) -> String {
    let marks: BTreeMap<&str, usize> =
        line.clusters.iter().map(|one| (&*one.cluster, mark(line, one))).collect();
    let all = |names: &mut dyn Iterator<Item = &str>| {
        let mut counts = [0; MARKS.len()];
        names.filter_map(|name| marks.get(name)).for_each(|mark| counts[*mark] += 1);
        counts
    };
    if line.stages.is_empty() {
        return bar(all(&mut line.clusters.iter().map(|one| &*one.cluster)), WIDTH);
    }
    let total: usize = line.stages.iter().map(|stage| stage.clusters.len()).sum();
    let part = |stage: &StageProgress| {
        let width = (stage.clusters.len() * WIDTH / total.max(1)).max(1);
        bar(all(&mut stage.clusters.iter().map(|one| &*one.name)), width)
    };
    line.stages.iter().map(part).collect::<Vec<String>>().join("|")
}

/// Draws one stage of a rollout.
pub(super) fn picture_of_stage(line: &RolloutProgress, stage: &StageProgress) -> String {
    let staged: BTreeSet<&str> = stage.clusters.iter().map(|one| &*one.name).collect();
    let mut counts = [0; MARKS.len()];
    let own = line.clusters.iter().filter(|one| staged.contains(&*one.cluster));
    own.for_each(|one| counts[mark(line, one)] += 1);
    bar(counts, WIDTH)
}

/// Returns the position of a cluster's mark.
fn mark(line: &RolloutProgress, one: &RolloutClusterProgress) -> usize {
    match one.health() {
        _ if one.release.is_none() || one.release != line.release => 3,
        "succeeded" => 0,
        "failed" => 2,
        _ => 1,
    }
}

/// Draws one mark for each cluster, or where there are more than the width their shares: every kind that exists has a
/// mark.
fn bar(counts: [usize; MARKS.len()], width: usize) -> String {
    let total: usize = counts.iter().sum();
    let share = |count: usize| match total <= width {
        true => count,
        false => (count * width / total).max(usize::from(count > 0)),
    };
    MARKS.iter().zip(counts).map(|(mark, count)| mark.to_string().repeat(share(count))).collect()
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
