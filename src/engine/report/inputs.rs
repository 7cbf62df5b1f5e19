//! The inputs of a report.

use std::collections::BTreeMap;

use crate::dialects::{DIALECTS, Dialects, RolloutView};
use crate::state::State;
use berth_base::model::member::members;
use berth_base::model::{ClusterStatus, Decision, Fleet, Key, Map, Member, Published, Shared, Timestamp};

/// Members' statuses and what they are compared with.
#[derive(Clone, Copy, Debug)]
pub struct ReportInputs<'s> {
    /// The fleet behind the current decisions, if it can still be read.
    pub fleet: Option<&'s Fleet>,
    pub statuses: &'s Map<String, Shared<ClusterStatus>>,
    pub published: &'s BTreeMap<String, Published>,
    /// The current state, for the releases of workloads and the verdicts on them.
    pub state: Option<&'s State>,
    pub dialects: Dialects,
    pub now: Timestamp,
}

impl<'s> ReportInputs<'s> {
    /// The inputs without a fleet, for all dialects.
    pub fn new(
        statuses: &'s Map<String, Shared<ClusterStatus>>,
        published: &'s BTreeMap<String, Published>,
        now: Timestamp,
    ) -> ReportInputs<'s> {
        ReportInputs { fleet: None, statuses, published, state: None, dialects: DIALECTS, now }
    }

    pub(super) fn rollout(&self, workload: &Key) -> Option<RolloutView<'s>> {
        let state = self.state?;
        Some(RolloutView { releases: state.releases.get(workload)?, facts: &state.facts })
    }

    pub(super) fn decisions(&self) -> Option<&'s Map<Key, Decision>> {
        Some(&self.state?.decisions)
    }

    pub(super) fn members(&self) -> Vec<Member<'s>> {
        members(self.statuses, self.published, self.now)
    }
}
