//! The objects inside a document that carries others. They are placed like objects in documents of their
//! own.

use crate::dialects::Document;
use berth_base::model::object::group_of;
use berth_base::yaml::node::Value;
use berth_base::yaml::{self, Limits, Mark, Node};

/// An object inside another.
pub(super) struct Inner {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub at: Mark,
}

/// Reports whether a document only wraps other objects.
pub(super) fn is_envelope(document: &Document) -> bool {
    let key = &document.key;
    ["ResourceEnvelope", "ClusterResourceEnvelope"].contains(&&*key.kind)
        && key.group.ends_with("kubernetes-fleet.io")
}

/// The objects in manifests of a work, in an envelope, and in an envelope of the old form.
pub(super) fn objects(document: &Document) -> Vec<Inner> {
    let (key, root) = (&document.key, &document.root);
    let mut found = Vec::new();
    if *key.kind == *"ManifestWorkReplicaSet" {
        let workload = ["spec", "manifestWorkTemplate", "workload", "manifests"];
        let manifests = workload.iter().try_fold(&**root, |node, part| node.get(part));
        if let Some(Value::List(items)) = manifests.map(|node| &node.value) {
            found.extend(items.iter().filter_map(|item| object(item, item.at)));
        }
    } else if is_envelope(document) {
        found.extend(data(root).filter_map(|node| object(node, node.at)));
    } else if *key.kind == *"ConfigMap" && key.group.is_empty() && is_marked(root) {
        for node in data(root) {
            let read = yaml::read(node.as_str().unwrap_or_default().as_bytes(), &Limits::of_a_part());
            found.extend(read.documents.iter().filter_map(|document| object(&document.root, node.at)));
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

fn object(node: &Node, at: Mark) -> Option<Inner> {
    let text = |node: Option<&Node>| node.and_then(Node::as_str).map(str::to_owned);
    let metadata = node.get("metadata")?;
    Some(Inner {
        group: group_of(node.get("apiVersion")?.as_str()?).to_owned(),
        kind: text(node.get("kind"))?,
        namespace: text(metadata.get("namespace")).unwrap_or_default(),
        name: text(metadata.get("name"))?,
        at,
    })
}
