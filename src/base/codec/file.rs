//! A file of encoded values. A part of it can be passed over, decoded later, and copied into the next file as it is.
//!
//! The values come first, then the ids and the texts that they name, and then the length of the values.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexSet;

use super::{Decoder, Encoder};

/// Files that have more than this many times the texts and ids of their first one are written anew, without those that
/// nobody names any more.
const STALE: usize = 2;

/// Texts and ids that a file may gain in any case.
const ROOM: usize = 4_096;

/// So many bytes are handed over at once.
const CHUNK: usize = 1 << 16;

/// The bytes of a file, and the texts and ids that they name.
pub struct File {
    bytes: Vec<u8>,
    /// The length of the values.
    body: usize,
    texts: Vec<Arc<str>>,
    ids: Vec<[u8; 20]>,
    /// The number of texts and ids when the file was last written without an earlier one.
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
        let (before, length) = bytes.split_last_chunk()?;
        let body = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (_, mut rest) = before.split_at_checked(body)?;
        let mut number = || {
            let (first, others) = rest.split_first_chunk()?;
            rest = others;
            usize::try_from(u32::from_le_bytes(*first)).ok()
        };
        let (fresh, n_ids, count) = (number()?, number()?, number()?);
        let (ids, mut rest) = rest.split_at_checked(n_ids.checked_mul(20)?)?;
        let (ids, _) = ids.as_chunks();
        let ids = ids.to_vec();
        let mut texts = Vec::with_capacity(count.min(bytes.len() / 4));
        for _ in 0..count {
            let (length, others) = rest.split_first_chunk()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (text, others) = others.split_at_checked(length)?;
            texts.push(std::str::from_utf8(text).ok()?.into());
            rest = others;
        }
        Some(Arc::new(File { bytes, body, texts, ids, fresh, statics, is_damaged: AtomicBool::new(false) }))
    }

    pub fn decoder(self: &Arc<File>) -> Decoder<'_> {
        Decoder { file: self, rest: self.bytes.get(..self.body).unwrap_or_default(), end: self.body }
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

    pub(super) fn id(&self, number: u64) -> Option<[u8; 20]> {
        self.ids.get(usize::try_from(number).ok()?).copied()
    }

    fn is_stale(&self) -> bool {
        self.texts.len() + self.ids.len() > self.fresh.saturating_mul(STALE) + ROOM
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

/// Takes the bytes of a file as they are made.
pub type Sink = Box<dyn FnMut(&[u8])>;

/// A file under construction, beside those bytes of its own that wait.
pub(super) struct NewFile {
    sink: Sink,
    /// All ids, by number.
    pub(super) ids: IndexSet<[u8; 20]>,
    pub(super) text_order: TextOrder,
    /// The file whose parts may be copied.
    earlier: Option<Arc<File>>,
    /// The copies that wait, and their length.
    copies: Vec<Copied>,
    n_copied: usize,
    /// The number of bytes that were handed over.
    n_done: usize,
    /// The values under construction that may still change their beginning or go: what is in them waits.
    n_open: usize,
}

/// The order in which texts came. Many lists of a file have the same texts in the same order, so that the next one is
/// mostly found without a search.
#[derive(Default)]
pub(super) struct TextOrder {
    last: usize,
    /// By a text's number: the one that came after it.
    after: Vec<u32>,
}

impl TextOrder {
    /// Returns a text's number, a new one for a new text.
    pub(super) fn number_of(&mut self, text: &str, texts: &mut IndexSet<Arc<str>>) -> usize {
        let expected = self.after.get(self.last).map(|next| *next as usize);
        let is_expected = |next: &usize| texts.get_index(*next).is_some_and(|known| **known == *text);
        let number = expected.filter(is_expected).unwrap_or_else(|| match texts.get_index_of(text) {
            Some(known) => known,
            None => texts.insert_full(text.into()).0,
        });
        if expected != Some(number) {
            self.after.resize(self.after.len().max(self.last + 1), u32::MAX);
            self.after[self.last] = u32::try_from(number).unwrap_or(u32::MAX);
        }
        self.last = number;
        number
    }
}

/// A part of the earlier file, which stands between the file's own bytes.
struct Copied {
    /// The number of own bytes before it.
    at: usize,
    place: Range<usize>,
}

impl fmt::Debug for NewFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewFile").field("done", &self.n_done).finish_non_exhaustive()
    }
}

impl NewFile {
    /// Forgets the copies behind so many own bytes.
    fn truncate(&mut self, own: usize) {
        while let Some(last) = self.copies.pop_if(|last| last.at > own) {
            self.n_copied -= last.place.len();
        }
    }

