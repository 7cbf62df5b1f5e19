//! What is placed: objects, and what is different where.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::key::Key;
use super::object::Object;
use super::overrides::Override;
use crate::diag::Pos;

/// Objects that go together to the clusters of one decision: the decision with the same key.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub key: Key,
    pub origin: Pos,
    pub templates: Vec<Template>,
    /// In the order they are applied.
    pub overrides: Vec<Override>,
}

/// One object before overrides.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pub object: Arc<Object>,
    /// Labels set after all overrides, so that none can remove them.
    pub final_labels: BTreeMap<String, String>,
    /// `berth.dev/` annotations for the syncer: take-over, retention and the like.
    pub sync_annotations: BTreeMap<String, String>,
}
