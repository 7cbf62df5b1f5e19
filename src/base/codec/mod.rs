//! Values ↔ compact bytes: for digests, and for what a process leaves for the next one of the same build.
//!
//! Each text is written once and named by a number from then on, and in files each id. No bytes make reading panic;
//! whether they are as they were written is for a checksum beside them to say.
//!
//! [`coded`]: values with one encoding. [`file`]: bytes that are read back, and their parts, which are decoded when they are looked at first. [`later`]: such a value.

pub mod coded;
pub mod file;
mod json;
pub mod later;

use std::any::Any;
use std::sync::Arc;

use indexmap::IndexSet;

use file::{File, NewFile, Part};

/// Bytes under construction.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    /// All texts so far, by number.
    texts: IndexSet<Arc<str>>,
    /// Set where the bytes are for a file: texts and ids then stand in tables of their own.
    file: Option<NewFile>,
}

impl Encoder {
    /// Returns the bytes of a digest.
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
        if let Some(file) = &mut self.file {
            let number = file.text_order.number_of(text, &mut self.texts);
            return self.count(number);
        }
        let known = self.texts.get_index_of(text);
        let number = known.unwrap_or_else(|| self.texts.insert_full(text.into()).0);
        // 0 stands for a new text.
        if known.is_some() {
            return self.count(number + 1);
        }
        self.count(0);
        self.bytes(text.as_bytes());
    }

    /// An id that a file names often.
    pub fn id(&mut self, id: &[u8; 20]) {
        match &mut self.file {
            Some(file) => {
                let (number, _) = file.ids.insert_full(*id);
                self.count(number);
            }
            None => self.raw(id),
        }
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
        items.for_each(|item| {
            encode(self, item);
            self.hand_over();
        });
    }
}

/// A part of a file being read.
#[derive(Debug)]
pub struct Decoder<'f> {
    file: &'f Arc<File>,
    rest: &'f [u8],
    /// The place of the end in the file.
    end: usize,
}

impl<'f> Decoder<'f> {
    /// The file that is read.
    pub fn file(&self) -> &'f Arc<File> {
        self.file
    }

    /// Returns the values that the file names in place of holding them, if they are of this type.
    pub fn statics<T: Any>(&self) -> Option<&'static T> {
        self.file.statics.downcast_ref()
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

    pub fn bytes(&mut self) -> Option<&'f [u8]> {
        let count = self.count()?;
        self.rest.split_off(..count)
    }

    /// Shared with every other place that holds the same text.
    pub fn text(&mut self) -> Option<Arc<str>> {
        self.number().and_then(|number| self.file.text(number)).cloned()
    }

    pub fn string(&mut self) -> Option<String> {
        let number = self.number()?;
        Some(self.file.text(number)?.as_ref().to_owned())
    }

    pub fn id(&mut self) -> Option<[u8; 20]> {
        self.number().and_then(|number| self.file.id(number))
    }

    pub fn maybe<T>(&mut self, decode: impl FnOnce(&mut Decoder<'f>) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { Some(Some(decode(self)?)) } else { Some(None) }
    }

    pub fn list<T, All: FromIterator<T>>(
        &mut self,
        mut decode: impl FnMut(&mut Decoder<'f>) -> Option<T>,
    ) -> Option<All> {
        (0..self.count()?).map(|_| decode(self)).collect()
    }

    /// Passes over a part, which is decoded later.
    pub fn part(&mut self) -> Option<Part> {
        let length = usize::try_from(u32::from_le_bytes(self.raw()?)).ok()?;
        let start = self.end.checked_sub(self.rest.len())?;
        self.rest.split_off(..length)?;
        Some(Part::new(self.file, start..start + length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(
        numbers: &[u64],
        texts: &[String],
        earlier: Option<&Arc<File>>,
        part: Option<&Part>,
    ) -> Vec<u8> {
        file::to_bytes(earlier, |encoder| {
            encoder.list(numbers.iter(), |encoder, number| encoder.number(*number));
            encoder.part(part, |encoder| {
                encoder.list(texts.iter(), |encoder, text| {
                    encoder.text(text);
                    encoder.id(&id_of(text));
                });
            });
            encoder.maybe(numbers.first(), |encoder, number| encoder.signed(number.cast_signed()));
        })
    }

    fn id_of(text: &str) -> [u8; 20] {
        [text.len() as u8; 20]
    }

    fn read(part: &Part) -> Option<Vec<String>> {
        part.decode(|decoder| {
            decoder.list(|decoder| {
                let text = decoder.string()?;
                (decoder.id()? == id_of(&text)).then_some(text)
            })
        })
    }

    type All = (Vec<u64>, Part, Option<i64>);

    fn decoded(file: &Arc<File>) -> Option<All> {
        let mut decoder = file.decoder();
        let (numbers, part) = (decoder.list(Decoder::number)?, decoder.part()?);
        let last = decoder.maybe(Decoder::signed)?;
        decoder.is_done().then_some((numbers, part, last))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(numbers: Vec<u64>, texts in proptest::collection::vec("[ab]{0,2}", 0..9)) {
            let last = numbers.first().map(|number| number.cast_signed());
            let file = File::read(encoded(&numbers, &texts, None, None)).expect("it is a file");
            let (found, part, end) = decoded(&file).expect("it is whole");
            prop_assert_eq!((found, end), (numbers, last));
            prop_assert_eq!(read(&part), Some(texts.clone()));
            // A part is copied as it is, into a file with other texts and ids.
            let other = encoded(&[7], &["other".to_owned()], Some(&file), Some(&part));
            let (_, copied, _) = decoded(&File::read(other).expect("it is a file")).expect("it is whole");
            prop_assert_eq!(read(&copied), Some(texts));
            prop_assert!(!file.is_damaged());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            if let Some((_, part, _)) = File::read(bytes).as_ref().and_then(decoded) {
                let _ = read(&part);
            }
        }
    }
}
