//! The details of one publication. A publication never changes, so neither does its form.

use serde::{Deserialize, Serialize};

use super::Place;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicationDetails {
    pub sequence: u64,
    pub commit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub published: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub title: String,
    /// The message of its commit.
    pub message: String,
    /// The numbers of changed objects and clusters. `None` if they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesForm>,
    pub held: Vec<HeldForm>,
    pub approvals: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
    /// Causes and consequences, removals first. `None` if they were not traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sections: Option<Vec<SectionForm>>,
    /// Edits that changed no cluster.
    pub idle: Vec<CauseForm>,
}

/// The numbers of removed, changed and added objects, and of the clusters that have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesForm {
    pub removed: usize,
    pub changed: usize,
    pub added: usize,
    pub clusters: usize,
}

/// A held removal, with the line that approves it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldForm {
    pub placement: String,
    pub approval: String,
}

/// Changes from the same edits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SectionForm {
    pub causes: Vec<CauseForm>,
    /// How the causes relate, where it needs words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    pub consequences: Vec<ConsequenceForm>,
    /// Moves of replicas, in words.
    pub replicas: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseForm {
    pub words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
    /// The number of equal changes.
    pub changes: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsequenceForm {
    /// `leaves`, `changes` or `joins`.
    #[serde(rename = "move")]
    pub move_: String,
    pub held: bool,
    /// The clusters keep the objects, without an owner.
    pub orphaning: bool,
    pub places: Vec<PlacesForm>,
    pub reasons: Vec<ReasonCount>,
    /// Removed, changed and added objects.
    pub objects: [usize; 3],
    pub details: Vec<ObjectForm>,
}

/// Placements, and the clusters in which they change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacesForm {
    pub placements: Vec<String>,
    /// The first clusters by name, and the number of all.
    pub clusters: Vec<String>,
    pub count: usize,
}

/// A number of clusters, and their reason.
pub type ReasonCount = (usize, String);

/// The change of an object, equal in all places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectForm {
    /// `removed`, `changed` or `added`.
    pub change: String,
    pub name: String,
    pub fields: Vec<FieldForm>,
}

/// A field's path, and its value before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldForm {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
