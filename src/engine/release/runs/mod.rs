//! The staged runs of a fleet: the run that drives a workload, the content that it rolls out, and its next
//! step.
//!
//! One run drives a workload at a time. It rolls out the release that was made of the files when the run
//! began; later edits wait for the next run. A newer run replaces an unfinished one, so that a fix does not
//! wait for the release that it repairs. A run that finished or was replaced does not begin again.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::release::Releases;
use berth_base::model::rollout::{Stage, Strategy};
use berth_base::model::selector::Labels;
use berth_base::model::staged::{Run, RunProgress, RunState, StageGate, StageProgress, Standing};
use berth_base::model::{Decision, Fleet, Key, Timestamp};
use berth_base::text::some_of;

use super::staged::{self, StagedOrders};
use super::stages::{ClusterLabels, StageFault, plan};
use super::strategies::{Step, Turn};

/// Returns the runs that would begin now, the newest last.
fn new_runs<'f>(fleet: &'f Fleet, workload: &Key, recorded: Option<&RunProgress>) -> Vec<&'f Run> {
    let is_known = |key: &Key| {
        recorded.is_some_and(|progress| progress.run.as_ref() == Some(key) || progress.ended.contains(key))
    };
    let own = fleet.runs.values().filter(|run| run.workload == *workload && run.state == RunState::Run);
    let mut new: Vec<&Run> = own.filter(|run| !is_known(&run.key)).collect();
    new.sort_by(|a, b| by_number(&a.key, &b.key));
    new
}

/// The number of releases that a hint shows.
const SHOWN: usize = 10;

/// The content that a staged rollout delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunContent {
    /// The content of the files now, as a release of its own if it differs from the current one.
    Files,
    /// The release with this number, whatever the files contain.
    Release(u64),
}

/// A staged rollout, ready for a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Staged<'f> {
    /// `None` for stages that each release goes through by itself.
    pub run: Option<&'f Run>,
    pub content: RunContent,
    /// The rollout begins with the next step, which sets the number of its release.
    pub begins: bool,
    /// The progress to record after each step.
    pub progress: RunProgress,
    /// People's order for the rollout.
    pub state: RunState,
    stages: Vec<Stage>,
    approved: BTreeSet<StageGate>,
    labels: &'f ClusterLabels<'f>,
}

impl Staged<'_> {
    /// Returns the clusters that may get the release now, and updates the progress. `turns` ascend by name.
    pub fn step<'a>(&mut self, turns: &[Turn<'a>], now: Timestamp) -> (Step<'a>, Standing) {
        let labels = |cluster: &str| self.labels.get(cluster);
        let orders = StagedOrders {
            stages: &self.stages,
            approved: &self.approved,
            state: self.state,
            labels: &labels,
        };
        let stepped = staged::step(orders, turns, &self.progress, now);
        self.progress = stepped.progress;
        (stepped.step, stepped.standing)
    }
}

/// The run that drives a workload, and the faults of runs that cannot begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Driven<'f> {
    /// `None`: every cluster keeps its copies, and new content is no release yet.
    pub staged: Option<Staged<'f>>,
    pub faults: Diagnostics,
}

/// Finds the run that drives a workload. `releases` are its recorded releases. A run that cannot begin is
/// skipped.
pub fn drive<'f>(
    fleet: &'f Fleet,
    labels: &'f ClusterLabels<'f>,
    decision: Option<&Decision>,
    releases: &Releases,
    now: Timestamp,
) -> Driven<'f> {
    let mut driven = Driven::default();
    let recorded = releases.run.as_ref();
    let current = recorded.and_then(|progress| progress.run.as_ref());
    let mut new = new_runs(fleet, &releases.key, recorded);
    while let Some(run) = new.pop() {
        if let Some(number) = run.release.filter(|number| releases.get(*number).is_none()) {
            let message = format!("{}: release {number} of {} is not kept", run.key, releases.key);
            let kept = some_of(releases.all().map(|release| release.number), SHOWN);
            let hint = format!("name a release that is kept: {kept}");
            driven.faults.push(Diagnostic::error(run.origin.clone(), message).hint(hint));
            continue;
        }
        match plan_run(fleet, labels, decision, run) {
            Ok(stages) => {
                let before = recorded.into_iter().flat_map(|progress| &progress.ended).chain(current);
                let others = before.chain(new.iter().map(|run| &run.key));
                let ended = others.filter(|key| fleet.runs.contains_key(*key)).cloned().collect();
                let progress = begin(Some(run.key.clone()), stages, ended, now);
                let content = run.release.map_or(RunContent::Files, RunContent::Release);
                driven.staged =
                    Some(Staged { begins: true, ..staged_run((fleet, labels), run, content, progress) });
                return driven;
            }
            Err(faults) => driven.faults.extend(diagnostics(fleet, run, &faults)),
        }
    }
    let going = recorded.filter(|progress| progress.finished.is_none());
    driven.staged = going.and_then(|progress| {
        let run = fleet.runs.get(current?).filter(|run| run.workload == releases.key)?;
        Some(staged_run((fleet, labels), run, RunContent::Release(progress.release), progress.clone()))
    });
    driven
}

