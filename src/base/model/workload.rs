//! Workloads: objects, and the overrides by which one cluster's copy of an object differs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::cluster::Cluster;
use super::key::Key;
use super::object::{Object, ObjectId};
use super::pointer::Pointer;
use super::rollout::Strategy;
use super::selector::{Selector, Term};
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

/// An override for some clusters and some of a workload's objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The object that contains the override, for messages and for `explain`. Shared by all of its overrides.
    pub by: Arc<Key>,
    pub origin: Pos,
    pub clusters: Applies,
    /// The workload's objects that the override changes; `None` means all of them.
    pub objects: Option<Arc<[ObjectId]>>,
    pub action: Action,
}

impl Override {
    /// Reports whether the override changes this object.
    pub fn concerns(&self, id: &ObjectId) -> bool {
        self.objects.as_ref().is_none_or(|objects| objects.contains(id))
    }

    /// Returns the API version that the override sets on its objects, which may also change the API group.
    pub fn api_version(&self) -> Option<&str> {
        let Action::Patch(operations) = &self.action else { return None };
        let sets = |operation: &&Operation| {
            operation.path.parts() == ["apiVersion"] && matches!(operation.verb, Verb::Add | Verb::Replace)
        };
        operations.iter().rev().find(sets)?.value.as_ref()?.as_str()
    }
}

/// The clusters of an override.
#[derive(Clone, Debug, PartialEq)]
pub enum Applies {
    To(String),
    /// Clusters that match one of these terms.
    AnyOf(Vec<Term>),
    /// Clusters for which the alternative with this index is the first that matches. An index behind the last one
    /// means the clusters that match none.
    First(usize, Arc<[Alternative]>),
}

/// Clusters by their names and labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alternative {
    pub clusters: BTreeSet<String>,
    pub labels: Option<Selector>,
}

impl Applies {
    /// Reports whether the clusters include this one; `known` is its description in the fleet.
    pub fn include(&self, name: &str, known: Option<&Cluster>) -> bool {
        match self {
            Applies::To(one) => one == name,
            Applies::AnyOf(terms) => known.is_some_and(|known| terms.iter().any(|term| known.meets(term))),
            Applies::First(index, alternatives) => {
                let first = alternatives.iter().position(|one| one.includes(name, known));
                first.unwrap_or(alternatives.len()) == *index
            }
        }
    }
}

impl Alternative {
    pub fn includes(&self, name: &str, known: Option<&Cluster>) -> bool {
        let matches = |labels: &Selector| known.is_some_and(|known| labels.matches(&known.labels));
        self.clusters.contains(name) || self.labels.as_ref().is_some_and(matches)
    }
}

/// The effect of an override on the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// An RFC 6902 patch, all or nothing.
    Patch(Arc<[Operation]>),
    /// The cluster gets no copy of the object.
    Delete,
}

/// An operation of a patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    pub verb: Verb,
    pub path: Pointer,
    /// For `move` and `copy`.
    pub from: Option<Pointer>,
    /// For `add`, `replace` and `test`; `Some(null)` is a null.
    pub value: Option<Json>,
    /// Lets `replace` set a missing key with a warning, instead of failing.
    pub replace_may_add: bool,
    /// A negative list index counts from the end: `-1` is the last item, and `add` at `-1` appends.
    pub from_the_end: bool,
    /// Replaces `${...}` in the value by the cluster's name or labels.
    pub variables: bool,
    pub at: Pos,
}

/// The operations of RFC 6902.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

impl Verb {
    pub const ALL: [(&'static str, Verb); 6] = [
        ("add", Verb::Add),
        ("remove", Verb::Remove),
        ("replace", Verb::Replace),
        ("move", Verb::Move),
        ("copy", Verb::Copy),
        ("test", Verb::Test),
    ];

    pub fn word(self) -> &'static str {
        Verb::ALL.iter().find(|(_, verb)| *verb == self).map_or("", |(word, _)| word)
    }
}
