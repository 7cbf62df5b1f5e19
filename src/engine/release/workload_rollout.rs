//! The rollout of one workload: its strategy, people's orders, and its target release; and its state in a
//! word, with the reason.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::ReleaseInputs;
use super::next_release::{last_number, with_inputs};
use super::policy::Orders;
use super::runs::{self, RunContent, Staged};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::release::{Halt, Releases};
use berth_base::model::rollout::{Stage, Strategy};
use berth_base::model::rollout_policy::OnFailure;
use berth_base::model::staged::Standing;
use berth_base::model::{ContentId, Decision, Object, ObjectId, Timestamp, Workload};
use berth_base::packed::View;
use berth_base::text::some_of;

/// The rollout of a workload at one moment.
#[derive(Debug)]
pub(super) struct WorkloadRollout<'f> {
    pub(super) strategy: Cow<'f, Strategy>,
    pub(super) orders: Orders<'f>,
    pub(super) releases: Releases,
    /// The number of the release that clusters go to; `None` if every cluster keeps its copies.
    pub(super) target: Option<u64>,
    /// The current stages of a staged rollout.
    pub(super) staged: Option<Staged<'f>>,
    /// The availability of all objects of the workload is measured.
    pub(super) is_measured: bool,
    /// The workload's inputs as the files have them.
    stored: ContentId,
    /// The objects of earlier releases that some cluster returns to, begins with or keeps.
    pub(super) earlier_objects: BTreeSet<ObjectId>,
    pub(super) diagnostics: Diagnostics,
}

/// The reversal of a unit's releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reversal {
    /// As the record and people's orders require.
    Recorded,
    /// All releases are taken back.
    Back,
    /// No release counts as taken back any more.
    Anew,
}

/// Finds the rollout. `stored` are the workload's inputs as the files have them.
pub(super) fn workload_rollout<'f>(
    workload: &'f Workload,
    given: ReleaseInputs<'f>,
    decision: Option<&Decision>,
    stored: ContentId,
    reversal: Reversal,
) -> WorkloadRollout<'f> {
    let key = &workload.key;
    let orders = Orders::of(given.fleet, key);
    let strategy = orders.strategy();
    let before = given.current.releases.get(key).map(|before| &**before);
    let anew = before.filter(|before| reversal == Reversal::Anew && before.taken_back).map(anew);
    let before = anew.as_ref().or(before);
    let mut workload_rollout = WorkloadRollout {
        earlier_objects: BTreeSet::new(),
        releases: match (&*strategy, before) {
            // With `Runs`, new files are no release until a run begins.
            (Strategy::Runs, Some(before)) => before.clone(),
            _ => with_inputs(key, before, last_number(key, given), stored, given.now),
        },
        strategy,
        orders,
        target: None,
        staged: None,
        is_measured: is_measured(workload),
        stored,
        diagnostics: Diagnostics::new(),
    };
    if !workload_rollout.remembers_removals() {
        workload_rollout.releases.removing.clear();
    }
    match &*workload_rollout.strategy.clone() {
        Strategy::Runs => workload_rollout.follow_run(workload, given, decision, stored),
        Strategy::Stages(stages) => workload_rollout.follow_stages(workload, given, decision, stages.clone()),
        _ => workload_rollout.target = Some(workload_rollout.releases.current.number),
    }
    workload_rollout.restart(given.now);
    let abort = workload_rollout.orders.aborted(workload_rollout.releases.current.number);
    let stays_back =
        workload_rollout.releases.taken_back && workload_rollout.orders.on_failure() == OnFailure::RollBack;
    workload_rollout.take_back(abort.is_some() || stays_back || reversal == Reversal::Back);
    if let Some(abort) = abort.filter(|_| workload_rollout.releases.taken_back) {
        let since = workload_rollout.releases.halted.as_ref().map_or(given.now, |halt| halt.since);
        let reason = if abort.reason.is_empty() { String::new() } else { format!(": {}", abort.reason) };
        workload_rollout.releases.halted = Some(Halt { since, reason: format!("aborted{reason}") });
    }
    workload_rollout
}

/// Returns the releases as if the current one had not begun.
fn anew(releases: &Releases) -> Releases {
    Releases { taken_back: false, halted: None, run: None, ..releases.clone() }
}

