//! A source tree without some of its edits: a file is taken as pieces of text, each with its objects, so
//! that single objects can be rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::edits::{ChangedDocument, EditedFile, Edits, Spot};
use crate::load::append;
use berth_base::diag::Diagnostic;
use berth_base::model::Key;
use berth_base::model::object::group_of;
use berth_base::source::{SourceFile, SourceTree};
use berth_base::yaml::{self, Limits, Node, Value, list_kind};

impl Edits {
    /// Returns the new tree without some of the edits. Files that these do not affect stay equal.
    pub fn without(&self, after: &SourceTree, taken_back: &BTreeSet<usize>) -> SourceTree {
        let concerned: BTreeSet<&Arc<str>> =
            taken_back.iter().filter_map(|number| self.concerned.get(*number)).flatten().collect();
        let (files, rules_from) = (after.files.clone(), after.rules_from.clone());
        let rendered = after.rendered.clone();
        let mut tree = SourceTree { files, rules_from, rendered, ..SourceTree::default() };
        let stays = |one: &&Diagnostic| one.at.as_ref().is_none_or(|at| !concerned.contains(&at.file));
        tree.found.extend(after.found.iter().filter(stays).cloned());
        let by_file = self.by_file();
        for path in concerned {
            let Some(file) = self.files.get(path) else { continue };
            let is_taken = file.whole.is_some_and(|number| taken_back.contains(&number));
            tree.found.extend(file.found[usize::from(!is_taken)].iter().cloned());
            let made = match file.whole {
                Some(_) if is_taken => file.before.clone(),
                Some(_) => file.after.clone(),
                None => {
                    let here = by_file.get(path).map(Vec::as_slice).unwrap_or_default();
                    written(path, file, here, taken_back)
                }
            };
            tree.files.take(path);
            tree.files.extend(made);
        }
        tree
    }

    /// Returns the changed documents of each file, old and new.
    fn by_file(&self) -> BTreeMap<&Arc<str>, Vec<&ChangedDocument>> {
        let mut by_file: BTreeMap<&Arc<str>, Vec<&ChangedDocument>> = BTreeMap::new();
        for document in &self.changed {
            let files = document.before.iter().chain(&document.after).map(|spot| &spot.file);
            for file in files.collect::<BTreeSet<_>>() {
                by_file.entry(file).or_default().push(document);
            }
        }
        by_file
    }
}

/// Writes a file without some edits of its documents.
fn written(
    path: &Arc<str>,
    file: &EditedFile,
    documents: &[&ChangedDocument],
    taken_back: &BTreeSet<usize>,
) -> Option<SourceFile> {
    let is_here = |spot: &Option<Spot>| spot.as_ref().is_some_and(|spot| spot.file == *path);
    let mut new: BTreeMap<(usize, usize), &ChangedDocument> = BTreeMap::new();
    for document in documents.iter().filter(|document| is_here(&document.after)) {
        new.extend(document.after.iter().map(|spot| ((spot.piece, spot.object), *document)));
    }
    let text = file.after.as_ref().map(|file| &*file.bytes).unwrap_or_default();
    let mut bytes = Vec::new();
    for (place, piece) in file.pieces.iter().enumerate() {
        let changed = |object: usize| new.get(&(place, object)).copied();
        if !(0..piece.objects.len()).filter_map(changed).any(|one| one.is_concerned(taken_back)) {
            append(&mut bytes, text.get(piece.text.clone()).unwrap_or_default());
            continue;
        }
        for (number, object) in piece.objects.iter().enumerate() {
            match changed(number) {
                Some(document) => append_document(&mut bytes, document.left_in(path, taken_back).as_ref()),
                None => append_document(&mut bytes, Some(&object.root)),
            }
        }
    }
    let back = |document: &&&ChangedDocument| is_here(&document.before) && !is_here(&document.after);
    for document in documents.iter().filter(back) {
        append_document(&mut bytes, document.left_in(path, taken_back).as_ref());
    }
    (file.after.is_some() || !bytes.is_empty()).then(|| SourceFile::new(path.clone(), bytes))
}

/// Writes a document as JSON, which is also YAML, with its fields in their order.
fn append_document(bytes: &mut Vec<u8>, document: Option<&Node>) {
    if let Some(document) = document {
        let mut text = String::new();
        write(document, &mut text);
        append(bytes, text.as_bytes());
    }
}

fn write(node: &Node, text: &mut String) {
    let scalar = |value: serde_json::Value| value.to_string();
    match &node.value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(&value.to_string()),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(value) => text.push_str(&scalar(value.as_str().into())),
        Value::List(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                text.push_str(if place > 0 { ", " } else { "" });
                write(item, text);
            }
            text.push(']');
        }
        Value::Map(entries) => {
            text.push('{');
            for (place, entry) in entries.iter().enumerate() {
                text.push_str(if place > 0 { ", " } else { "" });
                text.push_str(&scalar(entry.key.as_str().into()));
                text.push_str(": ");
                write(&entry.value, text);
            }
            text.push('}');
        }
    }
}

impl ChangedDocument {
    /// Reports whether one of the edits affects this document.
    fn is_concerned(&self, taken_back: &BTreeSet<usize>) -> bool {
        self.whole.is_some_and(|number| taken_back.contains(&number))
            || self.fields.as_ref().is_some_and(|fields| fields.has_any(taken_back))
    }

    /// Returns the document without some edits, if it is in this file then.
    fn left_in(&self, path: &Arc<str>, taken_back: &BTreeSet<usize>) -> Option<Node> {
        let is_back = self.whole.is_some_and(|number| taken_back.contains(&number));
        // Taking the whole edit back restores the document's earlier file and content.
        let spot = if is_back { &self.before } else { &self.after };
        let spot = spot.as_ref().filter(|spot| spot.file == *path)?;
        match &self.fields {
            Some(fields) => fields.without(taken_back),
            None => Some((*spot.root).clone()),
        }
    }
}

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
pub(super) fn read_pieces(file: &SourceFile) -> Option<Vec<Piece>> {
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
