//! The Kubernetes objects in a file, each with its document and its path in a List.

use std::ops::Range;

use super::path::Step;
use crate::yaml::{Fault, Limits, Mark, Node, list_kind, read, split};

/// A file's objects.
#[derive(Debug, Default)]
pub struct Objects {
    pub found: Vec<Found>,
    /// The number of documents without apiVersion or kind.
    pub passed_over: usize,
    pub faults: Vec<Fault>,
    /// The number of documents read.
    pub documents: usize,
}

/// An object of a file.
#[derive(Clone, Debug)]
pub struct Found {
    /// The index of its document among the readable documents of the file.
    pub document: usize,
    /// The lines of that document, without the end.
    pub lines: Range<u32>,
    /// The path to the object from the document's root: empty, or `items[…]`.
    pub path: Vec<Step>,
    pub api_version: String,
    pub kind: String,
    /// Empty if missing.
    pub namespace: String,
    pub name: String,
    pub at: Mark,
    pub node: Node,
}

impl Found {
    /// Returns the API group; empty for Kubernetes' core.
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the path to one of its fields from the document's root.
    pub fn path_to(&self, path: &[Step]) -> Vec<Step> {
        self.path.iter().chain(path).cloned().collect()
    }
}

/// Reads a file's objects, including the items of Lists.
pub fn objects(bytes: &[u8]) -> Objects {
    let read = read(bytes, &Limits::default());
    let mut objects = Objects { faults: read.faults, documents: read.documents.len(), ..Objects::default() };
    for (document, read) in read.documents.into_iter().enumerate() {
        let n_lines = split::last_line(bytes.get(read.bytes.clone()).unwrap_or_default());
        let lines = read.line..read.line.saturating_add(n_lines);
        take(&mut objects, (document, &lines), Vec::new(), read.root);
    }
    objects
}

fn take(objects: &mut Objects, document: (usize, &Range<u32>), path: Vec<Step>, node: Node) {
    let text = |node: &Node, key: &str| node.get(key).and_then(Node::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&node, "apiVersion"), text(&node, "kind"));
    if api_version.is_empty() || kind.is_empty() {
        objects.passed_over += 1;
        return;
    }
    if list_kind::is_list(&node) {
        for (index, item) in list_kind::items(node).into_iter().enumerate() {
            let path = path.iter().cloned().chain([Step::from("items"), Step::Index(index)]).collect();
            take(objects, document, path, item);
        }
        return;
    }
    let metadata = node.get("metadata");
    let of = |key: &str| metadata.map(|metadata| text(metadata, key)).unwrap_or_default();
    let (namespace, name) = (of("namespace"), of("name"));
    let (at, (document, lines)) = (node.at, document);
    let lines = lines.clone();
    objects.found.push(Found { document, lines, path, api_version, kind, namespace, name, at, node });
}
