//! Changes one value of a YAML file and leaves every other byte unchanged: people's comments, order and
//! formatting stay.
//!
//! - [`set`], [`insert`], [`remove`], [`remove_with_holder`], [`undo_insert`]: one value at a path, in one
//!   document of a file. [`remove_document`]: a whole document. [`objects`]: the objects with their places.
//! - Every edit is verified: its result is read again, and must differ from the original in exactly the
//!   requested change. Otherwise the edit returns an error and no text.

mod change;
mod place;
mod removal;
mod verify;

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::Value as Json;

use crate::yaml::{Fault, Limits, Mark, Node, list_kind, read, split};
use verify::{Cut, Original, apply_insert, apply_remove, apply_set};

pub use place::{Step, keys, show};

/// Sets the value at a path; missing mappings on the path are created, and an index past the end appends.
pub fn set(text: &str, document: usize, path: &[Step], value: &Json) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    let expected = apply_set(source.json(), path, value)?;
    let cut = change::set(&source, path, value);
    source.placed(path, cut.and_then(|cut| source.verified(cut, Some(expected))))
}

/// Adds a value under a new key, or before the item with this index (past the end: as the last item).
pub fn insert(text: &str, document: usize, path: &[Step], value: &Json) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    let expected = apply_insert(source.json(), path, value)?;
    let cut = change::insert(&source, path, value);
    source.placed(path, cut.and_then(|cut| source.verified(cut, Some(expected))))
}

/// Removes a key or an item. Removing the last one leaves an empty mapping or list.
pub fn remove(text: &str, document: usize, path: &[Step]) -> Result<String, EditError> {
    take_out(&Original::read(text, document)?, path)
}

/// Removes like [`remove`], including the parent of the key if it then contains nothing, not even a comment.
pub fn remove_with_holder(text: &str, document: usize, path: &[Step]) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    match path.split_last() {
        Some((_, holder)) if removal::is_alone(&source, path) => take_out(&source, holder),
        _ => take_out(&source, path),
    }
}

/// Removes like [`remove`], including the value's parent if an insertion would have created it: the parent
/// contains nothing else, not even a comment, and has no brackets that a person wrote.
pub fn undo_insert(text: &str, document: usize, path: &[Step]) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    match path.split_last() {
        Some((_, holder)) if removal::is_alone(&source, path) && !removal::is_bracketed(&source, holder) => {
            take_out(&source, holder)
        }
        _ => take_out(&source, path),
    }
}

fn take_out(source: &Original<'_>, path: &[Step]) -> Result<String, EditError> {
    let expected = apply_remove(source.json(), path)?;
    let cut = removal::remove(source, path);
    source.placed(path, cut.and_then(|cut| source.verified(cut, Some(expected))))
}

/// Removes a whole document with its comments.
pub fn remove_document(text: &str, document: usize) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    let bytes = source.document().bytes.clone();
    source.placed(&[], source.verified(Cut { bytes, with: String::new() }, None))
}

/// The reason for refusing an edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the file has no document {0}")]
    NoSuchDocument(usize),
    #[error("there is no `{0}`")]
    Missing(String),
    #[error("`{0}` already exists")]
    AlreadyThere(String),
    #[error("`{path}` is {what} and cannot hold a field")]
    NotACollection { path: String, what: &'static str },
    #[error("{what} is written in a way that cannot be changed in place")]
    NotInPlace { what: String, line: u32 },
}

impl EditError {
    /// Returns an error without a path, for steps that do not know the path. The caller adds it.
    fn not_in_place() -> EditError {
        EditError::NotInPlace { what: String::new(), line: 0 }
    }

    /// Returns the line that cannot be changed.
    pub fn line(&self) -> Option<u32> {
        match self {
            EditError::NotInPlace { line, .. } => Some(*line).filter(|line| *line > 0),
            _ => None,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            EditError::NotInPlace { .. } => {
                Some("edit the file by hand: berth does not change aliases, merge keys or `? key`")
            }
            _ => None,
        }
    }
}

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
