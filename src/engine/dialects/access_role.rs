//! The view of access rules on a dialect's objects: the role of each object, and the objects inside a
//! document.

use berth_base::model::object::group_of;
use berth_base::yaml::{Mark, Node};

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
