//! Decisions, clusters and reports → the objects that other systems read in a hub cluster:
//! PlacementDecisions and ClusterProfiles. The inputs include the hub's current objects; the result is the
//! writes that correct them.
//!
//! - [`decisions`]: PlacementDecisions, of SIG Multicluster and of Open Cluster Management. [`slices`]: the
//!   clusters in each of a placement's objects, and the order in which these are written.
//! - [`profiles`]: ClusterProfiles and the label of their namespace. [`naming`]: names and labels, and the
//!   marks of berth's own objects. [`rights()`]: the rights that the writing account needs.
//!
//! berth neither changes nor deletes objects of other writers.

pub mod decisions;
mod naming;
pub mod profiles;
mod slices;

#[cfg(test)]
mod tests;

use crate::dialects::inventory::GROUP as SIG_GROUP;
use berth_base::model::{Cluster, ClusterStatus, Decision, Key, Map, Shared, WriteChain};
use decisions::{DecisionApi, OCM_GROUP};

/// The state that the hub shows.
#[derive(Clone, Debug, Default)]
pub struct HubContent {
    /// The number of the publication.
    pub sequence: u64,
    pub decisions: Map<Key, Decision>,
    pub clusters: Map<String, Shared<Cluster>>,
    /// The members' statuses, with the silences that the hub knows.
    pub statuses: Map<String, Shared<ClusterStatus>>,
}

/// The places and marks of berth's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubPlaces {
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

/// A right to act on objects of a kind, in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    pub group: &'static str,
    /// The kind's plural, with a subresource if the right is for that: `clusterprofiles/status`.
    pub resource: &'static str,
    pub verbs: &'static [&'static str],
    /// The single object that the right is for.
    pub name: Option<String>,
}

const WRITE: &[&str] = &["list", "create", "update", "delete"];

/// Returns the rights for decisions in these forms, and for ClusterProfiles if berth writes them in this
/// namespace.
pub fn rights(forms: &[DecisionApi], profiles: Option<&str>) -> Vec<Right> {
    let right = |group, resource, verbs| Right { group, resource, verbs, name: None };
    let mut rights = Vec::new();
    if forms.contains(&DecisionApi::Sig) {
        rights.push(right(SIG_GROUP, "placementdecisions", WRITE));
    }
    if forms.contains(&DecisionApi::Ocm) {
        rights.push(right(OCM_GROUP, "placementdecisions", WRITE));
        rights.push(right(OCM_GROUP, "placementdecisions/status", &["update"]));
        rights.push(right(OCM_GROUP, "placements", &["list"]));
    }
    if let Some(namespace) = profiles {
        rights.push(right(SIG_GROUP, "clusterprofiles", WRITE));
        rights.push(right(SIG_GROUP, "clusterprofiles/status", &["update"]));
        rights
            .push(Right { name: Some(namespace.to_owned()), ..right("", "namespaces", &["list", "update"]) });
        // A right to create cannot name the object.
        rights.push(right("", "namespaces", &["create"]));
    } else if forms.contains(&DecisionApi::Sig) {
        // Needed to warn of decisions for clusters without a profile.
        rights.push(right(SIG_GROUP, "clusterprofiles", &["list"]));
    }
    rights
}
