//! The part of a plan that would be carried out: a dry run shows the same writes, removals and problems as the sync.

use std::collections::{BTreeMap, BTreeSet};

use super::apply;
use super::backends::{Apply, Backend, BackendError, ObjectHealth, Record};
use super::desired::{Desired, DesiredSet};
use super::plan::{Live, Planned, Prune, SyncPlan};
use berth_base::model::ObjectId;

/// Carries out a plan in thought, where each write succeeds and each object is healthy. Leaves in the plan only what
/// would be done, and adds the reasons for the rest.
pub(super) fn narrow(
    plan: &mut SyncPlan,
    desired: &DesiredSet,
    live: &BTreeMap<ObjectId, Live>,
    record: &Record,
    backend: &mut dyn Backend,
) -> Result<(), BackendError> {
    let done = apply::apply(Planned { plan, desired, live }, &mut Foresight(backend), record)?;
    plan.writes.retain(|write| done.written.contains(&write.id));
    plan.prunes.retain(|prune| done.pruned.contains(&prune.id));
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
