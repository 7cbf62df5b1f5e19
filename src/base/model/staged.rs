//! Staged rollouts: the documents that request them, and their progress.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::key::Key;
use super::rollout::{Amount, Stage, StageTask};
use crate::diag::Pos;

/// Named stages, for runs to refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct StageStrategy {
    pub key: Key,
    pub origin: Pos,
    pub stages: Vec<Stage>,
}

/// One rollout of one workload's content, stage by stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub key: Key,
    pub origin: Pos,
    pub workload: Key,
    pub workload_at: Pos,
    pub strategy: Key,
    pub strategy_at: Pos,
    /// The number of the release to roll out; `None` for the content of the files when the run begins.
    pub release: Option<u64>,
    pub state: RunState,
}

/// A person's order for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// The stages are computed, but nothing moves.
    #[default]
    Initialize,
    Run,
    /// Clusters under way finish, but no further one gets the release.
    Stop,
}

/// A person's answer to the question whether a stage may begin or end.
#[derive(Clone, Debug, PartialEq)]
pub struct StageApproval {
    pub key: Key,
    pub origin: Pos,
    pub run: Key,
    pub gate: StageGate,
    pub approved: bool,
}

/// A point at which a staged rollout waits for an approval.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageGate {
    pub stage: String,
    pub side: Side,
}

/// The beginning or the end of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Before,
    After,
}

impl Side {
    pub const WORDS: [&'static str; 2] = ["before", "after"];

    pub fn word(self) -> &'static str {
        Side::WORDS[self as usize]
    }
}

/// The progress of a staged rollout. The clusters of its stages are fixed when it begins: later edits of
/// labels do not change them. The tasks of a run are fixed, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// The run that drives the rollout; `None` for stages that each release passes by itself.
    pub run: Option<Key>,
    /// The number of the release that is rolled out.
    pub release: u64,
    pub begun: Timestamp,
    pub stages: Vec<StageProgress>,
    /// The moment at which all stages and removals were done.
    pub finished: Option<Timestamp>,
    /// Earlier runs of the workload, finished or replaced, whose documents still exist. They do not begin
    /// again.
    pub ended: BTreeSet<Key>,
}

/// The progress of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageProgress {
    pub name: String,
    pub at_a_time: Amount,
    pub before: Vec<StageTask>,
    pub after: Vec<StageTask>,
    /// In the order of their turns. Newcomers follow the planned clusters.
    pub clusters: Vec<StageCluster>,
    pub started: Option<Timestamp>,
    /// The moment at which its last cluster succeeded.
    pub updated: Option<Timestamp>,
    /// The moment at which its tasks were also done.
    pub finished: Option<Timestamp>,
}

/// The progress of one cluster in its stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCluster {
    pub name: String,
    /// The moment at which the cluster was assigned the release, or was found to have it.
    pub started: Option<Timestamp>,
    pub succeeded: Option<Timestamp>,
}

impl RunProgress {
    /// Updates the tasks and the pace of unfinished stages from these stages. A stage that is missing among
    /// them keeps its own, so that renaming it is no approval.
    pub fn follow(&mut self, stages: &[Stage]) {
        for progress in self.stages.iter_mut().filter(|stage| stage.finished.is_none()) {
            if let Some(stage) = stages.iter().find(|stage| stage.name == progress.name) {
                progress.at_a_time = stage.at_a_time;
                progress.before.clone_from(&stage.before);
                progress.after.clone_from(&stage.after);
            }
        }
    }

    /// Returns the gates at which the rollout needs an approval.
    pub fn gates(&self) -> Vec<StageGate> {
        self.stages.iter().flat_map(|stage| approvals(&stage.name, [&stage.before, &stage.after])).collect()
    }

    /// Returns the gate at which the rollout waits for an approval, if it does.
    pub fn waits_at(&self) -> Option<StageGate> {
        let stage = self.stages.iter().find(|stage| stage.finished.is_none())?;
        let (side, tasks) = match (stage.started, stage.updated) {
            (None, _) => (Side::Before, &stage.before),
            (_, Some(_)) => (Side::After, &stage.after),
            _ => return None,
        };
        tasks.contains(&StageTask::Approval).then(|| StageGate { stage: stage.name.clone(), side })
    }
}

impl Stage {
    /// Returns the gates at which a rollout needs an approval for this stage.
    pub fn gates(&self) -> impl Iterator<Item = StageGate> {
        approvals(&self.name, [&self.before, &self.after])
    }
}

fn approvals<'s>(stage: &'s str, tasks: [&'s Vec<StageTask>; 2]) -> impl Iterator<Item = StageGate> + 's {
    let sides = [Side::Before, Side::After].into_iter().zip(tasks);
    let asked = sides.filter(|(_, tasks)| tasks.contains(&StageTask::Approval));
    asked.map(|(side, _)| StageGate { stage: stage.to_owned(), side })
}

impl StageCluster {
    pub fn waiting(name: impl Into<String>) -> StageCluster {
        StageCluster { name: name.into(), started: None, succeeded: None }
    }
}

impl StageProgress {
    /// The name of the stage after all others, for clusters that join after their own stage has finished.
    pub const JOINED: &str = "(joined later)";

    /// Returns a stage that has not begun.
    pub fn new(stage: &Stage, clusters: Vec<StageCluster>) -> StageProgress {
        StageProgress {
            name: stage.name.clone(),
            at_a_time: stage.at_a_time,
            before: stage.before.clone(),
            after: stage.after.clone(),
            clusters,
            started: None,
            updated: None,
            finished: None,
        }
    }

    /// Returns the stage for clusters that join too late for their own.
    pub fn joined(at_a_time: Amount) -> StageProgress {
        StageProgress {
            name: StageProgress::JOINED.to_owned(),
            at_a_time,
            before: Vec::new(),
            after: Vec::new(),
            clusters: Vec::new(),
            started: None,
            updated: None,
            finished: None,
        }
    }

    /// Returns the number of clusters that may be under way at a time.
    pub fn most_at_a_time(&self) -> usize {
        self.at_a_time.at_a_time_of(self.clusters.len())
    }
}

/// The standing of a staged rollout at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The stages cannot be computed, for these reasons.
    Faulty(Vec<String>),
    /// The stages are computed, but nothing moves yet.
    Ready,
    Going {
        stage: String,
    },
    /// All clusters wait for the tasks of a stage.
    Waiting {
        gate: StageGate,
    },
    /// Clusters of the stage have been unfinished for long.
    Stuck {
        stage: String,
        clusters: Vec<String>,
    },
    /// Clusters of the stage failed, and no further one gets the release.
    Failing {
        stage: String,
        clusters: Vec<String>,
    },
    /// No further cluster gets the release, but clusters of the stage are still unfinished.
    Stopping {
        stage: String,
    },
    Stopped,
    /// All stages are done, and clusters that are no longer picked lose their copies.
    Removing,
    /// Another run of the same workload replaced this one.
    Replaced,
    Succeeded,
}
