//! The description of a dialect's kinds.
//!
//! It has the parts of a JSON Schema beside the reader; the role of each object for access rules, and the objects
//! inside a document; the bearing of documents on each other, which determines the documents that are read again
//! when one of them changes; and the fields that select a placement's clusters, which `explain` edits.

use serde_json::Value as Json;

use berth_base::model::Cluster;
use berth_base::model::object::group_of;
use berth_base::model::placement::NamedCluster;
use berth_base::yaml::{Mark, Node, Scope, Value};

/// A kind that berth reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadKind {
    pub group: &'static str,
    pub kind: &'static str,
    /// The versions whose fields the reader knows, the preferred one first.
    pub versions: &'static [&'static str],
    /// Its objects are in a namespace.
    pub namespaced: bool,
    /// The name of a sample: some kinds are read under a single name.
    pub sample: &'static str,
}

impl ReadKind {
    /// Returns a kind whose objects may have any name.
    pub const fn new(
        group: &'static str,
        kind: &'static str,
        versions: &'static [&'static str],
        namespaced: bool,
    ) -> ReadKind {
        ReadKind { group, kind, versions, namespaced, sample: "sample" }
    }
}

/// The role of an object, which determines the rights that its folder needs. Clusters follow the rules of
/// clusters instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRole<'k> {
    /// Needs the right to its own kind.
    Plain,
    /// Places other objects, whose kinds are checked when they are known.
    Policy,
    /// Places objects of other files, whose kinds are checked in those files.
    Selector,
    /// Wraps an object of this kind with the same namespace and name.
    Wraps(&'k str),
    /// Changes how every other object is read.
    FleetWide,
    /// Defines a cluster set.
    ClusterSet,
    /// Binds the cluster set of its name to its namespace.
    SetBinding,
}

/// An object inside a document, placed like an object in its own document.
#[derive(Debug)]
pub struct CarriedObject {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub at: Mark,
}

impl CarriedObject {
    /// Reads a node as an object; `None` if it is not one.
    pub fn of(node: &Node, at: Mark) -> Option<CarriedObject> {
        let text = |node: Option<&Node>| node.and_then(Node::as_str).map(str::to_owned);
        let metadata = node.get("metadata")?;
        Some(CarriedObject {
            group: group_of(node.get("apiVersion")?.as_str()?).to_owned(),
            kind: text(node.get("kind"))?,
            namespace: text(metadata.get("namespace")).unwrap_or_default(),
            name: text(metadata.get("name"))?,
            at,
        })
    }
}

/// The bearing of a document on the reading of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// No other document is read against it; it is itself read against the context at most.
    Alone,
    /// Other documents are read against it.
    Context,
    /// It is read together with other documents.
    Together,
}

/// The fields of one kind of placement, each by its path. Missing fields are empty.
#[derive(Debug)]
pub struct PlacementFields {
    /// The number of clusters.
    pub count: &'static [&'static str],
    /// The list of clusters' names.
    pub names: &'static [&'static str],
    /// The key of the name in each item of the list; `None` if the item itself is the name.
    pub name_key: Option<&'static str>,
    pub tolerations: &'static [&'static str],
    pub sets: Option<SetFields>,
}

impl PlacementFields {
    /// Returns the clusters that a placement's document names. Other values are skipped: the reader reports
    /// them.
    pub(super) fn named(&self, scope: &Scope, root: &Node) -> Vec<NamedCluster> {
        let Some(Value::List(items)) =
            self.names.iter().try_fold(root, |node, key| node.get(key)).map(|node| &node.value)
        else {
            return Vec::new();
        };
        let name = |item| match self.name_key {
            Some(key) => Node::get(item, key),
            None => Some(item),
        };
        let named =
            |node: &Node| Some(NamedCluster { name: node.as_str()?.to_owned(), at: scope.pos(node.at) });
        items.iter().filter_map(|item| named(name(item)?)).collect()
    }
}

/// The cluster sets of a placement.
#[derive(Debug)]
pub struct SetFields {
    /// The list of sets to pick from.
    pub list: &'static [&'static str],
    /// Returns the set that a cluster is in.
    pub of: fn(&Cluster) -> String,
    /// Makes the document that lets the placements of a namespace use a set.
    pub binding: fn(namespace: &str, set: &str) -> Json,
}
