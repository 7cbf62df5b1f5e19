//! The inputs of a report.

use std::collections::BTreeMap;

use crate::dialects::{DIALECTS, Dialects};
use berth_base::model::member::members;
use berth_base::model::{ClusterStatus, Fleet, Member, Published, Timestamp};

/// Members' statuses and what they are compared with.
#[derive(Clone, Copy, Debug)]
pub struct ReportInputs<'s> {
    /// The fleet behind the current decisions, if it can still be read.
    pub fleet: Option<&'s Fleet>,
    pub statuses: &'s BTreeMap<String, ClusterStatus>,
    pub published: &'s BTreeMap<String, Published>,
    pub dialects: Dialects,
    pub now: Timestamp,
}

impl<'s> ReportInputs<'s> {
    /// The inputs without a fleet, for all dialects.
    pub fn new(
        statuses: &'s BTreeMap<String, ClusterStatus>,
        published: &'s BTreeMap<String, Published>,
        now: Timestamp,
    ) -> ReportInputs<'s> {
        ReportInputs { fleet: None, statuses, published, dialects: DIALECTS, now }
    }

    pub(super) fn members(&self) -> Vec<Member<'s>> {
        members(self.statuses, self.published, self.now)
    }
}
