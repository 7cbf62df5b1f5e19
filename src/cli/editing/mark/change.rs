//! Changes values of a document that describes a cluster, and nothing else in its text.

use serde_json::Value as Json;

use berth_base::edit::{self, EditError, Found, Step};

/// A change of one value of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: Vec<Step>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Set(Json),
    Append(Json),
    /// Removes the value, and parents that an insertion would have created.
    Remove,
}

/// The changes of a document, and notes about requests that are already fulfilled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// In an order that keeps indexes valid.
    pub changes: Vec<Change>,
    /// The descriptions of the changes.
    pub said: Vec<String>,
    /// The requests that were already fulfilled.
    pub notes: Vec<String>,
}

/// Applies the changes to the text of the document's file.
pub fn apply(text: &str, found: &Found, changes: &[Change]) -> Result<String, EditError> {
    let mut text = text.to_owned();
    for Change { path, what } in changes {
        let path = found.path_to(path);
        text = match what {
            What::Set(value) => edit::set(&text, found.document, &path, value),
            What::Append(value) => edit::insert(&text, found.document, &path, value),
            What::Remove => edit::undo_insert(&text, found.document, &path),
        }?;
    }
    Ok(text)
}
