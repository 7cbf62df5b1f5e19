//! JSON values as compact bytes that are read in place: one allocation instead of a tree.
//!
//! The bytes contain, for each value, its place if it has one, a tag and its content. Lists and mappings
//! begin with the length of their contents, so that reading one field skips all others.

mod view;
mod writer;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

pub use view::{Content, Entries, Items, View};
pub use writer::Writer;

/// Line and column in a file, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub line: u32,
    pub column: u32,
}

/// A value as compact bytes. Equal bytes are equal values in equal places.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Packed {
    /// `None` for a null without a place.
    bytes: Option<Arc<[u8]>>,
}

impl Packed {
    pub const NULL: Packed = Packed { bytes: None };

    /// Packs a value without places.
    pub fn of(value: &Json) -> Packed {
        if value.is_null() {
            return Packed::NULL;
        }
        let mut writer = Writer::without_places();
        writer.json(value);
        writer.finish()
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }

    pub fn view(&self) -> View<'_> {
        View::of(self.bytes())
    }

    /// Returns the value under a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<View<'_>> {
        self.view().get(key)
    }

    /// Returns the value at a JSON pointer through mappings.
    pub fn pointer(&self, pointer: &str) -> Option<View<'_>> {
        let mut parts = pointer.split('/');
        parts.next().filter(|first| first.is_empty())?;
        parts.try_fold(self.view(), |view, part| {
            let key = match part.contains('~') {
                true => Cow::Owned(part.replace("~1", "/").replace("~0", "~")),
                false => Cow::Borrowed(part),
            };
            view.get(&key)
        })
    }

    pub fn to_json(&self) -> Json {
        self.view().to_json()
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

/// The tag of a value.
mod tag {
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const NATURAL: u8 = 3;
    /// A negative integer, as its complement.
    pub(super) const NEGATIVE: u8 = 4;
    pub(super) const FLOAT: u8 = 5;
    pub(super) const TEXT: u8 = 6;
    pub(super) const LIST: u8 = 7;
    pub(super) const MAP: u8 = 8;
}

#[cfg(test)]
mod tests;
