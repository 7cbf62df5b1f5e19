//! A plan folded for reading: by cause, then equal changes once with the workloads and clusters they are for.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::field_changes::FieldChange;
use super::risks::Risk;
use crate::causes::How;
use crate::plan::{Change, Counts};
use berth_base::diag::Pos;
use berth_base::model::{Key, ObjectId};

/// A plan by its causes: those with removals first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoldedPlan {
    pub sections: Vec<Section>,
    /// Edits that change no cluster now.
    pub idle: Vec<Cause>,
}

/// The changes that come from the same edits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Empty where no cause is known.
    pub causes: Vec<Cause>,
    pub how: Option<How>,
    /// The indices of the causes among all changes of inputs.
    pub inputs: BTreeSet<usize>,
    pub consequences: Vec<Consequence>,
    pub replicas: Vec<ReplicaMove>,
    pub risks: BTreeSet<Risk>,
}

/// Equal changes of inputs, with every place that has one.
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
    /// The changes wait for an approval.
    pub is_held: bool,
    /// Clusters keep the objects that go, and nobody owns them.
    pub is_orphaning: bool,
    /// The workloads, by the clusters they change in.
    pub places: Vec<(Vec<Key>, Vec<String>)>,
    /// The reasons with their number of clusters, the most frequent first.
    pub reasons: Vec<(String, usize)>,
    /// Copies of objects.
    pub copies: Counts,
    /// Empty where workloads come or go.
    pub objects: Arc<[ObjectDetail]>,
}

/// The part of a workload's life in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Move {
    Leaves,
    Changes,
    Joins,
}

/// The change of an object, the same in each of the workloads and clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectDetail {
    pub change: Change,
    pub kind: Arc<str>,
    /// The object, where all changes are of one.
    pub object: Option<ObjectId>,
    /// `None` where the contents were not compared.
    pub fields: Option<Arc<[FieldChange]>>,
}

/// Replicas of a workload that move between clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaMove {
    pub key: Key,
    pub is_held: bool,
    pub before: i64,
    pub after: i64,
    /// Clusters with the number before and after.
    pub clusters: Vec<(String, Option<i64>, Option<i64>)>,
}

impl FoldedPlan {
    /// Leaves out what is told of other clusters: edits without an effect here, their replicas, and the share of the
    /// fleet.
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

    /// The clusters that the section's changes reach.
    pub fn clusters(&self) -> BTreeSet<&str> {
        let places = self.consequences.iter().flat_map(|one| &one.places);
        let replicas = self.replicas.iter().flat_map(|moved| moved.clusters.iter().map(|(name, ..)| name));
        places.flat_map(|(_, clusters)| clusters).chain(replicas).map(String::as_str).collect()
    }

    /// Orders by removals first, then by the number of changes.
    pub(super) fn weight(&self) -> (usize, usize) {
        let removed = self.consequences.iter().map(|one| one.copies.removed).sum();
        let all = self.consequences.iter().map(|one| one.copies.changed + one.copies.added).sum();
        (removed, all)
    }
}