fn staged_run<'f>(
    (fleet, labels): (&'f Fleet, &'f ClusterLabels<'f>),
    run: &'f Run,
    content: RunContent,
    progress: RunProgress,
) -> Staged<'f> {
    // Without its strategy a run follows its plan; newcomers go after the last stage.
    let strategy = fleet.stage_strategies.get(&run.strategy);
    let stages = strategy.map(|strategy| strategy.stages.clone()).unwrap_or_default();
    let requests = fleet.stage_approvals.values().filter(|one| one.approved && one.run == run.key);
    let approved = requests.map(|one| one.gate.clone()).collect();
    let (begins, state) = (false, run.state);
    Staged { run: Some(run), content, begins, progress, stages, approved, state, labels }
}

/// Takes a release through stages without a run. `approved` are the gates that people opened for this
/// release. Unfinished stages follow edits of their tasks, because nobody can approve a task that was
/// removed.
pub fn by_stages<'f>(
    labels: &'f ClusterLabels<'f>,
    (stages, approved): (Vec<Stage>, BTreeSet<StageGate>),
    decision: Option<&Decision>,
    releases: &Releases,
    now: Timestamp,
) -> Result<Staged<'f>, Vec<StageFault>> {
    let release = releases.current.number;
    let is_going = |progress: &&RunProgress| progress.run.is_none() && progress.release == release;
    let going = releases.run.as_ref().filter(is_going);
    let progress = match going {
        Some(progress) => {
            let mut progress = progress.clone();
            progress.follow(&stages);
            progress
        }
        None => {
            let planned = plan(&stages, decision.into_iter().flat_map(|one| labelled(labels, one)))?;
            RunProgress { release, ..begin(None, planned, BTreeSet::new(), now) }
        }
    };
    let (run, content, state) = (None, RunContent::Release(release), RunState::Run);
    let begins = going.is_none();
    Ok(Staged { run, content, begins, progress, stages, approved, state, labels })
}

/// Returns the progress of a rollout that begins now. `ended` are the workload's other runs, which do not
/// begin again.
fn begin(run: Option<Key>, stages: Vec<StageProgress>, ended: BTreeSet<Key>, now: Timestamp) -> RunProgress {
    RunProgress { run, release: 0, begun: now, stages, finished: None, ended }
}

/// Orders names by their numbers: `web-9` comes before `web-10`.
pub fn by_number(a: &Key, b: &Key) -> Ordering {
    let split = |key: &Key| {
        let name = key.name.trim_end_matches(|c: char| c.is_ascii_digit());
        (name.to_owned(), key.name[name.len()..].parse::<u128>().unwrap_or_default())
    };
    split(a).cmp(&split(b)).then_with(|| a.cmp(b))
}

/// Computes a run's stages over its workload's picked clusters. An error without faults: the run names
/// something that does not exist or does not fit, which the loader has reported.
pub fn plan_run(
    fleet: &Fleet,
    labels: &ClusterLabels<'_>,
    decision: Option<&Decision>,
    run: &Run,
) -> Result<Vec<StageProgress>, Vec<StageFault>> {
    let strategy = fleet.stage_strategies.get(&run.strategy).ok_or_else(Vec::new)?;
    let workload = fleet.workloads.get(&run.workload).filter(|one| one.strategy == Strategy::Runs);
    let (_, decision) = workload.zip(decision).ok_or_else(Vec::new)?;
    plan(&strategy.stages, labelled(labels, decision))
}

/// Returns the standing of a run. `recorded` is the progress of the run that drives its workload, and `now`
/// is that run's standing at the next step.
pub fn standing(
    (fleet, labels): (&Fleet, &ClusterLabels<'_>),
    decision: Option<&Decision>,
    run: &Run,
    recorded: Option<&RunProgress>,
    now: Option<&Standing>,
) -> Standing {
    match recorded {
        Some(progress) if progress.run.as_ref() == Some(&run.key) => match (progress.finished, now) {
            (Some(_), _) => Standing::Succeeded,
            (None, Some(now)) => now.clone(),
            (None, None) => Standing::Replaced,
        },
        Some(progress) if progress.ended.contains(&run.key) => Standing::Replaced,
        _ => match plan_run(fleet, labels, decision, run) {
            Ok(_) => Standing::Ready,
            Err(faults) if faults.is_empty() => {
                Standing::Faulty(vec!["it names something that does not exist or does not fit".to_owned()])
            }
            Err(faults) => {
                let faults = diagnostics(fleet, run, &faults).into_iter();
                Standing::Faulty(faults.map(|fault| fault.message).collect())
            }
        },
    }
}

/// Returns the faults of a run's stages, as errors at its strategy.
pub fn diagnostics(fleet: &Fleet, run: &Run, faults: &[StageFault]) -> Vec<Diagnostic> {
    let at = fleet.stage_strategies.get(&run.strategy).map_or(&run.origin, |strategy| &strategy.origin);
    faults.iter().map(|fault| fault.diagnostic(at)).collect()
}

fn labelled<'l>(
    labels: &'l ClusterLabels<'_>,
    decision: &'l Decision,
) -> impl Iterator<Item = (&'l str, &'l Labels)> {
    decision.picked().filter_map(|pick| Some((&*pick.cluster, labels.get(&pick.cluster)?)))
}
