//! Carries out a plan: stage by stage, with all errors collected and removals last. [`PlanResult`] is the
//! result.
//!
//! Objects fail independently. An object waits for its missing namespace or CRD, for lower waves, and for its
//! dependencies; a removal waits for all objects of its workload. Nothing here waits for time to pass: the
//! next sync continues with objects that still wait.
//!
//! A removal waits because another object of its workload is not in its wanted form yet
//! ([`RemovalBlockers`]). A refused object blocks the removals of its workload until its time is up. An
//! unreadable file blocks them until it can be read: its content is unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::apply_order::{self, ApplyOrder};
use super::backends::{Apply, Backend, BackendError, Record};
use super::desired::{Desired, DesiredSet, defined_by};
use super::health::Health;
use super::plan::{self, ALL_OF_KIND, Form, HeldRemoval, HoldReason, Planned, Prune, Write};
use berth_base::model::ObjectId;
use berth_base::model::annotation::WORKLOAD;
use berth_base::model::status::Problem;

/// Carries out a plan against the backend it was made for.
pub fn apply(
    planned: Planned<'_>,
    backend: &mut dyn Backend,
    record: &Record,
) -> Result<PlanResult, BackendError> {
    let Planned { plan, desired, .. } = planned;
    let mut done = PlanResult::default();
    let all: Vec<Apply<'_>> = plan.writes.iter().filter_map(|write| item(desired, write)).collect();
    backend.begin(record, &all, &plan.prunes.iter().collect::<Vec<_>>())?;

    let (first, last): (Vec<Prune>, Vec<Prune>) = plan.prunes.iter().cloned().partition(|prune| prune.first);
    delete(backend, &first, &mut done);
    write_all(all, planned, backend, &mut done);

    let unfinished = RemovalBlockers::of(planned, &done, backend);
    let (now, behind) = unfinished.split(last);
    hold_behind(behind, &mut done);
    let leaving: BTreeSet<&str> =
        now.iter().filter(|prune| prune.seen.is_some()).map(|prune| prune.workload.as_str()).collect();
    let unhealthy = unhealthy(&leaving, &unfinished, desired, backend);
    let (now, held) = plan::hold(now, HoldReason::NotHealthy, |workload| unhealthy.contains(workload));
    done.waiting.extend(held.iter().map(HeldRemoval::problem));
    done.held.extend(held);
    delete(backend, &now, &mut done);
    backend.finish()?;
    Ok(done)
}

fn item<'a>(desired: &'a DesiredSet, write: &'a Write) -> Option<Apply<'a>> {
    let desired = desired.objects.get(&write.id)?;
    Some(Apply { desired, seen: write.seen.as_ref() })
}

/// Writes every object that waits for nothing, kinds in their order, until only waiting ones are left.
fn write_all(
    mut left: Vec<Apply<'_>>,
    planned: Planned<'_>,
    backend: &mut dyn Backend,
    done: &mut PlanResult,
) {
    let order = ApplyOrder::of(planned.desired);
    left.retain(|item| {
        let fault = order.faults.get(&item.desired.id);
        done.problems.extend(fault.map(|message| Problem::failed(item.desired.id.clone(), message.clone())));
        fault.is_none()
    });
    loop {
        let missing = MissingParents::after(planned, done);
        let failed: BTreeSet<ObjectId> = planned
            .plan
            .problems
            .iter()
            .chain(&done.problems)
            .map(|problem| problem.object.clone())
            .collect();
        let unwritten: BTreeSet<&ObjectId> = left.iter().map(|item| &item.desired.id).collect();
        let mut is_fine = |id: &ObjectId| {
            !unwritten.contains(id)
                && !failed.contains(id)
                && backend.object_health(id).health == Health::Healthy
        };
        let mut waits = BTreeMap::new();
        for item in &left {
            let id = &item.desired.id;
            if let Some(needed) = missing.needed_by(item.desired) {
                waits.insert(id.clone(), (needed.clone(), format!("{needed}, which is missing")));
            } else if let Some(wait) = order.waits_for(id, &mut is_fine) {
                waits.insert(id.clone(), wait);
            }
        }
        let ready = left.iter().filter(|item| !waits.contains_key(&item.desired.id));
        let Some(rank) = ready.map(|item| apply_order::rank(&item.desired.id)).min() else {
            report_waiting(&waits, &failed, backend, done);
            return;
        };
        let (batch, rest): (Vec<Apply<'_>>, Vec<Apply<'_>>) = left.into_iter().partition(|item| {
            apply_order::rank(&item.desired.id) == rank && !waits.contains_key(&item.desired.id)
        });
        left = rest;
        write(backend, &batch, done);
    }
}

