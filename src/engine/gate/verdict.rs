//! The verdict of the gate: held and approved workloads, and the state to publish.

use std::collections::{BTreeMap, BTreeSet};

use super::deadlines::{Deadline, Due};
use crate::state::State;
use crate::state::ledger::{Cause, Places};
use berth_base::model::{Digest, Key, ObjectId, Timestamp, path};

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
