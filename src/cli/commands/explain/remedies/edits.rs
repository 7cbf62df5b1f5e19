//! Edits of single values in a source tree, each with its place and description.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::Shown;
use crate::editing::mark::{Change, What, apply};
use berth_base::diag::Pos;
use berth_base::edit::{Found, Step, objects};
use berth_base::model::Key;
use berth_base::source::{SourceFile, SourceTree};
use berth_base::yaml::{Node, Value};

/// An edit of one file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileEdit {
    pub shown: Shown,
    pub act: Act,
}

/// The change that an edit makes to a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// Changes one value of an object.
    Change { object: Key, change: Change },
    /// Adds a new file.
    Add { text: String },
}

/// The place of an object: its file in the tree.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub file: Arc<str>,
    pub found: Found,
}

impl Place {
    /// Returns the value of a field.
    pub fn get(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(&self.found.node, child)
    }

    /// Makes an edit of a field. Its line is the field's or, if the field is missing, that of the object around it.
    pub fn edit(&self, path: Vec<Step>, what: What, words: String) -> FileEdit {
        let mut node = &self.found.node;
        for step in &path {
            let Some(next) = child(node, step) else { break };
            node = next;
        }
        let at = Pos::new(self.file.clone(), node.at.line, node.at.column);
        let act = Act::Change { object: key_of(&self.found), change: Change { path, what } };
        FileEdit { shown: Shown { at, words }, act }
    }

    /// Makes an edit that appends to a list, which is created if it is missing.
    pub fn append(&self, path: &[Step], item: Json, words: String) -> FileEdit {
        match self.get(path).map(|node| &node.value) {
            Some(Value::List(items)) => {
                let end = path.iter().cloned().chain([Step::from(items.len())]).collect();
                self.edit(end, What::Append(item), words)
            }
            _ => self.edit(path.to_vec(), What::Set(Json::Array(vec![item])), words),
        }
    }
}

fn child<'n>(node: &'n Node, step: &Step) -> Option<&'n Node> {
    match (step, &node.value) {
        (Step::Key(key), _) => node.get(key),
        (Step::Index(index), Value::List(items)) => items.get(*index),
        _ => None,
    }
}

fn key_of(found: &Found) -> Key {
    Key::new(found.group(), &found.kind, &found.namespace, &found.name)
}

/// Returns the objects of a file that match.
pub(super) fn places(tree: &SourceTree, file: &str, fits: impl Fn(&Found) -> bool) -> Vec<Place> {
    let Some(source) = tree.files.get(file) else { return Vec::new() };
    let found = objects(&source.bytes).found.into_iter().filter(|found| fits(found));
    found.map(|found| Place { file: source.path.clone(), found }).collect()
}

/// Returns the object with a key in a file.
pub(super) fn place_of(tree: &SourceTree, file: &str, key: &Key) -> Option<Place> {
    places(tree, file, |found| key_of(found) == *key).into_iter().next()
}

/// Applies edits to a tree; `None` if they conflict.
pub(super) fn made(tree: &SourceTree, edits: &[&FileEdit]) -> Option<SourceTree> {
    let mut texts: BTreeMap<Arc<str>, String> = BTreeMap::new();
    // From last to first, so that the indexes of removed items stay valid.
    for edit in edits.iter().rev() {
        let file = &edit.shown.at.file;
        let (object, change) = match &edit.act {
            Act::Change { object, change } => (object, change),
            Act::Add { text } => {
                texts.insert(file.clone(), text.clone());
                continue;
            }
        };
        let text = match texts.get(file) {
            Some(text) => text.clone(),
            None => text_of(tree, file)?,
        };
        let found = objects(text.as_bytes()).found.into_iter().find(|found| key_of(found) == *object)?;
        texts.insert(file.clone(), apply(&text, &found, std::slice::from_ref(change)).ok()?);
    }
    let mut edited = tree.clone();
    edited.files.extend(texts.into_iter().map(|(path, text)| SourceFile::new(path, text.into_bytes())));
    Some(edited)
}

fn text_of(tree: &SourceTree, path: &str) -> Option<String> {
    let file = tree.files.get(path)?;
    Some(std::str::from_utf8(&file.bytes).ok()?.to_owned())
}
