//! A file as pieces of text, each with its objects, so that single objects can be rewritten.

use std::ops::Range;
use std::sync::Arc;

use berth_base::model::Key;
use berth_base::model::object::group_of;
use berth_base::source::SourceFile;
use berth_base::yaml::{self, Limits, Node, Value, list_kind};

/// A document of a file: its text, and its objects. Text that is not an object has none.
#[derive(Debug)]
pub(super) struct Piece {
    pub text: Range<usize>,
    pub objects: Vec<FileObject>,
}

/// An object of a file.
#[derive(Debug)]
pub(super) struct FileObject {
    pub key: Key,
    pub root: Arc<Node>,
}

/// Reads a file. `None` if a part of it is unreadable.
pub(super) fn read(file: &SourceFile) -> Option<Vec<Piece>> {
    let read = yaml::read(&file.bytes, &Limits::default());
    if read.faults.iter().any(|fault| fault.unreadable.is_some()) {
        return None;
    }
    let piece = |document: yaml::ReadDocument| {
        let mut objects = Vec::new();
        take(document.root, &mut objects);
        Piece { text: document.bytes, objects }
    };
    Some(read.documents.into_iter().map(piece).collect())
}

fn take(root: Node, objects: &mut Vec<FileObject>) {
    if list_kind::is_list(&root) {
        list_kind::items(root).into_iter().for_each(|item| take(item, objects));
        return;
    }
    let text = |node: Option<&Node>| node.and_then(Node::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text(root.get("apiVersion")), text(root.get("kind")));
    if matches!(root.value, Value::Map(_)) && !(api_version.is_empty() && kind.is_empty()) {
        let of_metadata = |name: &str| text(root.get("metadata").and_then(|metadata| metadata.get(name)));
        let key = Key::new(group_of(&api_version), &kind, &of_metadata("namespace"), &of_metadata("name"));
        objects.push(FileObject { key, root: root.into() });
    }
}
