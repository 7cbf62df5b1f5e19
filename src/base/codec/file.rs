//! A file of encoded values. A part of it can be passed over, decoded later, and copied into the next file as it is.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Decoder, Encoder};

/// Files that have more than this many times the texts of their first one are written anew, without those that nobody
/// names any more.
const STALE: usize = 2;

/// Texts that a file may gain in any case.
const ROOM: usize = 4_096;

/// The bytes of a file, and the texts that they name.
pub struct File {
    bytes: Vec<u8>,
    /// The place where the values begin.
    body: usize,
    texts: Vec<Arc<str>>,
    /// The number of texts when the file was last written without an earlier one.
    fresh: usize,
    /// See [`Decoder::statics`].
    pub(super) statics: &'static (dyn Any + Send + Sync),
    /// Some part could not be decoded.
    is_damaged: AtomicBool,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl File {
    /// Reads the texts of a file, and takes all else as it is.
    pub fn read(bytes: Vec<u8>) -> Option<Arc<File>> {
        File::read_with(bytes, &())
    }

    /// [`File::read`], with the values that the file names in place of holding them.
    pub fn read_with(bytes: Vec<u8>, statics: &'static (dyn Any + Send + Sync)) -> Option<Arc<File>> {
        let mut rest = bytes.as_slice();
        let mut number = || {
            let (first, others) = rest.split_first_chunk()?;
            rest = others;
            usize::try_from(u32::from_le_bytes(*first)).ok()
        };
        let (fresh, count) = (number()?, number()?);
        let mut texts = Vec::with_capacity(count.min(bytes.len() / 4));
        for _ in 0..count {
            let (length, others) = rest.split_first_chunk()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (text, others) = others.split_at_checked(length)?;
            texts.push(std::str::from_utf8(text).ok()?.into());
            rest = others;
        }
        let body = bytes.len() - rest.len();
        Some(Arc::new(File { bytes, body, texts, fresh, statics, is_damaged: AtomicBool::new(false) }))
    }

    pub fn decoder(self: &Arc<File>) -> Decoder<'_> {
        let end = self.bytes.len();
        Decoder { file: self, rest: self.bytes.get(self.body..).unwrap_or_default(), end }
    }

    /// Reports whether some part could not be decoded so far. What was made of it is worth nothing.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Notes that something that the file names cannot be had.
    pub fn damage(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    pub(super) fn text(&self, number: u64) -> Option<&Arc<str>> {
        self.texts.get(usize::try_from(number).ok()?)
    }
}

/// The part of a file that holds a value.
#[derive(Clone)]
pub struct Part {
    file: Arc<File>,
    place: Range<usize>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Part").field(&self.place).finish()
    }
}

impl Part {
    pub(super) fn new(file: &Arc<File>, place: Range<usize>) -> Part {
        Part { file: file.clone(), place }
    }

    fn is_of(&self, file: Option<&Arc<File>>) -> bool {
        file.is_some_and(|file| Arc::ptr_eq(file, &self.file))
    }

    fn bytes(&self) -> &[u8] {
        self.file.bytes.get(self.place.clone()).unwrap_or_default()
    }

    /// Reports whether the value is a list without items, or another single zero.
    pub fn is_zero(&self) -> bool {
        self.bytes() == [0]
    }