impl WorkloadRollout<'_> {
    /// Reports whether clusters go to the content of the files. An active run does not, once the files are
    /// edited.
    pub(super) fn goes_to_files(&self) -> bool {
        let target = self.target.and_then(|target| self.releases.get(target));
        target.is_none_or(|target| target.inputs == self.stored)
    }

    /// Reports whether a removal counts until members report its end. Only KubeFleet's strategies require
    /// that.
    pub(super) fn remembers_removals(&self) -> bool {
        matches!(*self.strategy, Strategy::Rolling(_) | Strategy::Stages(_) | Strategy::Runs)
    }

    /// Sends all clusters back to the last good release, if it is another one.
    fn take_back(&mut self, taken_back: bool) {
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
            let told = self.releases.assigned.values_mut().filter(|told| told.release == current);
            // Earlier reports no longer count.
            told.for_each(|told| told.at = now);
            self.releases.halted = None;
        }
        self.releases.restarts = restarts;
    }
}

impl<'f> WorkloadRollout<'f> {
    fn follow_run(
        &mut self,
        workload: &Workload,
        given: ReleaseInputs<'f>,
        decision: Option<&Decision>,
        stored: ContentId,
    ) {
        let key = &workload.key;
        let driven = runs::drive(given.fleet, given.labels, decision, &self.releases, given.now);
        self.diagnostics.extend(driven.faults);
        let Some(mut staged) = driven.staged else { return };
        staged.progress.release = match staged.content {
            RunContent::Release(number) => number,
            RunContent::Files => {
                let last = last_number(key, given);
                self.releases = with_inputs(key, Some(&self.releases), last, stored, given.now);
                self.releases.current.number
            }
        };
        let number = staged.progress.release;
        self.releases.run = Some(staged.progress.clone());
        if self.releases.get(number).is_some() {
            (self.target, self.staged) = (Some(number), Some(staged));
            return;
        }
        let message = format!("{key}: a staged run rolls out release {number}, which is no longer kept");
        let hint = "start another run for the current content";
        self.diagnostics.push(Diagnostic::warning(workload.origin.clone(), message).hint(hint));
    }

    /// Takes each release through the stages, without a run.
    fn follow_stages(
        &mut self,
        workload: &Workload,
        given: ReleaseInputs<'f>,
        decision: Option<&Decision>,
        stages: Vec<Stage>,
    ) {
        let number = self.releases.current.number;
        let approved = self.orders.approved(number);
        let staged = runs::by_stages(given.labels, (stages, approved), decision, &self.releases, given.now);
        match staged {
            Ok(staged) => {
                self.releases.run = Some(staged.progress.clone());
                (self.target, self.staged) = (Some(number), Some(staged));
            }
            Err(faults) => {
                self.diagnostics.extend(faults.iter().map(|fault| fault.diagnostic(&workload.origin)));
            }
        }
    }
}

/// Kinds that are measured, or available as soon as they are applied, by API group.
const MEASURED: [(&str, &[&str]); 8] = [
    ("", &["ConfigMap", "LimitRange", "Namespace", "ResourceQuota", "Secret", "Service", "ServiceAccount"]),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apps", &["ControllerRevision", "DaemonSet", "Deployment", "StatefulSet"]),
    ("networking.k8s.io", &["IngressClass", "NetworkPolicy"]),
    ("policy", &["PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass"]),
];

/// Reports whether the availability of all the workload's objects is measured.
pub fn is_measured(workload: &Workload) -> bool {
    workload.templates.iter().all(|template| has_measure(&template.object))
}

fn has_measure(object: &Object) -> bool {
    let kinds = MEASURED.iter().filter(|(group, _)| *object.id.group == **group);
    let is_known = kinds.flat_map(|(_, kinds)| *kinds).any(|kind| *object.id.kind == **kind);
    // A service of this type only names a host elsewhere.
    let is_name_only = object.content.pointer("/spec/type").and_then(View::as_str) == Some("ExternalName");
    is_known && !(&*object.id.kind == "Service" && is_name_only)
}

/// The state of a workload's rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RolloutState {
    Done,
    Rolling,
    /// Waits for the tasks of a stage.
    Waiting,
    /// Clusters of its stage have been unfinished for long.
    Stuck,
    Halted,
    TakenBack,
    /// Stopped by a pause or a freeze.
    Held,
    /// Its stages cannot be computed.
    Faulty,
    /// People stopped its run.
    Stopped,
}

