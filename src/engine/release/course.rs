//! The course of one workload: its strategy, what people ordered, and the release that clusters go to.

use std::collections::BTreeSet;

use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::release::Releases;
use berth_base::model::rollout::{Stage, Strategy};
use berth_base::model::rollout_policy::OnFailure;
use berth_base::model::selector::Labels;
use berth_base::model::staged::{Run, RunProgress, RunState, Side, StageGate};
use berth_base::model::{ContentId, Decision, Fleet, Timestamp, Workload};

use super::Given;
use super::next_release::with_inputs;
use super::policy::Orders;
use super::runs::{self, Driver, RunContent};
use super::staged;
use super::stages::{self, Fault};

/// A workload's course at one moment.
#[derive(Debug)]
pub(super) struct Course<'f> {
    pub(super) strategy: Strategy,
    pub(super) orders: Orders<'f>,
    pub(super) releases: Releases,
    /// The number of the release that clusters go to; `None` where every cluster keeps what it has.
    pub(super) target: Option<u64>,
    /// The stages that are gone through, for a staged rollout.
    pub(super) staged: Option<StagedCourse<'f>>,
    pub(super) diagnostics: Diagnostics,
}

/// A staged rollout on its way.
#[derive(Debug)]
pub(super) struct StagedCourse<'f> {
    fleet: &'f Fleet,
    stages: Vec<Stage>,
    approved: BTreeSet<StageGate>,
    pub(super) state: RunState,
    pub(super) progress: RunProgress,
}

/// Finds the course. `stored` are the workload's inputs as the files have them.
pub(super) fn course<'f>(
    workload: &'f Workload,
    given: Given<'f>,
    decision: Option<&Decision>,
    stored: ContentId,
) -> Course<'f> {
    let key = &workload.key;
    let orders = Orders::of(given.fleet, key);
    let strategy = orders.strategy();
    let before = given.current.releases.get(key);
    let mut course = Course {
        releases: match (&strategy, before) {
            // What the files say is no release before a run takes it up.
            (Strategy::Runs, Some(before)) => before.clone(),
            _ => with_inputs(key, before, stored, given.now),
        },
        strategy,
        orders,
        target: None,
        staged: None,
        diagnostics: Diagnostics::new(),
    };
    match course.strategy.clone() {
        Strategy::Runs => course.follow_run(workload, given, decision, stored),
        Strategy::Stages(stages) => course.follow_stages(workload, given, decision, stages),
        _ => course.target = Some(course.releases.current.number),
    }
    course.restart(given.now);
    let abort = course.orders.aborted(course.releases.current.number);
    let stays_back = course.releases.taken_back && course.orders.on_failure() == OnFailure::RollBack;
    course.take_back(abort.is_some() || stays_back);
    course
}

impl Course<'_> {
    /// Sends all clusters back to the last good release, if there is another one.
    pub(super) fn take_back(&mut self, taken_back: bool) {
        let current = self.releases.current.number;
        let good = self.releases.good.filter(|good| *good != current);
        self.releases.taken_back = taken_back && good.is_some();
        if self.releases.taken_back {
            (self.target, self.staged) = (good, None);
        }
    }

    fn restart(&mut self, now: Timestamp) {
        let restarts = self.orders.restarts(self.releases.current.number);
        if restarts > self.releases.restarts {
            let current = self.releases.current.number;
            let told = self.releases.told.values_mut().filter(|told| told.release == current);
            // Reports from before count no more.
            told.for_each(|told| told.at = now);
            self.releases.halted = None;
        }
        self.releases.restarts = restarts;
    }
}