    /// Decodes the value, which fills the part. Where it cannot be decoded, the file counts as damaged.
    pub fn decode<T>(&self, decode: impl FnOnce(&mut Decoder<'_>) -> Option<T>) -> Option<T> {
        let mut decoder = Decoder { file: &self.file, rest: self.bytes(), end: self.place.end };
        let value = decode(&mut decoder).filter(|_| decoder.is_done());
        if value.is_none() {
            self.file.damage();
        }
        value
    }
}

/// A file under construction, beside the bytes of its own.
#[derive(Debug, Default)]
pub(super) struct NewFile {
    /// All texts, by number.
    texts: Vec<Arc<str>>,
    /// The file whose parts may be copied.
    earlier: Option<Arc<File>>,
    copies: Vec<Copied>,
    /// The length of all copies.
    n_copied: usize,
}

/// A part of the earlier file, which stands between the file's own bytes.
#[derive(Debug)]
struct Copied {
    /// The number of own bytes before it.
    at: usize,
    place: Range<usize>,
}

/// A file's bytes, in pieces. Parts of the earlier file are where they were.
#[derive(Debug)]
pub struct Written {
    head: Vec<u8>,
    own: Vec<u8>,
    file: NewFile,
}

impl NewFile {
    /// Adds a text, which gets the next number.
    pub(super) fn add(&mut self, text: &Arc<str>) {
        self.texts.push(text.clone());
    }

    /// Forgets the copies behind so many own bytes.
    pub(super) fn truncate(&mut self, own: usize) {
        while let Some(last) = self.copies.pop_if(|last| last.at > own) {
            self.n_copied -= last.place.len();
        }
    }
}

impl Written {
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let earlier = self.file.earlier.as_ref().map_or(&[][..], |file| &file.bytes);
        let mut begin = 0;
        let copies = self.file.copies.iter().flat_map(move |Copied { at, place }| {
            let own = self.own.get(std::mem::replace(&mut begin, *at)..*at);
            [own.unwrap_or_default(), earlier.get(place.clone()).unwrap_or_default()]
        });
        let last = self.file.copies.last().map_or(0, |copied| copied.at);
        let rest = self.own.get(last..).unwrap_or_default();
        [self.head.as_slice()].into_iter().chain(copies).chain([rest]).filter(|piece| !piece.is_empty())
    }

    pub fn concat(&self) -> Vec<u8> {
        self.pieces().flatten().copied().collect()
    }
}

impl Encoder {
    /// Begins a file. Parts of the earlier one are copied into it.
    pub fn of_file(earlier: Option<&Arc<File>>) -> Encoder {
        let earlier = earlier.filter(|file| file.texts.len() <= file.fresh.saturating_mul(STALE) + ROOM);
        let texts = earlier.map(|file| file.texts.clone()).unwrap_or_default();
        let numbers = texts.iter().cloned().zip(0..).collect();
        let file = NewFile { texts, earlier: earlier.cloned(), ..NewFile::default() };
        Encoder { bytes: Vec::new(), texts: numbers, file: Some(file) }
    }

    /// Returns the bytes of the file.
    pub fn into_file(self) -> Written {
        let file = self.file.unwrap_or_default();
        let fresh = file.earlier.as_ref().map_or(file.texts.len(), |file| file.fresh);
        let length = file.texts.iter().map(|text| 4 + text.len()).sum::<usize>();
        let mut head = Vec::with_capacity(8 + length);
        let mut put = |number: usize, rest: &[u8]| {
            head.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
            head.extend_from_slice(rest);
        };
        put(fresh, &[]);
        put(file.texts.len(), &[]);
        file.texts.iter().for_each(|text| put(text.len(), text.as_bytes()));
        Written { head, own: self.bytes, file }
    }

    /// Encodes a value that a decoder can pass over. A part of the earlier file is copied as it is.
    pub fn part(&mut self, known: Option<&Part>, encode: impl FnOnce(&mut Encoder)) {
        let start = self.bytes.len();
        self.raw(&[0; 4]);
        let n_copied = self.n_copied();
        match self.file.as_mut().zip(known).filter(|(file, part)| part.is_of(file.earlier.as_ref())) {
            Some((file, part)) => {
                file.n_copied += part.place.len();
                file.copies.push(Copied { at: self.bytes.len(), place: part.place.clone() });
            }
            None => encode(self),
        }
        let length = self.bytes.len() - start - 4 + self.n_copied() - n_copied;
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if let Some(place) = self.bytes.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    fn n_copied(&self) -> usize {
        self.file.as_ref().map_or(0, |file| file.n_copied)
    }
}