impl RolloutState {
    pub const ALL: [RolloutState; 9] = [
        RolloutState::Done,
        RolloutState::Rolling,
        RolloutState::Waiting,
        RolloutState::Stuck,
        RolloutState::Halted,
        RolloutState::TakenBack,
        RolloutState::Held,
        RolloutState::Faulty,
        RolloutState::Stopped,
    ];

    pub fn word(self) -> &'static str {
        match self {
            RolloutState::Done => "done",
            RolloutState::Rolling => "rolling",
            RolloutState::Waiting => "waiting",
            RolloutState::Stuck => "stuck",
            RolloutState::Halted => "halted",
            RolloutState::TakenBack => "taken back",
            RolloutState::Held => "held",
            RolloutState::Faulty => "faulty",
            RolloutState::Stopped => "stopped",
        }
    }

    /// Returns the state at a moment, with its reason; the reason may be empty. Calls `orders` only for an
    /// unfinished rollout.
    pub fn of<'f>(
        releases: &Releases,
        orders: impl FnOnce() -> Orders<'f>,
        standing: Option<&Standing>,
        now: Timestamp,
    ) -> (RolloutState, String) {
        if releases.is_proven() && releases.assigned.is_empty() {
            return (RolloutState::Done, String::new());
        }
        let halted = releases.halted.as_ref().map(|halt| halt.reason.clone());
        if releases.taken_back {
            let aborted = orders().aborted(releases.current.number).map(|abort| abort.reason.clone());
            return (RolloutState::TakenBack, aborted.or(halted).unwrap_or_default());
        }
        if let Some(reason) = halted {
            return (RolloutState::Halted, reason);
        }
        if let Some(closed) = orders().closed(now) {
            return (RolloutState::Held, closed.reason);
        }
        match standing {
            Some(Standing::Waiting { gate }) => {
                let reason = format!("for the tasks {} the stage `{}`", gate.side.word(), gate.stage);
                (RolloutState::Waiting, reason)
            }
            Some(Standing::Faulty(faults)) => (RolloutState::Faulty, some_of(faults, 3)),
            Some(Standing::Stopping { .. } | Standing::Stopped) => (RolloutState::Stopped, String::new()),
            Some(Standing::Stuck { stage, clusters }) => {
                (RolloutState::Stuck, format!("{} in the stage `{stage}`", some_of(clusters, 3)))
            }
            Some(Standing::Going { stage }) => (RolloutState::Rolling, format!("stage `{stage}`")),
            _ => (RolloutState::Rolling, String::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value as Json, json};

    use super::*;
    use berth_base::diag::Pos;
    use berth_base::model::{Key, ObjectId, Template, Workload};
    use berth_base::packed::Packed;

    fn measured(objects: &[Json]) -> bool {
        let template = |object: &Json| Template {
            object: Arc::new(Object {
                id: ObjectId::of(object).expect("an object"),
                origin: Pos::file("w.yaml"),
                content: Packed::of(object),
            }),
            final_labels: Default::default(),
            sync_annotations: Default::default(),
            retained: Vec::new(),
        };
        let templates = objects.iter().map(template).collect();
        is_measured(&Workload::new(Key::new("", "K", "", "w"), Pos::file("w.yaml"), templates))
    }

    fn object(api_version: &str, kind: &str) -> Json {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
    }

    #[test]
    fn one_object_without_a_measure_leaves_the_workload_to_time() {
        let (deployment, config) = (object("apps/v1", "Deployment"), object("v1", "ConfigMap"));
        assert!(measured(&[deployment.clone(), config.clone()]));
        assert!(!measured(&[deployment, object("batch/v1", "Job"), config]));
        assert!(!measured(&[object("example.com/v1", "Deployment")]));
        assert!(measured(&[]));
    }

    #[test]
    fn a_service_that_names_a_host_elsewhere_has_no_measure() {
        let mut service = object("v1", "Service");
        assert!(measured(&[service.clone()]));
        service["spec"] = json!({"type": "ExternalName", "externalName": "db.example.com"});
        assert!(!measured(&[service]));
    }
}
