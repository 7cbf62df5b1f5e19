//! The inputs of a verdict.

use std::collections::{BTreeMap, BTreeSet};

use super::deadlines::{Deadline, Outlook};
use super::held_record::HeldRecord;
use super::limits::Limits;
use super::window::PastPublication;
use crate::state::Comparison;
use berth_base::model::{Decision, Digest, Key, Map};

/// The inputs of a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub states: &'a Comparison<'a>,
    /// The workloads whose new placement makes policy tests fail: each test with its message.
    pub failing: &'a BTreeMap<Key, BTreeMap<String, String>>,
    pub limits: &'a Limits,
    /// The source differs from the one that was processed last.
    pub source_changed: bool,
    /// Tells edits from statuses and time; empty where only one of them has changed.
    pub edit_alone: &'a [Map<Key, Decision>],
    /// The deadlines to come; without any moment where the change cannot bring one.
    pub outlook: &'a Outlook,
    /// Deadlines of earlier changes that the gate let pass, and that have passed by now.
    pub foreseen: &'a [Deadline],
    /// Publications of the window that removed something, newest first.
    pub pasts: &'a [PastPublication],
    /// The workloads that were held before.
    pub retried: &'a [HeldRecord],
    /// The approvals that count now, used or not.
    pub approvals: &'a BTreeSet<Digest>,
    /// The approvals that earlier rendered commits used.
    pub used: &'a BTreeSet<Digest>,
}
