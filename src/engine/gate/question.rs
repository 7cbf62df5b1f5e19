//! The inputs of a verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::deadlines::Outlook;
use super::limits::Limits;
use super::window::{PastState, Wanted};
use crate::state::ledger::GivenApproval;
use crate::state::{Comparison, Ledger, State};
use berth_base::model::{Decision, Digest, Fleet, Key, Map, Timestamp};

/// The inputs of a verdict.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The current state, and the desired state in the end.
    pub states: &'a Comparison<'a>,
    /// The first step towards the desired state, as `release` computed it.
    pub step: &'a State,
    pub now: Timestamp,
    /// The current rendered commit.
    pub before: &'a str,
    /// The number of the publication that the step becomes.
    pub seq: u64,
    /// The source commit.
    pub source: &'a str,
    /// The source differs from the last processed one.
    pub is_edited: bool,
    pub limits: &'a Limits,
    /// The current state was judged by the same limits.
    pub limits_stay: bool,
    /// The workloads whose desired placement makes policy tests fail: each test with its message.
    pub failing: &'a BTreeMap<Key, BTreeMap<String, String>>,
    /// The future deadlines. Empty where the change cannot bring one.
    pub outlook: &'a Outlook,
    /// The approvals in files that are valid now.
    pub in_files: &'a BTreeSet<Digest>,
    /// The approvals in messages of source commits that no pass has read yet.
    pub in_messages: &'a BTreeMap<Digest, GivenApproval>,
    /// The fleet of the source, for the groups.
    pub fleet: &'a Fleet,
}

/// Looks up slow inputs, only where a verdict depends on them.
pub trait Lookup {
    type Error;

    /// Returns the decisions by the edit alone: the new source with the old statuses and time. There are
    /// several where the old ones are not known exactly, and none where only the source has changed.
    fn edit_alone(&mut self) -> Result<Vec<Map<Key, Decision>>, Self::Error>;

    /// Returns the wanted parts of an earlier rendered commit's state. `None` if the commit is no longer
    /// available.
    fn state_before(&mut self, commit: &str, wanted: &Wanted<'_>) -> Result<Option<PastState>, Self::Error>;

    /// Reports whether the desired state was published lately.
    fn is_rollback(&mut self) -> Result<bool, Self::Error>;
}

impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("source", &self.source).field("now", &self.now).finish()
    }
}

impl<'a> Question<'a> {
    pub(super) fn ledger(&self) -> &'a Ledger {
        &self.states.current.ledger
    }

    pub(super) fn desired(&self) -> &'a State {
        self.states.next
    }
}
