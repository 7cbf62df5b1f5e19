//! The inputs of a verdict, and the verdict of the gate: held and approved workloads, and the state to
//! publish. A held workload is also a line: in a rendered commit's trailers, and in the record of the last
//! processed commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::limits::Limits;
use super::losses::{Deadline, Due, Outlook};
use super::window::{PastState, Wanted};
use crate::state::ledger::{Cause, GivenApproval, Places};
use crate::state::{Comparison, Ledger, State};
use berth_base::model::{Decision, Digest, Fleet, Key, Map, ObjectId, Timestamp, path};

/// The verdict of the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    pub held: Vec<Held>,
    pub approved: Vec<Approved>,
    /// The deadlines that the published change brings.
    pub deadlines: Vec<Deadline>,
    /// The desired state was published lately, and the edit's removals pass as a rollback to it.
    pub is_rollback: bool,
    /// The approved losses that this publication carries out, of kinds that a member removes only with an approval.
    pub prunable: Places,
    /// The state to publish.
    pub state: State,
    /// The state that this one leads to, after all waves. It keeps held copies and copies with a deadline.
    pub end: State,
}

/// A workload that keeps its last good form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub key: Key,
    /// The source file that describes, or described, the workload.
    pub source: String,
    /// The causes of the workload's losses.
    pub causes: BTreeSet<Cause>,
    /// The places that the workload would lose.
    pub places: Places,
    /// The losses that come later, at a deadline.
    pub due: Due,
    /// The digest that approves this change alone: the losses of this workload and of its group.
    pub digest: Digest,
    /// The digest that approves everything held.
    pub all: Digest,
    pub why: Vec<Why>,
    /// Only the removals are held: everything else of the workload is published.
    pub goes_on: bool,
    /// The source no longer describes the workload.
    pub is_gone: bool,
    /// Approvals of this workload that were used before.
    pub spent: Vec<Digest>,
    /// The moment at which an approval of this removal expired.
    pub expired: Option<Timestamp>,
}

/// An approved change of one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    pub key: Key,
    /// The approvals that are used up.
    pub digests: BTreeSet<Digest>,
    pub places: Places,
}

/// The reason for holding a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The workload would lose too many of its clusters, counting those lost within the window.
    Clusters { lost: usize, of: usize, lately: usize },
    /// The workload is among those that would remove too many objects from this cluster, counting those
    /// removed within the window.
    Objects { cluster: String, lost: usize, of: usize, lately: usize },
    /// The change would remove a namespace, a CRD or a volume claim.
    Risky { object: ObjectId },
    /// The same change was held before, and nobody approved it.
    Still,
    /// Too many clusters would lose something at once without an edit.
    Evictions { clusters: usize, of: usize },
    /// The workload makes this policy test fail.
    Policy { test: String, message: String },
    /// Another workload of the same group is held.
    Along { with: Key },
}

impl Held {
    /// Reports whether the workload is held for its own reasons, not only along with another.
    pub fn has_own_reason(&self) -> bool {
        self.why.iter().any(|why| !matches!(why, Why::Along { .. }))
    }

    /// Reports whether an edit of the fleet repository causes the losses.
    pub fn is_of_edit(&self) -> bool {
        self.causes.is_empty() || self.causes.iter().any(Cause::is_edit)
    }

    /// Reports whether the workload's change in a cluster is held.
    pub fn holds_in(&self, cluster: &str) -> bool {
        !self.goes_on || self.places.iter().any(|(loses, _)| loses == cluster)
    }
}

impl Verdict {
    /// Returns the paths that members may prune for good now, each with its clusters.
    pub fn prunable(&self) -> BTreeMap<String, BTreeSet<&str>> {
        let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (cluster, object) in &self.prunable {
            found.entry(path::of_object(object)).or_default().insert(cluster);
        }
        found
    }
}

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

/// A workload that was held, and the digest that approves its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRecord {
    pub key: Key,
    pub digest: Digest,
}

impl HeldRecord {
    pub fn of(held: &Held) -> HeldRecord {
        HeldRecord { key: held.key.clone(), digest: held.digest }
    }
}

impl fmt::Display for HeldRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.digest, self.key.kind_and_group(), self.key.full_name())
    }
}

impl FromStr for HeldRecord {
    type Err = ();

    fn from_str(text: &str) -> Result<HeldRecord, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let [digest, kind, name] = words.as_slice() else { return Err(()) };
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        Ok(HeldRecord { key: Key::new(group, kind, namespace, name), digest: digest.parse()? })
    }
}
