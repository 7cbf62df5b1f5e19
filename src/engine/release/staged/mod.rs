//! Stages one after the other: the progress of a staged rollout and its clusters' turns → the clusters that
//! go now.
//!
//! This is KubeFleet's update run, with these differences. A failed cluster holds back all other clusters of
//! its stage, and the later stages. A cluster that leaves is skipped. A newcomer follows in its own stage, or
//! after the last stage if its own has finished. The wait after a stage restarts if one of its clusters fails
//! meanwhile. A rollout is done only when all of its clusters are healthy.

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::model::Timestamp;
use berth_base::model::release::Health;
use berth_base::model::rollout::{Amount, Stage, StageTask};
use berth_base::model::selector::Labels;
use berth_base::model::staged::{
    RunProgress, RunState, Side, StageCluster, StageGate, StageProgress, Standing,
};
use berth_base::text::some_quoted;
use jiff::SignedDuration;

use super::stages::takes;
use super::strategies::{Failures, Step, Turn, Version};

/// The seconds after which an unfinished cluster makes its stage stuck.
const STUCK_AFTER: i64 = 300;

/// The number of cluster names in a reason.
const SHOWN: usize = 3;

/// People's orders for a staged rollout.
#[derive(Clone, Copy)]
pub(super) struct StagedOrders<'c> {
    /// The stages in the current strategy, for newcomers.
    pub stages: &'c [Stage],
    pub approved: &'c BTreeSet<StageGate>,
    pub state: RunState,
    /// The labels of a cluster.
    pub labels: &'c dyn Fn(&str) -> Option<&'c Labels>,
}

impl std::fmt::Debug for StagedOrders<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StagedOrders").field("state", &self.state).field("approved", &self.approved).finish()
    }
}

/// The answer for this moment, and the progress to record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stepped<'a> {
    pub step: Step<'a>,
    pub progress: RunProgress,
    pub standing: Standing,
}

/// Returns the clusters that may get the release now. `turns` ascend by name.
pub(super) fn step<'a>(
    orders: StagedOrders<'_>,
    turns: &[Turn<'a>],
    before: &RunProgress,
    now: Timestamp,
) -> Stepped<'a> {
    let mut progress = before.clone();
    queue_joined(orders, turns, &mut progress);
    let view = RunView { approved: orders.approved, state: orders.state, turns, now };
    let mut step = Step::default();
    let mut current = None;
    for (index, stage) in progress.stages.iter_mut().enumerate() {
        if stage.finished.is_none()
            && let Some(standing) = view.advance(stage, &mut step)
        {
            current = Some((index, standing));
            break;
        }
    }
    let leaving = || turns.iter().filter(|turn| !turn.picked);
    let standing = match current {
        Some((index, standing)) => {
            step.waits = view.waits(&progress.stages[index..], &standing, &step.give);
            standing
        }
        None if orders.state != RunState::Run => Standing::Stopped,
        None => {
            step.remove = leaving().filter(|turn| !turn.removing).map(|turn| turn.cluster).collect();
            let is_left = leaving().next().is_some();
            let unwell = view.unwell(&progress.stages).filter(|_| progress.finished.is_none());
            match unwell.filter(|_| !is_left) {
                _ if is_left => Standing::Removing,
                Some(standing) => standing,
                None => Standing::Succeeded,
            }
        }
    };
    let is_done = standing == Standing::Succeeded;
    progress.finished = is_done.then(|| progress.finished.unwrap_or(now));
    Stepped { step, progress, standing }
}

/// Puts picked clusters without a turn into a stage: newcomers, and clusters that left before their turn and
/// are picked again.
fn queue_joined(orders: StagedOrders<'_>, turns: &[Turn<'_>], progress: &mut RunProgress) {
    let stages = &progress.stages;
    let mut stage_of: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, stage) in stages.iter().enumerate() {
        stage_of.extend(stage.clusters.iter().map(|cluster| (cluster.name.as_str(), index)));
    }
    let is_open = |stage: &&StageProgress| stage.finished.is_none();
    let open_stage_for = |cluster: &str| {
        let labels = (orders.labels)(cluster)?;
        let of_now = orders.stages.iter().filter(|stage| takes(stage, labels));
        let names: BTreeSet<&str> = of_now.map(|stage| stage.name.as_str()).collect();
        stages.iter().position(|stage| is_open(&stage) && names.contains(stage.name.as_str()))
    };
    let mut queued: Vec<(String, Option<usize>)> = Vec::new();
    for turn in turns.iter().filter(|turn| turn.picked) {
        let stage = match stage_of.get(turn.cluster) {
            Some(index) if is_open(&&stages[*index]) || turn.has == Version::New => continue,
            Some(_) => None,
            None if turn.has == Version::New && !stages.iter().any(|stage| is_open(&stage)) => continue,
            None => open_stage_for(turn.cluster),
        };
        queued.push((turn.cluster.to_owned(), stage));
    }
    let again: BTreeSet<&str> = queued.iter().map(|(cluster, _)| cluster.as_str()).collect();
    if again.is_empty() {
        return;
    }
    for stage in &mut progress.stages {
        stage.clusters.retain(|cluster| !again.contains(cluster.name.as_str()));
    }
    for (cluster, stage) in queued {
        let stage = stage.unwrap_or_else(|| last_stage(progress));
        progress.stages[stage].clusters.push(StageCluster::waiting(cluster));
    }
}

