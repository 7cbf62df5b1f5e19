//! Workloads: objects, and their differences between clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::key::Key;
use super::object::Object;
use super::overrides::Override;
use super::pointer::Pointer;
use super::rollout::Strategy;
use super::shared::Shared;
use crate::diag::Pos;

/// Objects that go together to the clusters of one decision: the decision with the same key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    pub key: Key,
    pub origin: Pos,
    pub templates: Vec<Template>,
    /// In the order they are applied. They are most of a workload, and few look at them.
    pub overrides: Shared<Vec<Override>>,
    /// The place for the number of replicas decided for a cluster, and the object that asks for it.
    pub replicas: Option<ReplicasAt>,
    /// Freezes the workload: every copy stays as last rendered, whatever the templates say.
    pub frozen: bool,
    pub strategy: Strategy,
}

impl Workload {
    /// Reports whether some override sets an API version, and with it perhaps another group.
    pub fn moves_group(&self) -> bool {
        self.overrides.iter().any(|one| one.api_version().is_some())
    }

    /// A workload without overrides, for all clusters at once.
    pub fn new(key: Key, origin: Pos, templates: Vec<Template>) -> Workload {
        Workload { key, origin, templates, ..Workload::default() }
    }
}

/// The field that holds an object's number of replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicasAt {
    pub path: Pointer,
    pub by: Key,
    pub origin: Pos,
}

/// An object before overrides.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pub object: Arc<Object>,
    /// Labels set after all overrides, so that none can remove them. Shared by templates, as the annotations are: most
    /// of them have the same.
    pub final_labels: Arc<BTreeMap<String, String>>,
    /// `berth.dev/` annotations for the syncer: take-over, retention and the like.
    pub sync_annotations: Arc<BTreeMap<String, String>>,
    /// The fields that the member's own object keeps.
    pub retained: Vec<Retained>,
}

/// A field that belongs to the member: what is there stays, unless an override or a decided number sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// A JSON pointer; `*` stands for every item of a list.
    pub path: String,
    /// In these clusters; `None` for all.
    pub clusters: Option<BTreeSet<String>>,
}
