//! A file before an edit, and the proof that the edit changed the right value and nothing else: the normal
//! reader reads both texts, which are then compared value by value.

use serde_json::{Map, Value as Json};

use super::EditError;
use super::place::{Step, show};
use crate::yaml::outline::{Outline, Shape, outline};
use crate::yaml::split::last_line;
use crate::yaml::{Fault, Limits, Read, ReadDocument, read};

/// A part of a text, and its replacement.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) bytes: std::ops::Range<usize>,
    pub(super) with: String,
}

/// A file and its edited document.
#[derive(Debug)]
pub(super) struct Original<'a> {
    pub(super) text: &'a str,
    pub(super) outline: Outline,
    read: Read,
    document: usize,
}

impl<'a> Original<'a> {
    pub(super) fn read(text: &'a str, document: usize) -> Result<Original<'a>, EditError> {
        let read = read(text.as_bytes(), &Limits::default());
        let there = read.documents.get(document).ok_or(EditError::NoSuchDocument(document))?;
        let line = there.line;
        let outline = outline(text, there)
            .ok_or_else(|| EditError::NotInPlace { what: "the document".to_owned(), line })?;
        Ok(Original { text, outline, read, document })
    }

    pub(super) fn document(&self) -> &ReadDocument {
        &self.read.documents[self.document]
    }

    /// Adds the requested path to the error of a refused edit, and the line of its longest existing part.
    pub(super) fn placed<T>(&self, path: &[Step], done: Result<T, EditError>) -> Result<T, EditError> {
        done.map_err(|error| match error {
            EditError::NotInPlace { .. } if path.is_empty() => {
                EditError::NotInPlace { what: "the document".to_owned(), line: self.document().line }
            }
            EditError::NotInPlace { .. } => {
                EditError::NotInPlace { what: format!("`{}`", show(path)), line: self.line_of(path) }
            }
            other => other,
        })
    }

    fn line_of(&self, path: &[Step]) -> u32 {
        let (mut value, mut at) = (&self.outline, self.outline.bytes.start);
        for step in path {
            match (&value.shape, step) {
                (Shape::Map { entries, .. }, Step::Key(key)) => {
                    let Some(entry) = entries.iter().find(|entry| entry.key == *key) else { break };
                    (value, at) = (&entry.value, entry.key_bytes.start);
                }
                (Shape::List { items, .. }, Step::Index(index)) => {
                    let Some(item) = items.get(*index) else { break };
                    (value, at) = (item, item.bytes.start);
                }
                _ => break,
            }
        }
        last_line(self.text.as_bytes().get(..at).unwrap_or_default())
    }

    pub(super) fn json(&self) -> Json {
        self.document().root.to_json()
    }

    /// Returns the text after a cut, if this document is as expected (`None`: removed) and all other
    /// documents are unchanged.
    pub(super) fn verified(&self, cut: Cut, expected: Option<Json>) -> Result<String, EditError> {
        let refused = EditError::not_in_place;
        let (before, after) = (self.text.get(..cut.bytes.start), self.text.get(cut.bytes.end..));
        let (Some(before), Some(after)) = (before, after) else { return Err(refused()) };
        let text = format!("{before}{}{after}", cut.with);
        let now = read(text.as_bytes(), &Limits::default());
        let mut wanted: Vec<Json> =
            self.read.documents.iter().map(|document| document.root.to_json()).collect();
        match expected {
            Some(expected) => wanted[self.document] = expected,
            None => drop(wanted.remove(self.document)),
        }
        let found: Vec<Json> = now.documents.iter().map(|document| document.root.to_json()).collect();
        let same_faults = unreadable(&self.read.faults) == unreadable(&now.faults);
        if found == wanted && same_faults { Ok(text) } else { Err(refused()) }
    }
}

/// Returns the messages of the unreadable documents. After an edit they must be the same.
fn unreadable(faults: &[Fault]) -> Vec<&str> {
    faults.iter().filter(|fault| fault.unreadable.is_some()).map(|fault| &*fault.message).collect()
}

pub(super) fn apply_set(mut root: Json, path: &[Step], value: &Json) -> Result<Json, EditError> {
    let mut at = &mut root;
    for (depth, step) in path.iter().enumerate() {
        if at.is_null() {
            *at = Json::Object(Map::new());
        }
        let refused = not_a_collection(&path[..depth], at);
        at = match (step, at) {
            (Step::Key(key), Json::Object(fields)) => fields.entry(key.clone()).or_insert(Json::Null),
            (Step::Index(index), Json::Array(items)) => {
                if *index == items.len() {
                    items.push(Json::Null);
                }
                items.get_mut(*index).ok_or_else(|| EditError::Missing(show(path)))?
            }
            _ => return Err(refused),
        };
    }
    *at = value.clone();
    Ok(root)
}

pub(super) fn apply_insert(root: Json, path: &[Step], value: &Json) -> Result<Json, EditError> {
    match (find(&root, path), path.split_last()) {
        (Some(_), Some((Step::Index(index), above))) => {
            let mut root = root;
            if let Some(Json::Array(items)) = find_mut(&mut root, above) {
                items.insert(*index, value.clone());
            }
            Ok(root)
        }
        (Some(_), _) => Err(EditError::AlreadyThere(show(path))),
        (None, _) => apply_set(root, path, value),
    }
}

pub(super) fn apply_remove(mut root: Json, path: &[Step]) -> Result<Json, EditError> {
    let missing = || EditError::Missing(show(path));
    let (last, above) = path.split_last().ok_or_else(missing)?;
    match (last, find_mut(&mut root, above)) {
        (Step::Key(key), Some(Json::Object(fields))) => drop(fields.remove(key).ok_or_else(missing)?),
        (Step::Index(index), Some(Json::Array(items))) if *index < items.len() => drop(items.remove(*index)),
        _ => return Err(missing()),
    }
    Ok(root)
}

fn find<'j>(root: &'j Json, path: &[Step]) -> Option<&'j Json> {
    path.iter().try_fold(root, |at, step| match step {
        Step::Key(key) => at.get(key),
        Step::Index(index) => at.get(index),
    })
}

fn find_mut<'j>(root: &'j mut Json, path: &[Step]) -> Option<&'j mut Json> {
    path.iter().try_fold(root, |at, step| match step {
        Step::Key(key) => at.get_mut(key),
        Step::Index(index) => at.get_mut(index),
    })
}

fn not_a_collection(path: &[Step], value: &Json) -> EditError {
    let what = match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a mapping",
    };
    EditError::NotACollection { path: show(path), what }
}
