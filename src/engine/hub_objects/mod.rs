//! Decisions, clusters and reports → the objects that other systems read in a hub cluster: PlacementDecisions
//! and ClusterProfiles. The inputs include the hub's current objects; the result is the writes that correct
//! them.
//!
//! - [`decisions`]: PlacementDecisions, of SIG Multicluster and of Open Cluster Management. [`slices`]: the
//!   clusters in each of a placement's objects, and the order in which these are written.
//! - [`profiles`]: ClusterProfiles and the label of their namespace. [`naming`]: names and labels, and the
//!   marks of berth's own objects. [`rights`]: the rights that the writing account needs.
//!
//! berth neither changes nor deletes objects of other writers.

pub mod decisions;
mod naming;
pub mod profiles;
pub mod rights;
mod slices;

#[cfg(test)]
mod tests;

use berth_base::model::{Cluster, ClusterStatus, Decision, Key, Map, Shared, WriteChain};

/// The state that the hub shows.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The number of the publication.
    pub sequence: u64,
    pub decisions: Map<Key, Decision>,
    pub clusters: Map<String, Shared<Cluster>>,
    /// The members' statuses, with the silences that the hub knows.
    pub statuses: Map<String, Shared<ClusterStatus>>,
}

/// The places and marks of berth's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The fleet in the objects' labels, so that several fleets can share a hub.
    pub fleet: String,
    /// The namespace of all decisions. `None`: the namespace of each placement.
    pub decisions: Option<String>,
    /// The namespace of ClusterProfiles, and of decisions for placements without a namespace.
    pub profiles: String,
    /// The cluster set in the label of the profiles' namespace.
    pub cluster_set: Option<String>,
}

/// The writes that correct a hub. Chains do not depend on each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    pub chains: Vec<WriteChain>,
    /// Notes on the parts that are left out, with the reasons.
    pub notes: Vec<String>,
}

impl Planned {
    fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    fn chain(&mut self, writes: WriteChain) {
        if !writes.is_empty() {
            self.chains.push(writes);
        }
    }
}
