//! The result of carrying out a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{ALL_OF_KIND, Form, HeldRemoval, HoldReason, Planned};
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;

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
        HoldReason::Disabled | HoldReason::Protected | HoldReason::HasOwner => true,
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
