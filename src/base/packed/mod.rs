//! JSON values as compact bytes that are read in place: one allocation instead of a tree. [`Writer`]
//! writes them.
//!
//! The bytes contain, for each value, its place if it has one, a tag and its content. Lists and mappings
//! begin with the length of their contents, so that reading one field skips all others.

mod view;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::{Number, Value as Json};

pub use view::{Content, Entries, Items, View};

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

    /// Returns the value at a JSON pointer.
    pub fn pointer(&self, pointer: &str) -> Option<View<'_>> {
        let mut parts = pointer.split('/');
        parts.next().filter(|first| first.is_empty())?;
        parts.try_fold(self.view(), |view, part| {
            let key = match part.contains('~') {
                true => Cow::Owned(part.replace("~1", "/").replace("~0", "~")),
                false => Cow::Borrowed(part),
            };
            view.child(&key)
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

/// Packs one value, with its place if made by [`Writer::with_places`].
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    places: bool,
}

impl Writer {
    pub fn with_places() -> Writer {
        Writer { bytes: vec![1], places: true }
    }

    pub fn without_places() -> Writer {
        Writer { bytes: vec![0], places: false }
    }

    pub fn finish(self) -> Packed {
        Packed { bytes: Some(self.bytes.into()) }
    }

    pub fn null(&mut self, at: Mark) {
        self.begin(at, tag::NULL);
    }

    pub fn bool(&mut self, at: Mark, value: bool) {
        self.begin(at, if value { tag::TRUE } else { tag::FALSE });
    }

    pub fn number(&mut self, at: Mark, number: &Number) {
        if let Some(number) = number.as_u64() {
            self.begin(at, tag::NATURAL);
            self.varint(number);
        } else if let Some(number) = number.as_i64() {
            self.begin(at, tag::NEGATIVE);
            self.varint(!number.cast_unsigned());
        } else {
            self.begin(at, tag::FLOAT);
            self.bytes.extend(number.as_f64().unwrap_or_default().to_le_bytes());
        }
    }

    pub fn text(&mut self, at: Mark, text: &str) {
        self.begin(at, tag::TEXT);
        self.put_text(text);
    }

    pub fn list<T>(&mut self, at: Mark, items: impl Iterator<Item = T>, put: impl FnMut(&mut Writer, T)) {
        self.begin(at, tag::LIST);
        self.inside(items, put);
    }

    /// Writes a mapping; `put` writes each entry as a [`Writer::key`] and a value.
    pub fn map<T>(&mut self, at: Mark, entries: impl Iterator<Item = T>, put: impl FnMut(&mut Writer, T)) {
        self.begin(at, tag::MAP);
        self.inside(entries, put);
    }

    pub fn key(&mut self, at: Mark, key: &str) {
        self.put_place(at);
        self.put_text(key);
    }

    fn json(&mut self, value: &Json) {
        let at = Mark::default();
        match value {
            Json::Null => self.null(at),
            Json::Bool(value) => self.bool(at, *value),
            Json::Number(number) => self.number(at, number),
            Json::String(text) => self.text(at, text),
            Json::Array(items) => self.list(at, items.iter(), Writer::json),
            Json::Object(entries) => self.map(at, entries.iter(), |writer, (key, value)| {
                writer.key(at, key);
                writer.json(value);
            }),
        }
    }

    fn begin(&mut self, at: Mark, tag: u8) {
        self.put_place(at);
        self.bytes.push(tag);
    }

    fn put_place(&mut self, at: Mark) {
        if self.places {
            self.varint(at.line.into());
            self.varint(at.column.into());
        }
    }

    fn put_text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn inside<T>(&mut self, items: impl Iterator<Item = T>, mut put: impl FnMut(&mut Writer, T)) {
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        for item in items {
            put(self, item);
        }
        // Readers limit their input to far less.
        let length = u32::try_from(self.bytes.len() - start - 4).expect("a value of less than 4 GiB");
        self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}
