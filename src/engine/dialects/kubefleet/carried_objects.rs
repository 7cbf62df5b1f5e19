//! The objects inside a document, for access rules.

use super::kinds::{Role, role};
use crate::dialects::{CarriedObject, Document};
use berth_base::yaml::node::Value;
use berth_base::yaml::{self, Limits, Node};

/// Returns the objects in an envelope, including an envelope of the old form.
pub fn carried_objects(document: &Document) -> Vec<CarriedObject> {
    let (key, root) = (&document.key, &document.open());
    let mut found = Vec::new();
    if role(&key.group, &key.kind) == Some(Role::Envelope) {
        found.extend(data(root).filter_map(|node| CarriedObject::of(node, node.at)));
    } else if *key.kind == *"ConfigMap" && key.group.is_empty() && is_marked(root) {
        for node in data(root) {
            let read = yaml::read(node.as_str().unwrap_or_default().as_bytes(), &Limits::of_a_part());
            let objects = read.documents.iter();
            found.extend(objects.filter_map(|document| CarriedObject::of(&document.root, node.at)));
        }
    }
    found
}

fn is_marked(root: &Node) -> bool {
    let mark = ["metadata", "annotations", "kubernetes-fleet.io/envelope-configmap"];
    mark.iter().try_fold(root, |node, part| node.get(part)).and_then(Node::as_str) == Some("true")
}

fn data(root: &Node) -> impl Iterator<Item = &Node> {
    let entries = match root.get("data").map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().map(|entry| &entry.value)
}
