//! The rollouts that are not done: lines for the first view, and details.

use std::collections::BTreeMap;

use berth_base::model::Timestamp;
use berth_base::model::release::Health;
use berth_base::model::rollout::StageTask;
use berth_base::model::staged::{StageCluster, StageProgress};
use berth_base::text::hex;
use berth_engine::release::outlook::duration;
use berth_engine::release::workload_rollout::RolloutState;
use berth_engine::rollouts::{RolloutClusterProgress, RolloutProgress};
use sha2::{Digest as _, Sha256};

use crate::cell::shortened;
use crate::form::{RollingLine, RolloutClusterForm, RolloutDetails, StageCount, StageForm, place};
use crate::grid::Grid;
use crate::inputs::{Publication, SiteInputs};
use crate::publications::title;

/// The length of the hash in the name of a rollout's block, in bytes.
const ID_BYTES: usize = 8;

/// The number of rollouts in the head.
const MOST_LINES: usize = 300;

/// Reports whether a rollout is shown by itself.
pub(crate) fn is_on_its_way(rollout: &RolloutProgress) -> bool {
    rollout.state != RolloutState::Done
}

/// Returns the name of a rollout's block: short, safe in a file's name, and new with each release.
pub(crate) fn id(rollout: &RolloutProgress) -> String {
    let key = &rollout.key;
    let whole = format!("{} {}", key.kind_and_group(), key.full_name());
    let release = rollout.release.unwrap_or_default();
    format!("{}-{release}", hex(&Sha256::digest(whole)[..ID_BYTES]))
}

/// Returns the rollouts that need somebody first, then the others by name.
pub(crate) fn lines(inputs: &SiteInputs<'_>, grid: &Grid<'_>) -> Vec<RollingLine> {
    let mut shown: Vec<&RolloutProgress> =
        inputs.rollouts.iter().filter(|rollout| is_on_its_way(rollout)).collect();
    shown.sort_by_key(|rollout| std::cmp::Reverse(rollout.state == RolloutState::Halted));
    let line = |rollout: &&RolloutProgress| {
        let (reached, picked) = rollout.reached();
        RollingLine {
            id: id(rollout),
            placement: grid.id(&rollout.key),
            name: rollout.key.full_name(),
            release: rollout.release,
            state: rollout.state.word().to_owned(),
            reason: shortened(&rollout.reason),
            begun: rollout.begun.map(Timestamp::as_second),
            reached,
            picked,
            stages: counts(rollout),
        }
    };
    shown.iter().take(MOST_LINES).map(line).collect()
}

/// Returns the details of each rollout that is not done, by the name of its block.
pub(crate) fn details(inputs: &SiteInputs<'_>, grid: &Grid<'_>) -> BTreeMap<String, RolloutDetails> {
    let shown = inputs.rollouts.iter().filter(|rollout| is_on_its_way(rollout));
    shown.map(|rollout| (id(rollout), of_rollout(inputs, grid, rollout))).collect()
}

fn of_rollout(inputs: &SiteInputs<'_>, grid: &Grid<'_>, rollout: &RolloutProgress) -> RolloutDetails {
    let fleet = inputs.fleet;
    let at =
        fleet.and_then(|fleet| fleet.workloads.get(&rollout.key)).map(|workload| place(&workload.origin));
    let decision = inputs.state.decisions.get(&rollout.key);
    let file = || (decision.map(|decision| decision.source.clone()).unwrap_or_default(), 0);
    RolloutDetails {
        placement: grid.id(&rollout.key),
        name: rollout.key.full_name(),
        strategy: rollout.strategy.map(str::to_owned),
        release: rollout.release,
        last_good: rollout.good,
        state: rollout.state.word().to_owned(),
        reason: shortened(&rollout.reason),
        notes: rollout.notes.iter().map(|note| shortened(note)).collect(),
        begun: rollout.begun.map(Timestamp::as_second),
        next: rollout.next.map(Timestamp::as_second),
        at: at.unwrap_or_else(file),
        stages: stages(rollout),
        clusters: clusters(rollout),
        events: events(inputs, rollout),
    }
}

/// Returns the clusters of a rollout, each with the moments that are known.
pub(crate) fn clusters(rollout: &RolloutProgress) -> Vec<RolloutClusterForm> {
    let stage_of = stages_of(rollout);
    let cluster = |cluster: &RolloutClusterProgress| {
        of_cluster(rollout, cluster, stage_of.get(cluster.cluster.as_str()))
    };
    rollout.clusters.iter().map(cluster).collect()
}

