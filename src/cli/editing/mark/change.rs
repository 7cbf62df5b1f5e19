//! Changes of one document that describes a cluster → its new text, with nothing else changed.

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
    /// With what an insertion would have made around it.
    Remove,
}

/// The changes of a document, and the parts of the request that are already true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// In the order in which they are made, so that indexes stay true.
    pub changes: Vec<Change>,
    /// The changes in words.
    pub said: Vec<String>,
    /// The parts of the request that were already true.
    pub notes: Vec<String>,
}

/// Makes the changes in the text of the document's file.
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