    fn hand_over(&mut self, own: &mut Vec<u8>) {
        let earlier = self.earlier.as_ref().map_or(&[][..], |file| &file.bytes);
        let mut begin = 0;
        for Copied { at, place } in self.copies.drain(..) {
            (self.sink)(own.get(begin..at).unwrap_or_default());
            (self.sink)(earlier.get(place).unwrap_or_default());
            begin = at;
        }
        (self.sink)(own.get(begin..).unwrap_or_default());
        self.n_done += own.len() + std::mem::take(&mut self.n_copied);
        own.clear();
    }
}

/// Returns the bytes of a file with these values. Parts of the earlier file are copied into it.
pub fn to_bytes(earlier: Option<&Arc<File>>, encode: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let bytes = Rc::new(RefCell::new(Vec::new()));
    let sink = bytes.clone();
    let sink = Box::new(move |piece: &[u8]| sink.borrow_mut().extend_from_slice(piece));
    let mut encoder = Encoder::of_file(earlier, sink);
    encode(&mut encoder);
    encoder.finish();
    bytes.take()
}

impl Encoder {
    /// Begins a file, whose bytes are handed over as they are made. Parts of the earlier one are copied into it.
    pub fn of_file(earlier: Option<&Arc<File>>, sink: Sink) -> Encoder {
        let earlier = earlier.filter(|file| !file.is_stale());
        let texts: IndexSet<_> = earlier.iter().flat_map(|file| &file.texts).cloned().collect();
        let ids: IndexSet<_> = earlier.iter().flat_map(|file| &file.ids).copied().collect();
        // No file of ours has a value twice: the numbers in its parts would be others here.
        let is_numbered = |file: &&Arc<File>| (texts.len(), ids.len()) == (file.texts.len(), file.ids.len());
        let earlier = earlier.filter(is_numbered).cloned();
        let file = NewFile {
            sink,
            ids,
            text_order: TextOrder::default(),
            earlier,
            copies: Vec::new(),
            n_copied: 0,
            n_done: 0,
            n_open: 0,
        };
        Encoder { bytes: Vec::new(), texts, file: Some(file) }
    }

    /// Hands the rest of the file over.
    pub fn finish(mut self) {
        let Some(mut file) = self.file.take() else { return };
        file.hand_over(&mut self.bytes);
        let (texts, ids) = (&self.texts, &file.ids);
        let fresh = file.earlier.as_ref().map_or(texts.len() + ids.len(), |file| file.fresh);
        let length = texts.iter().map(|text| 4 + text.len()).sum::<usize>();
        let mut end = Vec::with_capacity(20 + 20 * ids.len() + length);
        let four = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        [fresh, ids.len(), texts.len()].into_iter().for_each(|number| end.extend_from_slice(&four(number)));
        ids.iter().for_each(|id| end.extend_from_slice(id));
        for text in texts {
            end.extend_from_slice(&four(text.len()));
            end.extend_from_slice(text.as_bytes());
        }
        end.extend_from_slice(&(file.n_done as u64).to_le_bytes());
        (file.sink)(&end);
    }

    /// Encodes a value that a decoder can pass over. A part of the earlier file is copied as it is.
    pub fn part(&mut self, known: Option<&Part>, encode: impl FnOnce(&mut Encoder)) {
        self.open();
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
        self.close();
    }

    /// Encodes a value that turns out to be missing or not: then nothing of it stays.
    pub fn optional(&mut self, encode: impl FnOnce(&mut Encoder) -> Option<()>) {
        self.open();
        let start = self.bytes.len();
        self.flag(true);
        if encode(self).is_none() {
            self.bytes.truncate(start);
            self.file.iter_mut().for_each(|file| file.truncate(start));
            self.flag(false);
        }
        self.close();
    }

    fn open(&mut self) {
        self.file.iter_mut().for_each(|file| file.n_open += 1);
    }

    fn close(&mut self) {
        self.file.iter_mut().for_each(|file| file.n_open -= 1);
        self.hand_over();
    }

    /// Hands over what was made, if it is much and nothing of it may change.
    pub(super) fn hand_over(&mut self) {
        if let Some(file) = self.file.as_mut().filter(|file| file.n_open == 0)
            && self.bytes.len() + file.n_copied >= CHUNK
        {
            file.hand_over(&mut self.bytes);
        }
    }

    fn n_copied(&self) -> usize {
        self.file.as_ref().map_or(0, |file| file.n_copied)
    }
}
