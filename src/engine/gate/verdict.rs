//! The verdict of the gate: what is held, what is approved, and the state to publish.

use std::collections::{BTreeMap, BTreeSet};

use super::deadlines::{Deadline, Due};
use super::held_record::HeldRecord;
use super::removal::{Cause, Pairs};
use super::window::Removed;
use crate::state::State;
use berth_base::model::{Digest, Key, ObjectId, Timestamp, path};

/// The verdict of the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    pub held: Vec<Held>,
    pub approved: Vec<Approved>,
    /// The workloads that lose a copy in this publication.
    pub removed: Vec<Removed>,
    /// The deadlines that the published change brings.
    pub deadlines: Vec<Deadline>,
    /// The state to publish; `None` for the next state unchanged.
    pub state: Option<State>,
}

/// A workload that keeps its last good form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub key: Key,
    /// The source file it is, or was, described in.
    pub source: String,
    pub cause: Cause,
    /// The objects it would lose.
    pub pairs: Pairs,
    /// The losses that come later, at a deadline.
    pub due: Due,
    /// The end of the time searched for deadlines, where the workload is held for some.
    pub until: Option<Timestamp>,
    /// The digest that an approval of this removal alone must name.
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

/// An approved removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    pub key: Key,
    /// The approvals that count no more.
    pub digests: BTreeSet<Digest>,
    pub pairs: Pairs,
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
    /// The same removal was held before, for taking too much together with others.
    Still,
    /// Too many clusters would lose something at once without an edit.
    Evictions { clusters: usize, of: usize },
    /// The same in the words of the first version of the gate, which stand in commits.
    Unedited { clusters: usize, of: usize },
    /// A policy test that holds what makes it fail.
    Policy { test: String, message: String },
    /// The workload hands an object over to a held workload.
    HandsOver { to: Key },
}

impl Held {
    /// Reports whether an approval would let the removal pass; otherwise it waits for another workload.
    pub fn is_approvable(&self) -> bool {
        self.why.iter().any(|why| !matches!(why, Why::HandsOver { .. }))
    }

    /// Reports whether the workload's change in a cluster waits.
    pub fn holds_in(&self, cluster: &str) -> bool {
        !self.goes_on || self.pairs.iter().any(|(loses, _)| loses == cluster)
    }

    /// Reports whether a policy test holds it.
    pub fn is_held_by_policy(&self) -> bool {
        self.why.iter().any(|why| matches!(why, Why::Policy { .. }))
    }

    pub(super) fn record(&self) -> HeldRecord {
        let together = self.why.iter().any(|why| matches!(why, Why::Objects { .. } | Why::Still));
        let (key, digest, cause, until) = (self.key.clone(), self.digest, self.cause, self.until);
        HeldRecord { key, digest, cause, together, until }
    }
}

impl Verdict {
    /// Returns the records that the next verdict needs. A workload that only waits for another needs none.
    pub fn records(&self) -> Vec<HeldRecord> {
        self.held.iter().filter(|held| held.is_approvable()).map(Held::record).collect()
    }

    /// Returns the approved removals of kinds that a member prunes only with an approval: paths in the
    /// folder, and the clusters concerned.
    pub fn prunable(&self) -> BTreeMap<String, BTreeSet<&str>> {
        let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (cluster, object) in self.approved.iter().flat_map(|approved| &approved.pairs) {
            if object.takes_more_along() {
                found.entry(path::of_object(object)).or_default().insert(cluster);
            }
        }
        found
    }
}
