//! Everything the source tree says, in the neutral model.

use std::collections::{BTreeMap, BTreeSet};

use super::approval::Approval;
use super::cluster::Cluster;
use super::key::Key;
use super::placement::Placement;
use super::placement_ref::PlacementRef;
use super::selector::Labels;
use super::shared::Shared;
use super::status::ClusterStatus;
use super::workload::Workload;

/// A fleet as its repository describes it.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    pub clusters: BTreeMap<String, Shared<Cluster>>,
    pub placements: BTreeMap<Key, Shared<Placement>>,
    pub workloads: BTreeMap<Key, Shared<Workload>>,
    /// The labels of the documents that describe workloads.
    pub labels: BTreeMap<Key, Labels>,
    /// `ClusterStatus` documents of the source tree.
    pub statuses: BTreeMap<String, ClusterStatus>,
    /// The removals that people approved.
    pub approvals: Vec<Approval>,
    pub doubt: Doubt,
    /// Kinds, each with its API group, whose names end in `List` and that are no lists.
    pub list_kinds: BTreeSet<(String, String)>,
}

impl Fleet {
    /// The placement a reference means.
    pub fn find(&self, wanted: &PlacementRef) -> Option<&Placement> {
        // Keys order by kind, namespace, name and only then by group.
        let first = Key::new("", &wanted.kind, &wanted.namespace, &wanted.name);
        let (key, placement) = self.placements.range(first..).next()?;
        let same =
            *key.kind == *wanted.kind && *key.namespace == *wanted.namespace && *key.name == *wanted.name;
        same.then_some(placement)
    }
}

/// Unreadable files, and the decisions that must keep their clusters until the files are mended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// An inventory file, or one of unknown content, is unreadable: every decision keeps what it has.
    pub everything: bool,
    /// Something is unreadable and nothing is known of what it was: no object anywhere goes for now.
    pub objects: bool,
    /// Files with an unreadable policy: decisions made from them keep what they have.
    pub files: BTreeSet<String>,
}
