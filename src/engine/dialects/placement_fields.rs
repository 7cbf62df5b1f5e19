//! The fields of a placement's document that select its clusters: `explain` tries edits of them.

use serde_json::Value as Json;

use berth_base::model::Cluster;
use berth_base::model::placement::NamedCluster;
use berth_base::yaml::node::Node;
use berth_base::yaml::{Scope, Value};

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