/// Reports the removals that wait for blockers.
fn hold_behind(behind: Vec<(Prune, Blocker)>, done: &mut PlanResult) {
    for (prune, blocker) in behind {
        let problem = plan::kept(prune.id.clone(), blocker.words());
        done.waiting.extend(blocker.has_time.then(|| problem.clone()));
        done.problems.push(problem);
        done.held.push(HeldRemoval { id: prune.id, why: HoldReason::WorkloadFailed });
    }
}

/// Reports the unwritten objects. An object is a problem if its dependency will not appear by itself.
fn report_waiting(
    waits: &BTreeMap<ObjectId, (ObjectId, String)>,
    failed: &BTreeSet<ObjectId>,
    backend: &mut dyn Backend,
    done: &mut PlanResult,
) {
    for (id, (blocker, what)) in waits {
        let mut root = blocker;
        for _ in 0..waits.len() {
            match waits.get(root) {
                Some((next, _)) => root = next,
                None => break,
            }
        }
        done.roots.insert(id.clone(), root.clone());
        let observed = backend.object_health(root);
        let may_come = matches!(observed.health, Health::Progressing(_)) && !observed.overdue;
        let problem = Problem::failed(id.clone(), format!("waits for {what}"));
        if may_come && !failed.contains(root) {
            done.waiting.push(problem);
        } else {
            done.problems.push(problem);
        }
    }
}

fn write(backend: &mut dyn Backend, batch: &[Apply<'_>], done: &mut PlanResult) {
    for (item, result) in batch.iter().zip(backend.apply(batch)) {
        match result {
            Ok(()) => drop(done.written.insert(item.desired.id.clone())),
            Err(error) => {
                done.problems.push(Problem::failed(item.desired.id.clone(), error.to_string()));
            }
        }
    }
}

fn delete(backend: &mut dyn Backend, prunes: &[Prune], done: &mut PlanResult) {
    if prunes.is_empty() {
        return;
    }
    let batch: Vec<&Prune> = prunes.iter().collect();
    for (prune, result) in batch.iter().zip(backend.delete(&batch)) {
        match result {
            Ok(()) => drop(done.pruned.insert(prune.id.clone())),
            Err(error) => {
                let message = format!("cannot be removed: {error}");
                done.problems.push(Problem::failed(prune.id.clone(), message));
            }
        }
    }
}

/// Returns the workloads among these that have an unhealthy object with time left.
fn unhealthy(
    workloads: &BTreeSet<&str>,
    unfinished: &RemovalBlockers,
    desired: &DesiredSet,
    backend: &mut dyn Backend,
) -> BTreeSet<String> {
    if workloads.is_empty() {
        return BTreeSet::new();
    }
    let objects = desired.objects.values().filter(|object| workloads.contains(object.workload()));
    let objects = objects.filter(|object| !super::strategy::is_only_compared(object));
    let waits = objects.filter(|object| {
        let observed = backend.object_health(&object.id);
        observed.health != Health::Healthy && !observed.overdue && !unfinished.given_up.contains(&object.id)
    });
    waits.map(|object| object.workload().to_owned()).collect()
}

/// Namespaces and CRDs that the folder has and the backend lacks.
#[derive(Debug, Default)]
struct MissingParents {
    namespaces: BTreeSet<ObjectId>,
    /// Missing CRDs: group, kind if known, and identity.
    definitions: Vec<(String, Option<String>, ObjectId)>,
}

impl MissingParents {
    fn after(planned: Planned<'_>, done: &PlanResult) -> MissingParents {
        let Planned { plan, desired, live } = planned;
        let mut missing = MissingParents::default();
        let there = |id: &ObjectId| {
            live.get(id).is_some_and(|live| matches!(live.form, Form::There { .. } | Form::Refused(_)))
        };
        let failed = plan.problems.iter().chain(&done.problems).map(|problem| &problem.object);
        for id in failed.filter(|id| !there(id) && &*id.name != ALL_OF_KIND) {
            if plan::is_namespace(id) {
                missing.namespaces.insert(id.clone());
            }
            if plan::is_definition(id) {
                let (group, kind) = defined_by(id, desired.objects.get(id));
                missing.definitions.push((group, kind, id.clone()));
            }
        }
        missing
    }

    fn needed_by(&self, object: &Desired) -> Option<&ObjectId> {
        let id = &object.id;
        let definition = self.definitions.iter().find(|(group, kind, _)| {
            **group == *id.group && kind.as_deref().is_none_or(|kind| kind == &*id.kind)
        });
        let namespace = ObjectId::new("", "Namespace", "", &id.namespace);
        self.namespaces.get(&namespace).or(definition.map(|(_, _, id)| id))
    }
}

/// The result of carrying out a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlanResult {
    pub written: BTreeSet<ObjectId>,
    /// The objects removed or released.
    pub pruned: BTreeSet<ObjectId>,
    pub held: Vec<HeldRemoval>,
    pub problems: Vec<Problem>,
    /// Objects that may still reach their wanted form by themselves.
    pub waiting: Vec<Problem>,
    /// For each waiting object, the last object in the chain of dependencies.
    pub roots: BTreeMap<ObjectId, ObjectId>,
}

