//! Views of clusters for expressions: a named JSON value with its own methods.
//!
//! Here, expressions are plain text; the engine runs them. The dialect chooses the view.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value as Json;

use super::cluster::Cluster;

/// An expression over a cluster that must be true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expression {
    pub text: String,
    pub view: View,
}

/// A view of clusters. Its name identifies it: no two views share a name.
#[derive(Clone, Copy)]
pub struct View {
    /// The variable that holds the cluster in expressions.
    pub name: &'static str,
    /// Returns the cluster as expressions see it: equal for equal clusters.
    pub shown: fn(&Cluster) -> Json,
    /// Methods of the variable that take one text. They return a value; `None` is an error.
    pub methods: &'static [(&'static str, Method)],
}

pub type Method = fn(&Cluster, &str) -> Option<Json>;

impl PartialEq for View {
    fn eq(&self, other: &View) -> bool {
        self.name == other.name
    }
}

impl Eq for View {}

impl PartialOrd for View {
    fn partial_cmp(&self, other: &View) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for View {
    fn cmp(&self, other: &View) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
