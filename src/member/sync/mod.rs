//! The member: brings a backend to its cluster's folder, and reports the result.
//!
//! ```text
//! cluster ref ─▶ cluster_folder ─▶ desired ─▶ local_overrides ─▶ plan ─▶ apply ─▶ backend
//!                                                                 ▲         │
//!                                               a backend's survey ┘         └─▶ status ref
//! ```
//!
//! Safety comes first: an unreadable folder is never treated as empty, a backend is never taken from another cluster
//! or moved back to an older folder, objects fail independently, and no content of a Secret is shown.

mod apply;
mod apply_order;
pub mod backends;
pub mod cluster_folder;
pub mod commit_trust;
pub mod desired;
mod errors;
pub mod facts_file;
pub(crate) mod field_differences;
pub mod health;
pub mod local_overrides;
pub mod plan;
pub mod remote;
pub mod status;
pub mod strategy;
pub mod suspension;
pub mod sync_loop;
pub mod sync_metrics;
pub mod teardown;
pub mod until_idle;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use apply::PlanResult;
use backends::{Apply, Backend, BackendError, ObjectHealth, Preview, Record};
use berth_base::model::applier::BERTH;
use berth_base::model::status::{Applied, Problem, Suspension};
use berth_base::model::{Applier, ObjectId, Timestamp, path};
use desired::{Desired, DesiredSet};
use health::Health;
use local_overrides::LocalOverrides;
use plan::{HeldRemoval, HoldReason, Live, Planned, Prune, SyncPlan};

pub use cluster_folder::ClusterFolder;
pub use errors::{ApplyError, SyncError};

/// The options of a sync.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The fleet's name, a part of a backend's ownership.
    pub fleet: String,
    /// Plan without applying.
    pub dry_run: bool,
    /// Remove unwanted namespaces, CRDs and volume claims even without an approval.
    pub allow_risky_prune: bool,
    /// Go back to an older folder than the one applied last.
    pub allow_rewind: bool,
    /// Only signed folders are followed. None of them can be forged, so a repair never moves back from one.
    pub is_signed: bool,
    /// The moment of the sync. `None`: suspensions are ignored.
    pub now: Option<Timestamp>,
    /// The program that applies the folder here. `None`: the program that the fleet names.
    pub applier: Option<&'static Applier>,
}

/// The result of one sync, or its preview.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncOutcome {
    pub plan: SyncPlan,
    pub written: usize,
    pub pruned: usize,
    /// Removals that did not happen.
    pub held: Vec<HeldRemoval>,
    /// The result in the form of a status: the applied objects, and the problems.
    pub applied: Applied,
    /// Objects that may still reach their wanted form by themselves: not healthy yet, or waiting for an unhealthy
    /// one.
    pub waiting: Vec<Problem>,
    /// Notes for people, such as fields taken over from another owner.
    pub notes: Vec<Problem>,
    /// The end of the first suspension, when the next sync is due.
    pub resumes_at: Option<Timestamp>,
    /// The effect of each write in a dry run, if the backend can determine it.
    pub previews: Vec<(ObjectId, Preview)>,
}

/// Brings a backend to a folder once.
pub fn sync_once(
    folder: &ClusterFolder,
    overrides: &LocalOverrides,
    backend: &mut dyn Backend,
    options: &Options,
) -> Result<SyncOutcome, ApplyError> {
    sync_set(folder, &desired::read(folder), overrides, backend, options)
}

/// Like [`sync_once`], for objects that are already read.
pub(crate) fn sync_set(
    folder: &ClusterFolder,
    desired: &DesiredSet,
    overrides: &LocalOverrides,
    backend: &mut dyn Backend,
    options: &Options,
) -> Result<SyncOutcome, ApplyError> {
    let outcome = sync_round(folder, desired, overrides, backend, options)?;
    if !backend.has_met_existing() {
        return Ok(outcome);
    }
    // The second round applies the take-over rules to the existing objects.
    let later = sync_round(folder, desired, overrides, backend, options)?;
    Ok(until_idle::merged(outcome, later))
}

