//! The result of carrying out a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::HeldRemoval;
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