/// Finds the unwanted objects that still exist and that berth will remove. The number counts the kinds that could not
/// be listed, which may contain more of them.
pub(super) fn removing(planned: Planned<'_>, done: &PlanResult) -> (Vec<ObjectId>, usize) {
    let Planned { plan, desired, live } = planned;
    let stays_for_good = |held: &&HeldRemoval| match held.why {
        HoldReason::Disabled | HoldReason::Kept | HoldReason::Protected | HoldReason::HasOwner => true,
        HoldReason::NeedsApproval
        | HoldReason::WorkloadFailed
        | HoldReason::NotHealthy
        | HoldReason::Suspended => false,
    };
    let stay: BTreeSet<&ObjectId> = plan.held.iter().filter(stays_for_good).map(|held| &held.id).collect();
    let is_left = |id: &ObjectId| !done.pruned.contains(id) && !stay.contains(id);
    let unwanted = live.iter().filter(|(id, live)| {
        live.owned
            && live.form != Form::Absent
            && !desired.objects.contains_key(*id)
            && !desired.is_blocked(id)
    });
    let left = unwanted.map(|(id, _)| id).filter(|id| is_left(id));
    let (kinds, named): (Vec<&ObjectId>, Vec<&ObjectId>) = left.partition(|id| &*id.name == ALL_OF_KIND);
    (named.into_iter().cloned().collect(), kinds.len())
}

/// The object that blocks a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocker {
    pub object: ObjectId,
    /// The blocker's time will end the wait.
    pub has_time: bool,
}

impl Blocker {
    pub fn words(&self) -> String {
        let until = if self.has_time { ", within `--health-timeout`" } else { "" };
        format!("{} of its workload is not applied and healthy{until}", self.object)
    }
}

/// For each workload, the first object that is not in its wanted form and has time left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemovalBlockers {
    workloads: BTreeMap<String, Blocker>,
    /// A blocker of an unknown workload. It blocks all removals.
    any: Option<Blocker>,
    /// Objects whose time is up.
    pub given_up: BTreeSet<ObjectId>,
}

impl RemovalBlockers {
    pub fn of(planned: Planned<'_>, done: &PlanResult, backend: &mut dyn Backend) -> RemovalBlockers {
        let Planned { plan, desired, live } = planned;
        let had = |id: &ObjectId| {
            let annotations = &live.get(id)?.annotations;
            Some(annotations.get(WORKLOAD).cloned().unwrap_or_default())
        };
        let mut unfinished = RemovalBlockers::default();
        for blocked in desired.blocked.values() {
            let blocker = Blocker { object: blocked.id.clone(), has_time: false };
            match blocked.workload.clone().or_else(|| had(&blocked.id)) {
                Some(workload) => drop(unfinished.workloads.entry(workload).or_insert(blocker)),
                None => drop(unfinished.any.get_or_insert(blocker)),
            }
        }
        let failed = plan.problems.iter().chain(&done.problems).chain(&done.waiting);
        let failed: BTreeSet<ObjectId> = failed
            .map(|problem| problem.object.clone())
            .filter(|id| &*id.name != ALL_OF_KIND && !desired.is_blocked(id))
            .collect();
        let given_up = backend.given_up(&failed);
        for id in failed {
            let wanted = desired.objects.get(&id).map(|desired| desired.workload().to_owned());
            let Some(workload) = wanted.or_else(|| had(&id)) else { continue };
            let root = done.roots.get(&id).unwrap_or(&id);
            let is_over = given_up.as_ref().is_some_and(|over| over.contains(root) || over.contains(&id))
                || is_overdue(root, backend);
            if is_over {
                unfinished.given_up.insert(id);
            } else {
                let blocker = Blocker { object: root.clone(), has_time: given_up.is_some() };
                unfinished.workloads.entry(workload).or_insert(blocker);
            }
        }
        unfinished
    }

    /// Splits removals into those that can run now and those that wait. An object that is already missing waits for
    /// nothing.
    pub fn split(&self, prunes: Vec<Prune>) -> (Vec<Prune>, Vec<(Prune, Blocker)>) {
        let (mut now, mut behind) = (Vec::new(), Vec::new());
        for prune in prunes {
            let blocker = self.any.as_ref().or_else(|| self.workloads.get(&prune.workload));
            match blocker.filter(|_| prune.seen.is_some()) {
                Some(blocker) => behind.push((prune, blocker.clone())),
                None => now.push(prune),
            }
        }
        (now, behind)
    }
}

fn is_overdue(id: &ObjectId, backend: &mut dyn Backend) -> bool {
    let observed = backend.object_health(id);
    observed.overdue && observed.health != Health::Healthy
}
