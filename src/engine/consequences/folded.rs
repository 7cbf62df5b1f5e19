//! A plan folded for reading: by cause, then each change once with its workloads and clusters.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::field_changes::FieldChange;
use super::risks::Risk;
use crate::causes::How;
use crate::plan::{Change, Counts};
use berth_base::diag::Pos;
use berth_base::model::{Key, ObjectId};

/// A plan by its causes, those with removals first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoldedPlan {
    pub sections: Vec<Section>,
    /// Edits that change no cluster now.
    pub idle: Vec<Cause>,
}

/// The changes that come from the same edits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Empty if no cause is known.
    pub causes: Vec<Cause>,
    pub how: Option<How>,
    /// The indices of the causes among all changed inputs.
    pub inputs: BTreeSet<usize>,
    pub consequences: Vec<Consequence>,
    pub replicas: Vec<ReplicaMove>,
    pub risks: BTreeSet<Risk>,
}

/// Equal changes of inputs, with the places of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub words: String,
    pub changes: usize,
    pub places: Vec<Pos>,
}

/// Equal changes of workloads in clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Consequence {
    pub move_: Move,
    /// The gate holds the changes until an approval.
    pub is_held: bool,
    /// The clusters keep the removed objects, without an owner.
    pub is_orphaning: bool,
    /// The workloads, by the clusters in which they change.
    pub places: Vec<(Vec<Key>, Vec<String>)>,
    /// The reasons with their number of clusters, the most frequent first.
    pub reasons: Vec<(String, usize)>,
    /// The counts of changed copies.
    pub copies: Counts,
    /// Empty if workloads arrive or leave.
    pub objects: Arc<[ObjectDetail]>,
}

/// The kind of a workload's change in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Move {
    Leaves,
    Changes,
    Joins,
}

/// The change of an object, equal in all of the workloads and clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectDetail {
    pub change: Change,
    pub kind: Arc<str>,
    /// The object, if all changes are of the same one.
    pub object: Option<ObjectId>,
    /// `None` if the contents were not compared.
    pub fields: Option<Arc<[FieldChange]>>,
}

/// Replicas of a workload that move between clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaMove {
    pub key: Key,
    pub is_held: bool,
    pub before: i64,
    pub after: i64,
    /// The clusters, each with its number before and after.
    pub clusters: Vec<(String, Option<i64>, Option<i64>)>,
}

impl FoldedPlan {
    /// Removes the parts about other clusters: edits without an effect here, moved replicas, and the share of
    /// the fleet.
    pub fn narrow(&mut self, cluster: &str) {
        self.idle.clear();
        for section in &mut self.sections {
            section.replicas.iter_mut().for_each(|moved| moved.clusters.retain(|(name, ..)| name == cluster));
            section.replicas.retain(|moved| !moved.clusters.is_empty());
            section.risks.retain(|risk| !matches!(risk, Risk::Share { .. }));
        }
        self.sections.retain(|section| !section.is_empty());
    }
}

impl Section {
    pub(super) fn is_empty(&self) -> bool {
        self.consequences.is_empty() && self.replicas.is_empty()
    }

    /// Returns the clusters that the section's changes reach.
    pub fn clusters(&self) -> BTreeSet<&str> {
        let places = self.consequences.iter().flat_map(|one| &one.places);
        let replicas = self.replicas.iter().flat_map(|moved| moved.clusters.iter().map(|(name, ..)| name));
        places.flat_map(|(_, clusters)| clusters).chain(replicas).map(String::as_str).collect()
    }

    /// Returns the sort key: removals first, then the number of changes.
    pub(super) fn weight(&self) -> (usize, usize) {
        let removed = self.consequences.iter().map(|one| one.copies.removed).sum();
        let all = self.consequences.iter().map(|one| one.copies.changed + one.copies.added).sum();
        (removed, all)
    }
}
