//! The verdict of the gate: what is held, what is approved, and the state to publish.

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
    /// The desired state was in force lately, and what the edit takes passes for that.
    pub is_rollback: bool,
    /// The approved losses that this publication carries out, of kinds that a member removes only with an approval.
    pub prunable: Places,
    /// The state to publish.
    pub state: State,
    /// The state that this leads to, when all waves are done. What is held stays in it, and what deadlines take as well.
    pub end: State,
}

/// A workload that keeps its last good form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub key: Key,
    /// The source file it is, or was, described in.
    pub source: String,
    /// The causes of its losses.
    pub causes: BTreeSet<Cause>,
    /// The places it would lose.
    pub places: Places,
    /// The losses that come later, at a deadline.
    pub due: Due,
    /// The digest that an approval of this change alone must name: the losses of this workload and of all that go
    /// along with it.
    pub digest: Digest,
    /// The digest that one approval of everything held must name.
    pub all: Digest,
    pub why: Vec<Why>,
    /// Only the removals wait: everything else of the workload is published.
    pub goes_on: bool,
    /// The source no longer describes the workload.
    pub is_gone: bool,
    /// Approvals that were offered for it and had been used before.
    pub spent: Vec<Digest>,
    /// The moment at which an approval for this removal expired.
    pub expired: Option<Timestamp>,
}

/// An approved change of one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    pub key: Key,
    /// The approvals that count no more.
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
    /// A policy test that holds what makes it fail.
    Policy { test: String, message: String },
    /// Another workload is held, and both go as one.
    Along { with: Key },
}

impl Held {
    /// Reports whether the workload is held for a reason of its own.
    pub fn has_own_reason(&self) -> bool {
        self.why.iter().any(|why| !matches!(why, Why::Along { .. }))
    }

    /// Reports whether somebody edited the fleet repository so that it loses something.
    pub fn is_of_edit(&self) -> bool {
        self.causes.is_empty() || self.causes.iter().any(Cause::is_edit)
    }

    /// Reports whether the workload's change in a cluster waits.
    pub fn holds_in(&self, cluster: &str) -> bool {
        !self.goes_on || self.places.iter().any(|(loses, _)| loses == cluster)
    }
}

impl Verdict {
    /// Returns the paths of what members may remove for good now, each with the clusters concerned.
    pub fn prunable(&self) -> BTreeMap<String, BTreeSet<&str>> {
        let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (cluster, object) in &self.prunable {
            found.entry(path::of_object(object)).or_default().insert(cluster);
        }
        found
    }
}
