//! Removals that wait because another object of their workload is not in its wanted form yet.
//!
//! A refused object blocks the removals of its workload until its time is up. An unreadable file blocks them until it
//! can be read: its content is unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::backends::Backend;
use super::health::Health;
use super::plan::{self, Planned, Prune};
use super::plan_result::PlanResult;
use berth_base::model::ObjectId;
use berth_base::model::annotation::WORKLOAD;

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
            .filter(|id| &*id.name != plan::ALL_OF_KIND && !desired.is_blocked(id))
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
