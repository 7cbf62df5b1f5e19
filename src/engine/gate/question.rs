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
    /// The current state, and the one that the fleet should have in the end.
    pub states: &'a Comparison<'a>,
    /// The first step towards the desired state, as releases have it.
    pub step: &'a State,
    pub now: Timestamp,
    /// The current rendered commit.
    pub before: &'a str,
    /// The number of the publication that the step becomes.
    pub seq: u64,
    /// The source commit.
    pub source: &'a str,
    /// The source differs from the one that was processed last.
    pub is_edited: bool,
    pub limits: &'a Limits,
    /// The limits are those by which the current state was judged.
    pub limits_stay: bool,
    /// The workloads whose desired placement makes policy tests fail: each test with its message.
    pub failing: &'a BTreeMap<Key, BTreeMap<String, String>>,
    /// The deadlines to come; without any moment where the change cannot bring one.
    pub outlook: &'a Outlook,
    /// The approvals in files that count now.
    pub in_files: &'a BTreeSet<Digest>,
    /// The approvals in the messages of source commits that no pass has read.
    pub in_messages: &'a BTreeMap<Digest, GivenApproval>,
    /// The fleet that people want, for what goes as one.
    pub fleet: &'a Fleet,
}

/// Looks up inputs that take long, only where a verdict depends on them.
pub trait Lookup {
    type Error;

    /// The decisions of the edit alone: with the new source, and the old statuses and time. Several where the old ones
    /// are not known exactly, none where only the source has changed.
    fn edit_alone(&mut self) -> Result<Vec<Map<Key, Decision>>, Self::Error>;

    /// The state of an earlier rendered commit, as far as it is wanted. `None` where nobody has that commit any more.
    fn state_before(&mut self, commit: &str, wanted: &Wanted<'_>) -> Result<Option<PastState>, Self::Error>;

    /// Reports whether the desired state was in force lately.
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
