//! Changes one value of a YAML file and leaves every other byte as it is: comments, order and formatting
//! of what people wrote.
//!
//! - [`set`], [`insert`], [`remove`], [`remove_with_holder`], [`undo_insert`]: one value at a path, in one document of a file.
//!   [`remove_document`]: a whole document. [`objects`]: the objects with their places.
//! - No edit is trusted: what it gives is read again, and must differ from what was there in exactly what
//!   was asked for. Else there is an error and no text.

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

/// Puts a value at a path; mappings on the way there are made, and an index past the end appends.
pub fn set(text: &str, document: usize, path: &[Step], value: &Json) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    let expected = apply_set(source.json(), path, value)?;
    let cut = change::set(&source, path, value);
    source.placed(path, cut.and_then(|cut| source.verified(cut, Some(expected))))
}

/// Puts a value where none is: under a new key, or before the item of that index (past the end: as the last).
pub fn insert(text: &str, document: usize, path: &[Step], value: &Json) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    let expected = apply_insert(source.json(), path, value)?;
    let cut = change::insert(&source, path, value);
    source.placed(path, cut.and_then(|cut| source.verified(cut, Some(expected))))
}

/// Takes a key or an item out. The last one leaves an empty mapping or list.
pub fn remove(text: &str, document: usize, path: &[Step]) -> Result<String, EditError> {
    take_out(&Original::read(text, document)?, path)
}

/// [`remove`], and what holds the key goes as well if nothing else stands in it, not even a comment.
pub fn remove_with_holder(text: &str, document: usize, path: &[Step]) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    match path.split_last() {
        Some((_, holder)) if removal::is_alone(&source, path) => take_out(&source, holder),
        _ => take_out(&source, path),
    }
}

/// [`remove`], and what holds the value goes as well if an insertion would have made it: nothing else stands
/// in it, not even a comment, and no brackets of its own that somebody put there.
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

/// Takes a whole document out, with the comments that stand in it.
pub fn remove_document(text: &str, document: usize) -> Result<String, EditError> {
    let source = Original::read(text, document)?;
    let bytes = source.document().bytes.clone();
    source.placed(&[], source.verified(Cut { bytes, with: String::new() }, None))
}
