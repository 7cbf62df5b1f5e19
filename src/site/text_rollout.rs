//! A rollout over time as text of a limited width: a line for each cluster, or for several alike where there are more
//! than fit.

use berth_engine::rollouts::RolloutProgress;

use crate::form::RolloutClusterForm;
use crate::rollouts;

/// A rollout over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextRollout {
    /// The first and the last moment, in seconds.
    pub begin: i64,
    pub end: i64,
    /// By stage.
    pub stages: Vec<StageLines>,
}

/// The lines of one stage; of all clusters where there are no stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageLines {
    pub name: String,
    pub lines: Vec<TimeLine>,
}

/// Clusters, and what is true of all of them at the end of each equal part of the time: the worst, if they differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLine {
    pub clusters: Vec<String>,
    pub marks: Vec<TimeMark>,
}

/// The state of a cluster in a rollout at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeMark {
    Succeeded,
    Waits,
    Assigned,
    Failed,
}

impl TextRollout {
    /// Draws a rollout until this moment, with this many lines for each stage, and marks in each line.
    pub fn of(rollout: &RolloutProgress, now: i64, lines: usize, width: usize) -> TextRollout {
        let clusters = rollouts::clusters(rollout);
        let moments = clusters.iter().flat_map(|cluster| [cluster.assigned, cluster.judged]).flatten();
        let end = moments.max().unwrap_or(now).max(now);
        let begin = rollout.begun.map_or(end, |begun| begun.as_second()).min(end);
        let at = |index: usize| begin + (end - begin) * (index as i64 + 1) / width.max(1) as i64;
        let mut stages: Vec<(String, Vec<RolloutClusterForm>)> =
            rollout.stages.iter().map(|stage| (stage.name.clone(), Vec::new())).collect();
        if stages.is_empty() {
            stages.push((String::new(), Vec::new()));
        }
        for cluster in clusters.into_iter().filter(|cluster| cluster.verdict != "leaving") {
            if let Some((_, clusters)) = stages.get_mut(cluster.stage.unwrap_or_default()) {
                clusters.push(cluster);
            }
        }
        let stage = |(name, mut clusters): (String, Vec<RolloutClusterForm>)| {
            clusters.sort_by_key(|cluster| {
                let never = i64::MAX;
                (assigned(cluster).unwrap_or(never), cluster.judged.unwrap_or(never), cluster.cluster.clone())
            });
            let size = clusters.len().div_ceil(lines.max(1)).max(1);
            let line = |several: &[RolloutClusterForm]| TimeLine {
                clusters: several.iter().map(|cluster| cluster.cluster.clone()).collect(),
                marks: (0..width).map(|index| worst(several, at(index))).collect(),
            };
            StageLines { name, lines: clusters.chunks(size).map(line).collect() }
        };
        TextRollout { begin, end, stages: stages.into_iter().map(stage).collect() }
    }
}

/// Returns the moment at which a cluster was assigned this release. One that waits was assigned an earlier one.
fn assigned(cluster: &RolloutClusterForm) -> Option<i64> {
    cluster.assigned.filter(|_| cluster.verdict != "waits")
}

fn worst(clusters: &[RolloutClusterForm], at: i64) -> TimeMark {
    clusters.iter().map(|cluster| mark(cluster, at)).max().unwrap_or(TimeMark::Waits)
}

fn mark(cluster: &RolloutClusterForm, at: i64) -> TimeMark {
    let is_judged = cluster.judged.is_none_or(|judged| judged <= at);
    match cluster.verdict.as_str() {
        "waits" => TimeMark::Waits,
        _ if assigned(cluster).is_some_and(|assigned| assigned > at) => TimeMark::Waits,
        "succeeded" if is_judged => TimeMark::Succeeded,
        "failed" if is_judged => TimeMark::Failed,
        _ => TimeMark::Assigned,
    }
}