impl<'f> Course<'f> {
    fn follow_run(
        &mut self,
        workload: &Workload,
        given: Given<'f>,
        decision: Option<&Decision>,
        stored: ContentId,
    ) {
        let key = &workload.key;
        let Some(Driver { run, content, begins }) =
            runs::driver(given.fleet, key, self.releases.run.as_ref())
        else {
            return;
        };
        if begins {
            let planned = match runs::plan_run(given.fleet, decision, run) {
                Ok(planned) => planned,
                Err(faults) => return self.report(faults, run),
            };
            let before = self.releases.run.take();
            if content == RunContent::Files {
                self.releases = with_inputs(key, Some(&self.releases), stored, given.now);
            }
            let number = match content {
                RunContent::Files => self.releases.current.number,
                RunContent::Release(number) => number,
            };
            let exists = |run: &_| given.fleet.runs.contains_key(run);
            let begun =
                staged::begin(Some(run.key.clone()), (number, planned), before.as_ref(), exists, given.now);
            self.releases.run = Some(begun);
        }
        let Some(progress) = self.releases.run.clone() else { return };
        if self.releases.get(progress.release).is_none() {
            let kept: Vec<String> = self.releases.all().map(|release| release.number.to_string()).collect();
            let message = format!("{}: release {} of {key} is not kept", run.key, progress.release);
            let hint = format!("the releases that are kept: {}", kept.join(", "));
            self.diagnostics.push(Diagnostic::warning(run.origin.clone(), message).hint(hint));
            return;
        }
        let strategy = given.fleet.stage_strategies.get(&run.strategy);
        let approvals = given.fleet.stage_approvals.values();
        let approvals = approvals.filter(|one| one.approved && one.run == run.key);
        self.target = Some(progress.release);
        self.staged = Some(StagedCourse {
            fleet: given.fleet,
            stages: strategy.map(|strategy| strategy.stages.clone()).unwrap_or_default(),
            approved: approvals.map(|one| one.gate.clone()).collect(),
            state: run.state,
            progress,
        });
    }

    fn report(&mut self, faults: Vec<Fault>, run: &Run) {
        self.diagnostics.extend(faults.iter().map(|fault| fault.diagnostic(&run.origin)));
    }

    /// Each release goes through the stages by itself.
    fn follow_stages(
        &mut self,
        workload: &Workload,
        given: Given<'f>,
        decision: Option<&Decision>,
        stages: Vec<Stage>,
    ) {
        let number = self.releases.current.number;
        if self.releases.run.as_ref().is_none_or(|run| run.release != number || run.run.is_some()) {
            let picked = decision.into_iter().flat_map(Decision::picked);
            let clusters = picked.filter_map(|pick| {
                Some((pick.cluster.as_str(), &given.fleet.clusters.get(&pick.cluster)?.labels))
            });
            match stages::plan(&stages, clusters) {
                Ok(planned) => {
                    let begun = staged::begin(None, (number, planned), None, |_| false, given.now);
                    self.releases.run = Some(begun);
                }
                Err(faults) => {
                    let faults = faults.iter().map(|fault| fault.diagnostic(&workload.origin));
                    return self.diagnostics.extend(faults);
                }
            }
        }
        let Some(progress) = self.releases.run.clone() else { return };
        let gates = stages.iter().flat_map(|stage| {
            [Side::Before, Side::After].map(|side| StageGate { stage: stage.name.clone(), side })
        });
        let approved = gates.filter(|gate| self.orders.is_approved(number, gate)).collect();
        self.target = Some(number);
        self.staged =
            Some(StagedCourse { fleet: given.fleet, stages, approved, state: RunState::Run, progress });
    }
}

impl StagedCourse<'_> {
    /// Makes a step, and remembers the progress.
    pub(super) fn step<'a>(
        &mut self,
        turns: &[super::turn::Turn<'a>],
        now: Timestamp,
    ) -> (super::turn::Step<'a>, berth_base::model::staged::Standing) {
        let labels = |cluster: &str| -> Option<&Labels> { Some(&self.fleet.clusters.get(cluster)?.labels) };
        let course = staged::Course {
            stages: &self.stages,
            approved: &self.approved,
            state: self.state,
            labels: &labels,
        };
        let stepped = staged::step(course, turns, &self.progress, now);
        self.progress = stepped.progress;
        (stepped.step, stepped.standing)
    }
}