fn sync_round(
    folder: &ClusterFolder,
    desired: &DesiredSet,
    overrides: &LocalOverrides,
    backend: &mut dyn Backend,
    options: &Options,
) -> Result<SyncOutcome, ApplyError> {
    if let Some(here) = options.applier {
        check_applier(folder, here)?;
    }
    backend.begin_sync(folder)?;
    let earlier = backend.record()?;
    let local = backend.local_overrides();
    let Overridden { desired, touched } = overridden(desired, overrides, &local.overrides, &folder.cluster);
    let succession = Succession::of(folder, earlier, options)?;
    let live = backend.survey(&desired.objects)?;
    if desired.is_empty() && live.values().any(|live| live.owned) && succession.is_sudden() {
        return Err(ApplyError::Emptied(succession.record.sequence));
    }
    let may_approve = folder.sequence >= succession.record.sequence;
    let mut plan = plan::plan(&desired, &live, |id| {
        options.allow_risky_prune || may_approve && folder.allow_prune.contains(&path::of_object(id))
    });
    strategy::apply(&mut plan, &desired, &live, backend.findings());
    let Suspended { whole: suspended, resumes_at } =
        hold_suspended(&mut plan, &desired, backend, options.now);
    let record = &succession.record;
    let done = if options.dry_run {
        narrow(&mut plan, &desired, &live, record, backend)?;
        PlanResult::default()
    } else if suspended.is_some() || plan.is_quiet() && succession.is_at_rest() {
        PlanResult::default()
    } else {
        carry_out(&mut plan, &desired, &live, record, backend)?
    };
    let planned = Planned { plan: &plan, desired: &desired, live: &live };
    let (removing, more_removing) = apply::removing(planned, &done);
    let mut outcome = outcome(plan, done, succession.in_effect(suspended.is_some()));
    outcome.applied.problems.extend(local.problems);
    outcome.applied.suspended = suspended;
    (outcome.applied.removing, outcome.applied.more_removing) = (removing, more_removing);
    outcome.resumes_at = resumes_at;
    if options.dry_run {
        outcome.notes = touched;
        let going: Vec<ObjectId> = outcome.plan.removed().map(|prune| prune.id.clone()).collect();
        outcome.notes.extend(backend.collateral(&going));
        outcome.previews = previews(&outcome.plan, &desired, backend);
    } else {
        judge(&mut outcome, &desired, backend);
    }
    outcome.notes.extend(backend.notes());
    Ok(outcome)
}

/// The wanted objects after local overrides, and the list of changed objects.
struct Overridden<'a> {
    desired: Cow<'a, DesiredSet>,
    touched: Vec<Problem>,
}

/// Applies the member's overrides, and then those stored in the backend.
fn overridden<'a>(
    desired: &'a DesiredSet,
    of_member: &LocalOverrides,
    of_backend: &LocalOverrides,
    cluster: &str,
) -> Overridden<'a> {
    let mut desired = Cow::Borrowed(desired);
    let all = of_member.followed_by(of_backend);
    let touched = match all.overrides.is_empty() {
        true => Vec::new(),
        false => local_overrides::apply(&all, cluster, desired.to_mut()),
    };
    Overridden { desired, touched }
}

/// The record of a sync, and that of the sync before.
struct Succession {
    earlier: Option<Record>,
    record: Record,
    /// The folder applied before is a forged one that this one replaces.
    is_repair: bool,
}

impl Succession {
    /// Compares the folder with the one applied before.
    fn of(
        folder: &ClusterFolder,
        earlier: Option<Record>,
        options: &Options,
    ) -> Result<Succession, ApplyError> {
        let mut record = Record {
            fleet: options.fleet.clone(),
            cluster: folder.cluster.clone(),
            sequence: folder.sequence,
            tree: folder.tree.clone(),
        };
        let is_forged = |earlier: &Record| folder.replaces(earlier.sequence, &earlier.tree);
        let is_repair = !options.is_signed && earlier.as_ref().is_some_and(is_forged);
        if let Some(earlier) = &earlier {
            check_record(earlier, &mut record, options.allow_rewind || is_repair)?;
        }
        Ok(Succession { earlier, record, is_repair })
    }

