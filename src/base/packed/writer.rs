//! Writes a value's bytes.

use serde_json::{Number, Value as Json};

use super::{Mark, Packed, tag};

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

    pub(super) fn json(&mut self, value: &Json) {
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
