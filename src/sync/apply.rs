//! Carries out a plan: stage by stage, every error collected, removals last.
//!
//! Objects fail alone. An object waits only for the namespace it stands in and the CRD that defines it,
//! and only where these are not there; a removal waits for all objects of its workload.

use std::collections::{BTreeMap, BTreeSet};

use super::SyncError;
use super::desired::{Desired, DesiredSet};
use super::plan::{self, Form, Held, Live, Prune, SyncPlan, Write};
use super::target::{Apply, Record, Target};
use crate::model::ObjectId;
use crate::model::annotation::WORKLOAD;
use crate::model::status::Problem;

/// What came of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub written: usize,
    pub pruned: usize,
    pub held: Vec<Held>,
    pub problems: Vec<Problem>,
}

/// Carries out a plan against the target it was made for.
pub fn apply(
    plan: &SyncPlan,
    desired: &DesiredSet,
    live: &BTreeMap<ObjectId, Live>,
    target: &mut dyn Target,
    record: &Record,
) -> Result<Done, SyncError> {
    let mut done = Done::default();
    let all: Vec<Apply<'_>> = plan.writes.iter().filter_map(|write| item(desired, write)).collect();
    target.begin(record, &all, &plan.prunes.iter().collect::<Vec<_>>())?;

    let (first, last): (Vec<Prune>, Vec<Prune>) = plan.prunes.iter().cloned().partition(|prune| prune.first);
    delete(target, &first, &mut done);

    let (foundations, rest): (Vec<Apply<'_>>, Vec<Apply<'_>>) =
        all.into_iter().partition(|item| plan::goes_first(&item.desired.id));
    write(target, &foundations, &mut done);
    let missing = Missing::after(plan, desired, live, &done);
    let mut ready = Vec::new();
    for item in rest {
        match missing.needed_by(item.desired) {
            None => ready.push(item),
            Some(needed) => done.problems.push(Problem {
                object: item.desired.id.clone(),
                message: format!("it waits for {needed}, which is not there"),
            }),
        }
    }
    write(target, &ready, &mut done);

    let unfinished = unfinished(plan, desired, live, &done);
    let (now, held) = plan::hold_unfinished(last, |workload| {
        unfinished.as_ref().is_none_or(|unfinished| unfinished.contains(workload))
    });
    done.held.extend(held);
    delete(target, &now, &mut done);
    target.finish()?;
    Ok(done)
}

fn item<'a>(desired: &'a DesiredSet, write: &'a Write) -> Option<Apply<'a>> {
    let desired = desired.objects.get(&write.id)?;
    Some(Apply { desired, seen: write.seen.as_ref() })
}

fn write(target: &mut dyn Target, batch: &[Apply<'_>], done: &mut Done) {
    for (item, result) in batch.iter().zip(target.apply(batch)) {
        match result {
            Ok(()) => done.written += 1,
            Err(error) => {
                done.problems.push(Problem { object: item.desired.id.clone(), message: error.0 });
            }
        }
    }
}

fn delete(target: &mut dyn Target, prunes: &[Prune], done: &mut Done) {
    let batch: Vec<&Prune> = prunes.iter().collect();
    for (prune, result) in batch.iter().zip(target.delete(&batch)) {
        match result {
            Ok(()) => done.pruned += usize::from(prune.seen.is_some() && !prune.orphan),
            Err(error) => done.problems.push(Problem {
                object: prune.id.clone(),
                message: format!("it can not be removed: {}", error.0),
            }),
        }
    }
}

/// Workloads of which something is not as wanted. `None` where it may be any: a new file is unreadable.
fn unfinished(
    plan: &SyncPlan,
    desired: &DesiredSet,
    live: &BTreeMap<ObjectId, Live>,
    done: &Done,
) -> Option<BTreeSet<String>> {
    let had = |id: &ObjectId| {
        let annotations = &live.get(id)?.annotations;
        Some(annotations.get(WORKLOAD).cloned().unwrap_or_default())
    };
    let blocked = desired.blocked.values().map(|it| it.workload.clone().or_else(|| had(&it.id)));
    let failed = plan.problems.iter().chain(&done.problems).map(|problem| &problem.object);
    let failed = failed.filter_map(|id| {
        let wanted = desired.objects.get(id).map(|desired| desired.workload().to_owned());
        wanted.or_else(|| had(id))
    });
    blocked.chain(failed.map(Some)).collect()
}

/// Namespaces and CRDs that the folder has and the target has not.
#[derive(Debug, Default)]
struct Missing {
    namespaces: BTreeSet<ObjectId>,
    /// By group, with the kind where it is known.
    definitions: Vec<(String, Option<String>, ObjectId)>,
}

impl Missing {
    fn after(plan: &SyncPlan, desired: &DesiredSet, live: &BTreeMap<ObjectId, Live>, done: &Done) -> Missing {
        let mut missing = Missing::default();
        let there = |id: &ObjectId| live.get(id).is_some_and(|live| matches!(live.form, Form::There { .. }));
        let failed = plan.problems.iter().chain(&done.problems).map(|problem| &problem.object);
        for id in failed.filter(|id| !there(id)) {
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

/// The group and, where it is known, the kind that a CRD defines.
fn defined_by(id: &ObjectId, object: Option<&Desired>) -> (String, Option<String>) {
    let spec = object.and_then(|object| object.object.get("spec"));
    let kind = spec.and_then(|spec| spec.get("names")?.get("kind")?.as_str().map(str::to_owned));
    // A CRD is called `<plural>.<group>`.
    let group = id.name.split_once('.').map_or("", |(_, group)| group);
    (group.to_owned(), kind)
}
