//! Values ↔ compact bytes, for caches that a process leaves for the next one of the same build.
//!
//! Each text is written once and named by a number from then on. No bytes make reading panic; whether they
//! are as they were written is for a checksum beside them to say.

mod json;

use std::collections::HashMap;
use std::sync::Arc;

/// Bytes under construction.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    texts: HashMap<Box<str>, u64>,
}

impl Encoder {
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Seven bits a byte, the lowest first.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    pub fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub fn signed(&mut self, number: i64) {
        self.number(number.cast_unsigned());
    }

    pub fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    pub fn raw<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        if let Some(known) = self.texts.get(text) {
            return self.number(*known);
        }
        // 0 stands for a new text.
        let number = self.texts.len() as u64 + 1;
        self.texts.insert(text.into(), number);
        self.number(0);
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub fn maybe<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Encoder, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            encode(self, value);
        }
    }

    pub fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut encode: impl FnMut(&mut Encoder, T),
    ) {
        self.count(items.len());
        items.for_each(|item| encode(self, item));
    }
}

/// Bytes being read.
#[derive(Debug)]
pub struct Decoder<'b> {
    rest: &'b [u8],
    texts: Vec<Arc<str>>,
}

impl<'b> Decoder<'b> {
    pub fn new(bytes: &'b [u8]) -> Decoder<'b> {
        Decoder { rest: bytes, texts: Vec::new() }
    }

    /// Reports whether everything was read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }

    /// Reads the number of items that follow, each at least one byte long.
    pub fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= self.rest.len())
    }

    pub fn signed(&mut self) -> Option<i64> {
        Some(self.number()?.cast_signed())
    }

    pub fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub fn raw<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    /// Shared with every other place that holds the same text.
    pub fn bytes(&mut self) -> Option<&'b [u8]> {
        let count = self.count()?;
        self.rest.split_off(..count)
    }

    pub fn text(&mut self) -> Option<Arc<str>> {
        let number = usize::try_from(self.number()?).ok()?;
        if let Some(known) = number.checked_sub(1) {
            return self.texts.get(known).cloned();
        }
        let length = self.count()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        let text: Arc<str> = std::str::from_utf8(text).ok()?.into();
        self.rest = rest;
        self.texts.push(text.clone());
        Some(text)
    }

    pub fn string(&mut self) -> Option<String> {
        Some(self.text()?.as_ref().to_owned())
    }

    pub fn maybe<T>(&mut self, decode: impl FnOnce(&mut Decoder<'b>) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { Some(Some(decode(self)?)) } else { Some(None) }
    }

    pub fn list<T, All: FromIterator<T>>(
        &mut self,
        mut decode: impl FnMut(&mut Decoder<'b>) -> Option<T>,
    ) -> Option<All> {
        (0..self.count()?).map(|_| decode(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(numbers: &[u64], texts: &[String]) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.list(numbers.iter(), |encoder, number| encoder.number(*number));
        encoder.list(texts.iter(), |encoder, text| encoder.text(text));
        encoder.maybe(numbers.first(), |encoder, number| encoder.signed(number.cast_signed()));
        encoder.into_bytes()
    }

    type All = (Vec<u64>, Vec<String>, Option<i64>);

    fn decoded(bytes: &[u8]) -> Option<All> {
        let mut decoder = Decoder::new(bytes);
        let all = (decoder.list(Decoder::number)?, decoder.list(Decoder::string)?);
        let last = decoder.maybe(Decoder::signed)?;
        decoder.is_done().then_some((all.0, all.1, last))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(numbers: Vec<u64>, texts in proptest::collection::vec("[ab]{0,2}", 0..9)) {
            let last = numbers.first().map(|number| number.cast_signed());
            prop_assert_eq!(decoded(&encoded(&numbers, &texts)), Some((numbers, texts, last)));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = decoded(&bytes);
        }
    }
}
