//! Decisions, clusters and reports → the objects that other systems read in a hub cluster: PlacementDecisions and
//! ClusterProfiles. The objects that the hub has are an input, the writes that make them right are the result.
//!
//! - [`decisions`]: PlacementDecisions, of SIG Multicluster and of Open Cluster Management. [`slices`]: which of a
//!   placement's objects names which cluster, and in which order they are written.
//! - [`profiles`]: ClusterProfiles and the label of their namespace. [`naming`]: names and labels, and which objects
//!   are berth's own. [`rights`]: what the account that writes must be allowed.
//!
//! An object of somebody else is neither changed nor deleted.

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

/// The places and marks of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The fleet that the objects are labelled with, so that several fleets can share a hub.
    pub fleet: String,
    /// The namespace of all decisions. `None`: the namespace of each placement.
    pub decisions: Option<String>,
    /// The namespace of ClusterProfiles, and of decisions for placements without a namespace.
    pub profiles: String,
    /// The cluster set that the profiles' namespace is labelled with.
    pub cluster_set: Option<String>,
}

/// The writes that make a hub right. Chains do not depend on each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    pub chains: Vec<WriteChain>,
    /// Notes on what is left out, and why.
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