    /// Reports whether the folder differs from the one applied before without a higher sequence; an empty one is then
    /// not applied.
    fn is_sudden(&self) -> bool {
        let is_sudden =
            |earlier: &Record| self.record.sequence <= earlier.sequence && self.record.tree != earlier.tree;
        !self.is_repair && self.earlier.as_ref().is_some_and(is_sudden)
    }

    /// Reports whether exactly this folder was applied before.
    fn is_at_rest(&self) -> bool {
        self.earlier.as_ref() == Some(&self.record)
    }

    /// Returns the record of the folder in effect. During a suspension, that is the folder applied before.
    fn in_effect(self, is_suspended: bool) -> Record {
        if is_suspended { self.earlier.unwrap_or_default() } else { self.record }
    }
}

/// The suspensions in effect.
struct Suspended {
    /// The suspension of the whole backend.
    whole: Option<Suspension>,
    /// The first end of a suspension.
    resumes_at: Option<Timestamp>,
}

/// Removes suspended changes from the plan, unless suspensions are ignored.
fn hold_suspended(
    plan: &mut SyncPlan,
    desired: &DesiredSet,
    backend: &mut dyn Backend,
    now: Option<Timestamp>,
) -> Suspended {
    let Some(now) = now else { return Suspended { whole: None, resumes_at: None } };
    let whole = backend.suspended(now);
    let resumes_at = match &whole {
        Some(suspension) => {
            suspension::hold_all(plan, suspension);
            suspension.until
        }
        None => suspension::hold(plan, desired, now),
    };
    Suspended { whole, resumes_at }
}

/// Carries out a plan. Afterwards the plan contains only what was done.
fn carry_out(
    plan: &mut SyncPlan,
    desired: &DesiredSet,
    live: &BTreeMap<ObjectId, Live>,
    record: &Record,
    backend: &mut dyn Backend,
) -> Result<PlanResult, BackendError> {
    let done = apply::apply(Planned { plan, desired, live }, backend, record)?;
    plan.writes.retain(|write| done.written.contains(&write.id));
    plan.prunes.retain(|prune| done.pruned.contains(&prune.id));
    Ok(done)
}

/// Returns the effect of the plan's writes.
fn previews(plan: &SyncPlan, desired: &DesiredSet, backend: &mut dyn Backend) -> Vec<(ObjectId, Preview)> {
    let item = |write: &plan::Write| Some(Apply { desired: desired.objects.get(&write.id)?, seen: None });
    let items: Vec<Apply<'_>> = plan.writes.iter().filter_map(item).collect();
    let previews = backend.preview(&items);
    let named = items.iter().zip(previews);
    named.filter_map(|(item, preview)| Some((item.desired.id.clone(), preview?))).collect()
}

/// Adds the unhealthy objects to the problems, or to the waiting ones while they have time left.
fn judge(outcome: &mut SyncOutcome, desired: &DesiredSet, backend: &mut dyn Backend) {
    let known: BTreeSet<ObjectId> = outcome
        .applied
        .problems
        .iter()
        .chain(&outcome.waiting)
        .map(|problem| problem.object.clone())
        .collect();
    let awaited = desired.objects.values().filter(|wanted| !strategy::is_only_compared(wanted));
    let ids = awaited.map(|wanted| &wanted.id).filter(|id| !known.contains(id));
    let observed = ids.map(|id| (id, backend.object_health(id)));
    let observed: Vec<(&ObjectId, ObjectHealth)> =
        observed.filter(|(_, observed)| *observed != ObjectHealth::default()).collect();
    let stuck = observed
        .iter()
        .filter(|(_, observed)| observed.overdue || matches!(observed.health, Health::Failed(_)));
    let reasons = backend.reasons(&stuck.map(|(id, _)| *id).collect::<Vec<_>>());
    for (id, observed) in observed {
        let problem = |message: String| Problem::failed(id.clone(), message);
        outcome.applied.problems.extend(observed.remark.map(problem));
        let reason = reasons.get(id).map(|reason| format!("; {reason}")).unwrap_or_default();
        match observed.health {
            Health::Healthy => {}
            Health::Failed(why) => outcome.applied.problems.push(problem(format!("failed: {why}{reason}"))),
            Health::Progressing(why) if observed.overdue => {
                outcome.applied.problems.push(problem(format!("not healthy in time: {why}{reason}")));
            }
            Health::Progressing(why) => {
                outcome.waiting.push(problem(format!("not healthy yet: {why}")));
            }
        }
    }
    outcome.applied.problems.sort();
    outcome.waiting.sort();
}

