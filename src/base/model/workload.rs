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

/// Objects that are placed together, in the clusters of the decision with the same key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    pub key: Key,
    pub origin: Pos,
    pub templates: Vec<Template>,
    /// In the order of their application. Shared, because they are the largest part of a workload and rarely
    /// read.
    pub overrides: Shared<Vec<Override>>,
    /// The field for the decided number of replicas, and the object that requires it.
    pub replicas: Option<ReplicasAt>,
    /// The workload is frozen: every copy stays as last rendered, whatever the templates contain.
    pub frozen: bool,
    pub strategy: Strategy,
}

impl Workload {
    /// Reports whether some override sets an API version, which may also change the group.
    pub fn moves_group(&self) -> bool {
        self.overrides.iter().any(|one| one.api_version().is_some())
    }

    /// Returns a workload without overrides, for all clusters at once.
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
    /// Labels that are set after all overrides, so that none can remove them. Templates share them, like the
    /// annotations, because most are equal.
    pub final_labels: Arc<BTreeMap<String, String>>,
    /// `berth.dev/` annotations for the syncer: take-over, retention and similar ones.
    pub sync_annotations: Arc<BTreeMap<String, String>>,
    /// The fields that the member's own object keeps.
    pub retained: Vec<Retained>,
}

/// A field that belongs to the member: its value stays, unless an override or a decided number sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// A JSON pointer; `*` matches every item of a list.
    pub path: String,
    /// In these clusters; `None` for all.
    pub clusters: Option<BTreeSet<String>>,
}
