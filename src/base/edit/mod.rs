//! Changes one value of a YAML file and leaves every other byte unchanged: people's comments, order and
//! formatting stay.
//!
//! - [`set`], [`insert`], [`remove`], [`remove_with_holder`], [`undo_insert`]: one value at a path, in one
//!   document of a file. [`remove_document`]: a whole document. [`objects`]: the objects with their places.
//! - Every edit is verified: its result is read again, and must differ from the original in exactly the
//!   requested change. Otherwise the edit returns an error and no text.

mod brackets;
mod change;
mod error;
mod objects;
mod path;
mod place;
mod removal;
#[cfg(test)]
mod tests;
mod verify;

use serde_json::Value as Json;

pub use error::EditError;
pub use objects::{Found, Objects, objects};
pub use path::{Step, keys, show};

use verify::{Cut, Original, apply_insert, apply_remove, apply_set};

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