/// Returns the stage of each cluster, and its progress there.
fn stages_of(rollout: &RolloutProgress) -> BTreeMap<&str, (usize, &StageCluster)> {
    let mut found = BTreeMap::new();
    for (index, stage) in rollout.stages.iter().enumerate() {
        found.extend(stage.clusters.iter().map(|cluster| (cluster.name.as_str(), (index, cluster))));
    }
    found
}

fn of_cluster(
    rollout: &RolloutProgress,
    cluster: &RolloutClusterProgress,
    stage: Option<&(usize, &StageCluster)>,
) -> RolloutClusterForm {
    let verdict = verdict(rollout, cluster);
    let is_judged = matches!(verdict, "failed" | "succeeded");
    let reported = cluster.report.as_ref().and_then(|report| report.since).filter(|_| is_judged);
    let progress = stage.map(|(_, progress)| progress);
    let judged = progress.and_then(|progress| progress.succeeded).or(reported);
    let assigned = cluster.assigned_at.or(progress.and_then(|progress| progress.started));
    RolloutClusterForm {
        cluster: cluster.cluster.clone(),
        stage: stage.map(|(index, _)| *index),
        release: cluster.release,
        assigned: assigned.map(Timestamp::as_second),
        judged: judged.map(Timestamp::as_second),
        verdict: verdict.to_owned(),
        words: shortened(&cluster.words()),
    }
}

/// Returns a cluster's part in the rollout in a word.
fn verdict(rollout: &RolloutProgress, cluster: &RolloutClusterProgress) -> &'static str {
    if cluster.leaving {
        return "leaving";
    }
    if cluster.release.is_none() || cluster.release != rollout.release {
        return "waits";
    }
    match cluster.report.as_ref().map(|report| report.health) {
        Some(Health::Failed) => "failed",
        Some(Health::Succeeded) => "succeeded",
        Some(Health::Applying | Health::Progressing) => "progressing",
        // `berth rollout show` calls it `applying`.
        None => "progressing",
    }
}

/// Returns the counts of each stage; a rollout without stages counts as one.
fn counts(rollout: &RolloutProgress) -> Vec<StageCount> {
    let stage_of = stages_of(rollout);
    let mut counts: Vec<StageCount> = rollout
        .stages
        .iter()
        .map(|stage| StageCount { name: stage.name.clone(), ..StageCount::default() })
        .collect();
    if counts.is_empty() {
        counts.push(StageCount::default());
    }
    for cluster in rollout.clusters.iter().filter(|cluster| !cluster.leaving) {
        let index = stage_of.get(cluster.cluster.as_str()).map_or(0, |(index, _)| *index);
        let Some(count) = counts.get_mut(index) else { continue };
        let verdict = verdict(rollout, cluster);
        count.clusters += 1;
        count.assigned += usize::from(verdict != "waits");
        count.succeeded += usize::from(verdict == "succeeded");
        count.failed += usize::from(verdict == "failed");
    }
    counts
}

fn stages(rollout: &RolloutProgress) -> Vec<StageForm> {
    let form = |(count, stage): (StageCount, Option<&StageProgress>)| StageForm {
        name: count.name,
        clusters: count.clusters,
        assigned: count.assigned,
        succeeded: count.succeeded,
        failed: count.failed,
        at_a_time: stage.map(StageProgress::most_at_a_time),
        before: stage.map(|stage| stage.before.iter().map(task).collect()).unwrap_or_default(),
        after: stage.map(|stage| stage.after.iter().map(task).collect()).unwrap_or_default(),
        started: stage.and_then(|stage| stage.started).map(Timestamp::as_second),
        finished: stage.and_then(|stage| stage.finished).map(Timestamp::as_second),
    };
    let stages = rollout.stages.iter().map(Some).chain(std::iter::repeat(None));
    counts(rollout).into_iter().zip(stages).map(form).collect()
}

fn task(task: &StageTask) -> String {
    match task {
        StageTask::Approval => "an approval".to_owned(),
        StageTask::Wait(seconds) => duration(*seconds),
    }
}

/// Returns the publications since the rollout began that changed its workload, the oldest first.
fn events(inputs: &SiteInputs<'_>, rollout: &RolloutProgress) -> Vec<(u64, i64, String)> {
    let begun = rollout.begun.map_or(0, Timestamp::as_second);
    let is_of = |publication: &&Publication| {
        publication.published.as_second() >= begun && publication.touched.contains_key(&rollout.key)
    };
    let event = |publication: &Publication| {
        (publication.sequence, publication.published.as_second(), title(publication))
    };
    inputs.history.iter().rev().filter(is_of).map(event).collect()
}