/// Adds the stage after all others; returns its index.
fn last_stage(progress: &mut RunProgress) -> usize {
    let pace = progress.stages.last().map_or(Amount::Count(1), |last| last.at_a_time);
    if progress.stages.last().is_none_or(|last| last.name != StageProgress::JOINED) {
        progress.stages.push(StageProgress::joined(pace));
    }
    let index = progress.stages.len() - 1;
    progress.stages[index].finished = None;
    index
}

/// The clusters of one stage, by their progress.
#[derive(Default)]
struct StageClusters<'a> {
    /// Assigned without a success yet, including failed clusters.
    under_way: usize,
    failed: Vec<&'a str>,
    stuck: Vec<&'a str>,
    /// In the order of their turns.
    ready: Vec<&'a str>,
    /// Clusters whose old copy is being removed, so they cannot be assigned yet.
    removing: usize,
}

struct RunView<'v, 'a> {
    approved: &'v BTreeSet<StageGate>,
    state: RunState,
    turns: &'v [Turn<'a>],
    now: Timestamp,
}

impl<'a> RunView<'_, 'a> {
    fn turn(&self, cluster: &str) -> Option<&Turn<'a>> {
        let index = self.turns.binary_search_by(|turn| turn.cluster.cmp(cluster)).ok()?;
        Some(&self.turns[index])
    }

    fn is_approved(&self, stage: &StageProgress, side: Side) -> bool {
        let tasks = if side == Side::Before { &stage.before } else { &stage.after };
        let gate = || StageGate { stage: stage.name.clone(), side };
        !tasks.contains(&StageTask::Approval) || self.approved.contains(&gate())
    }

    /// Advances a stage as far as possible. Returns its standing if the stage is not finished.
    fn advance(&self, stage: &mut StageProgress, step: &mut Step<'a>) -> Option<Standing> {
        let is_running = self.state == RunState::Run;
        let name = stage.name.clone();
        if stage.started.is_none() {
            if !is_running {
                return Some(Standing::Stopped);
            }
            if !self.is_approved(stage, Side::Before) {
                return Some(Standing::Waiting { gate: StageGate { stage: name, side: Side::Before } });
            }
            stage.started = Some(self.now);
        }
        let seen = self.look(stage);
        let goes_on = is_running && seen.failed.is_empty();
        let places = stage.most_at_a_time().saturating_sub(seen.under_way);
        let told = seen.ready.iter().take(if goes_on { places } else { 0 }).copied();
        step.give = told.collect();
        for cluster in stage.clusters.iter_mut().filter(|one| step.give.contains(one.name.as_str())) {
            cluster.started = Some(self.now);
        }
        if seen.under_way == 0 && seen.ready.is_empty() && seen.removing == 0 {
            return self.finish(stage, step);
        }
        stage.updated = None;
        let owned = |clusters: &[&str]| clusters.iter().map(ToString::to_string).collect();
        if !seen.failed.is_empty() {
            step.halted = Some(Failures { failed: seen.failed.clone(), ..Failures::default() });
            return Some(Standing::Failing { stage: name, clusters: owned(&seen.failed) });
        }
        Some(match () {
            () if !seen.stuck.is_empty() => Standing::Stuck { stage: name, clusters: owned(&seen.stuck) },
            () if is_running => Standing::Going { stage: name },
            () if seen.under_way > 0 => Standing::Stopping { stage: name },
            () => Standing::Stopped,
        })
    }

    /// Sorts a stage's clusters by their progress, and records it. Skips clusters that are no longer picked.
    fn look(&self, stage: &mut StageProgress) -> StageClusters<'a> {
        let mut seen = StageClusters::default();
        for cluster in &mut stage.clusters {
            let Some(turn) = self.turn(&cluster.name).filter(|turn| turn.picked) else { continue };
            if turn.has != Version::New {
                (cluster.started, cluster.succeeded) = (None, None);
                if turn.removing {
                    seen.removing += 1;
                } else {
                    seen.ready.push(turn.cluster);
                }
                continue;
            }
            let started = *cluster.started.get_or_insert(self.now);
            if turn.health == Health::Succeeded {
                let since = turn.since.or(cluster.succeeded).unwrap_or(self.now);
                cluster.succeeded = Some(since.min(self.now).max(started));
                continue;
            }
            cluster.succeeded = None;
            seen.under_way += 1;
            if turn.health == Health::Failed {
                seen.failed.push(turn.cluster);
            }
            if later(started, STUCK_AFTER) < self.now {
                seen.stuck.push(turn.cluster);
            }
        }
        seen
    }

    /// Finishes a stage if all of its clusters succeeded and its tasks are done.
    fn finish(&self, stage: &mut StageProgress, step: &mut Step<'a>) -> Option<Standing> {
        let is_there = |cluster: &&StageCluster| self.turn(&cluster.name).is_some_and(|turn| turn.picked);
        let succeeded = stage.clusters.iter().filter(is_there).filter_map(|cluster| cluster.succeeded);
        let updated = succeeded.chain(stage.started).max().unwrap_or(self.now);
        stage.updated = Some(updated);
        if self.state != RunState::Run {
            return Some(Standing::Stopped);
        }
        let ends = stage.after.iter().filter_map(|task| match task {
            StageTask::Wait(seconds) => Some(later(updated, *seconds)),
            StageTask::Approval => None,
        });
        let end = ends.max().filter(|end| self.now < *end);
        step.next = end;
        if end.is_some() || !self.is_approved(stage, Side::After) {
            let gate = StageGate { stage: stage.name.clone(), side: Side::After };
            return Some(Standing::Waiting { gate });
        }
        stage.finished = Some(self.now);
        None
    }

    /// Finds an unhealthy cluster before the rollout counts as done: a cluster may fail after its stage.
    fn unwell(&self, stages: &[StageProgress]) -> Option<Standing> {
        stages.iter().find_map(|stage| {
            let turns = stage.clusters.iter().filter_map(|cluster| self.turn(&cluster.name));
            let unwell = turns.filter(|turn| turn.picked && turn.health != Health::Succeeded);
            let unwell: Vec<&Turn<'_>> = unwell.collect();
            let failed = unwell.iter().filter(|turn| turn.health == Health::Failed);
            let failed: Vec<String> = failed.map(|turn| turn.cluster.to_owned()).collect();
            let (stage, is_any) = (stage.name.clone(), !unwell.is_empty());
            is_any.then_some(match failed.is_empty() {
                true => Standing::Going { stage },
                false => Standing::Failing { stage, clusters: failed },
            })
        })
    }

    /// Collects the reasons of the waiting clusters. The first of these stages is the current one.
    fn waits(
        &self,
        stages: &[StageProgress],
        standing: &Standing,
        told: &BTreeSet<&'a str>,
    ) -> BTreeMap<&'a str, Arc<str>> {
        let mut waits = BTreeMap::new();
        let Some(current) = stages.first() else { return waits };
        for stage in stages {
            let reason: Arc<str> = match stage.name == current.name {
                true => reason(current, standing).into(),
                false => format!("stage `{}` comes after stage `{}`", stage.name, current.name).into(),
            };
            for cluster in &stage.clusters {
                let turn = self.turn(&cluster.name).filter(|turn| turn.picked && turn.has != Version::New);
                if let Some(turn) = turn.filter(|turn| !told.contains(turn.cluster)) {
                    waits.insert(turn.cluster, reason.clone());
                }
            }
        }
        waits
    }
}

fn reason(stage: &StageProgress, standing: &Standing) -> String {
    let name = &stage.name;
    match standing {
        Standing::Failing { clusters, .. } => {
            format!("stage `{name}` cannot proceed: {} failed", some_quoted(clusters, SHOWN))
        }
        Standing::Waiting { .. } => format!("stage `{name}` begins when it is approved"),
        Standing::Stopping { .. } | Standing::Stopped => "the run is stopped".to_owned(),
        _ => format!("{} at a time in stage `{name}`", stage.most_at_a_time()),
    }
}

/// Returns the moment this many seconds later, at most the last one of the calendar.
fn later(from: Timestamp, seconds: i64) -> Timestamp {
    from.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