/// Refuses a folder that another program applies, and a status for a program that does not apply it.
fn check_applier(folder: &ClusterFolder, here: &'static Applier) -> Result<(), ApplyError> {
    let wanted = folder.applier.as_deref().unwrap_or(BERTH.name);
    if wanted == here.name {
        return Ok(());
    }
    Err(ApplyError::OtherApplier {
        cluster: folder.cluster.clone(),
        wanted: wanted.to_owned(),
        here: here.name,
    })
}

/// Compares the folder with the one applied before. An old commit with exactly the applied folder reverts nothing:
/// the applied sequence stays.
fn check_record(earlier: &Record, record: &mut Record, may_go_back: bool) -> Result<(), ApplyError> {
    if (&earlier.fleet, &earlier.cluster) != (&record.fleet, &record.cluster) {
        let (fleet, cluster) = (earlier.fleet.clone(), earlier.cluster.clone());
        return Err(ApplyError::Foreign { fleet, cluster });
    }
    if record.sequence < earlier.sequence && !may_go_back {
        if record.tree == earlier.tree {
            record.sequence = earlier.sequence;
            return Ok(());
        }
        return Err(ApplyError::Rewound { offered: record.sequence, applied: earlier.sequence });
    }
    Ok(())
}

fn outcome(plan: SyncPlan, done: PlanResult, record: Record) -> SyncOutcome {
    let mut problems: Vec<Problem> = plan.problems.iter().chain(&done.problems).cloned().collect();
    let held: Vec<HeldRemoval> = plan.held.iter().chain(&done.held).cloned().collect();
    // Removals that wait for an approval are shown as problems; other reasons to hold need no action.
    problems
        .extend(held.iter().filter(|held| held.why == HoldReason::NeedsApproval).map(HeldRemoval::problem));
    problems.sort();
    problems.dedup();
    let objects = plan.unchanged.len() + done.written.len();
    let differences = plan.differences.clone();
    let applied = Applied {
        sequence: record.sequence,
        tree: record.tree,
        objects,
        problems,
        differences,
        ..Applied::default()
    };
    let removed = |prune: &&Prune| prune.seen.is_some() && done.pruned.contains(&prune.id);
    let pruned = plan.removed().filter(removed).count();
    let (written, waiting) = (done.written.len(), done.waiting);
    let (notes, previews) = (Vec::new(), Vec::new());
    SyncOutcome { plan, written, pruned, held, applied, waiting, notes, resumes_at: None, previews }
}

#[cfg(test)]
mod tests;

/// Simulates a plan, with every write successful and every object healthy. Leaves in the plan only what would be
/// done, and adds the reasons for the rest.
fn narrow(
    plan: &mut SyncPlan,
    desired: &DesiredSet,
    live: &BTreeMap<ObjectId, Live>,
    record: &Record,
    backend: &mut dyn Backend,
) -> Result<(), BackendError> {
    let done = carry_out(plan, desired, live, record, &mut Foresight(backend))?;
    plan.problems.extend(done.problems);
    plan.held.extend(done.held);
    Ok(())
}

/// A backend in which everything succeeds and nothing changes.
struct Foresight<'a>(&'a mut dyn Backend);

impl Backend for Foresight<'_> {
    fn record(&mut self) -> Result<Option<Record>, BackendError> {
        self.0.record()
    }

    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, BackendError> {
        self.0.survey(desired)
    }

    fn begin(&mut self, _: &Record, _: &[Apply<'_>], _: &[&Prune]) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>> {
        batch.iter().map(|_| Ok(())).collect()
    }

    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>> {
        batch.iter().map(|_| Ok(())).collect()
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn object_health(&mut self, _: &ObjectId) -> ObjectHealth {
        ObjectHealth::default()
    }

    fn given_up(&mut self, ids: &BTreeSet<ObjectId>) -> Option<BTreeSet<ObjectId>> {
        self.0.given_up(ids)
    }
}
