//! Staged rollouts: the documents that ask for them, and how far they are.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::key::Key;
use super::rollout::{Amount, Stage, StageTask};
use crate::diag::Pos;

/// Stages under a name, for runs to refer to.
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

/// The wish that a person has for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// Its stages are worked out, and nothing moves.
    #[default]
    Initialize,
    Run,
    /// Clusters under way finish, and no further one is told.
    Stop,
}

/// A person's answer to the question whether a stage may begin, or whether the next one may.
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

/// The progress of a staged rollout. The clusters of its stages are fixed when it begins: later edits of labels do
/// not change them. The tasks of a run are fixed as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// The run that drives it; `None` for stages that each release goes through by itself.
    pub run: Option<Key>,
    /// The number of the release that it rolls out.
    pub release: u64,
    pub begun: Timestamp,
    pub stages: Vec<StageProgress>,
    /// When all stages and removals were done.
    pub finished: Option<Timestamp>,
    /// Earlier runs of the workload, finished or replaced, whose documents are still there. They do not begin again.
    pub ended: BTreeSet<Key>,
}

/// The progress of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageProgress {
    pub name: String,
    pub at_a_time: Amount,
    pub before: Vec<StageTask>,
    pub after: Vec<StageTask>,
    /// In the order in which they go. Clusters that join later follow those that were planned.
    pub clusters: Vec<StageCluster>,
    pub started: Option<Timestamp>,
    /// When its last cluster succeeded.
    pub updated: Option<Timestamp>,
    /// When its tasks were done as well.
    pub finished: Option<Timestamp>,
}

/// The progress of one cluster in its stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCluster {
    pub name: String,
    /// When it was told to take the release, or was found to have it.
    pub started: Option<Timestamp>,
    pub succeeded: Option<Timestamp>,
}

impl RunProgress {
    /// Takes the tasks and the pace of the stages that are not finished from these stages. A stage that is not among
    /// them keeps its own, so that a new name is no approval.
    pub fn follow(&mut self, stages: &[Stage]) {
        for progress in self.stages.iter_mut().filter(|stage| stage.finished.is_none()) {
            if let Some(stage) = stages.iter().find(|stage| stage.name == progress.name) {
                progress.at_a_time = stage.at_a_time;
                progress.before.clone_from(&stage.before);
                progress.after.clone_from(&stage.after);
            }
        }
    }

    /// Returns the gates of its stages at which it needs an approval.
    pub fn gates(&self) -> Vec<StageGate> {
        self.stages.iter().flat_map(|stage| approvals(&stage.name, [&stage.before, &stage.after])).collect()
    }

    /// Returns the gate that the rollout waits at, if it waits for an approval.
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
    /// Returns the gates of the stage at which a rollout needs an approval.
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
    /// The name of the stage that follows all others, for clusters that join after their own stage has finished.
    pub const JOINED: &str = "(joined later)";

    /// A stage that has not begun.
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

    /// The stage for clusters that join too late for their own.
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

    /// The clusters that may be under way at a time.
    pub fn most_at_a_time(&self) -> usize {
        self.at_a_time.at_a_time_of(self.clusters.len())
    }
}

/// How a staged rollout stands at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its stages cannot be worked out, for these reasons.
    Faulty(Vec<String>),
    /// Its stages are worked out, and nothing moves yet.
    Ready,
    Going {
        stage: String,
    },
    /// All clusters wait for the tasks of a stage.
    Waiting {
        gate: StageGate,
    },
    /// Clusters of the stage have been under way for long.
    Stuck {
        stage: String,
        clusters: Vec<String>,
    },
    /// Clusters of the stage failed, and no further one is told.
    Failing {
        stage: String,
        clusters: Vec<String>,
    },
    /// Nothing new is told, and clusters of the stage are still under way.
    Stopping {
        stage: String,
    },
    Stopped,
    /// All stages are done, and copies go from clusters that are no longer picked.
    Removing,
    /// Another run of the same workload took its place.
    Replaced,
    Succeeded,
}
