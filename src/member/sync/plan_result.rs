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
    /// Objects that may still become as wanted by themselves.
    pub waiting: Vec<Problem>,
    /// The last object in the chain that each waiting object waits for.
    pub roots: BTreeMap<ObjectId, ObjectId>,
}

/// Finds the objects that are no longer wanted and still there, and that berth is to remove. The number is that of
/// kinds whose objects cannot be listed, so that more of them may be there.
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
