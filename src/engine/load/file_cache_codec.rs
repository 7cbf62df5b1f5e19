//! Parsed files ↔ bytes, so that another process need not parse them again.
//!
//! Only files without a fault are stored; the faults of other files are found again.

use super::documents::{FileDocuments, FileSize, Slot};
use crate::dialects::{ParsedDocument, Readings};
use berth_base::codec::coded::Coded;
use berth_base::codec::{Decoder, Encoder};
use berth_base::diag::Diagnostics;

impl Coded for FileDocuments {
    fn put(&self, encoder: &mut Encoder) {
        self.objects.put(encoder);
        self.passed_over.put(encoder);
        self.repeats.put(encoder);
        self.size.put(encoder);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<FileDocuments> {
        Some(FileDocuments {
            objects: Coded::get(decoder)?,
            passed_over: Coded::get(decoder)?,
            repeats: Coded::get(decoder)?,
            size: Coded::get(decoder)?,
            broken: false,
            diagnostics: Diagnostics::new(),
        })
    }
}

impl Coded for FileSize {
    fn put(&self, encoder: &mut Encoder) {
        (self.documents, self.values).put(encoder);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<FileSize> {
        let (documents, values) = Coded::get(decoder)?;
        Some(FileSize { documents, values })
    }
}

/// A document, which remembers no reading.
impl Coded for ParsedDocument {
    fn put(&self, encoder: &mut Encoder) {
        let ParsedDocument { key, version, at, root, readings: _ } = self;
        key.put(encoder);
        version.put(encoder);
        at.put(encoder);
        root.put(encoder);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<ParsedDocument> {
        let (key, version) = (Coded::get(decoder)?, Coded::get(decoder)?);
        let (at, root) = (Coded::get(decoder)?, Coded::get(decoder)?);
        Some(ParsedDocument { key, version, at, root, readings: Some(Readings::default()) })
    }
}

impl Coded for Slot {
    fn put(&self, encoder: &mut Encoder) {
        let Slot { bytes, lines, listed } = self;
        ((bytes.start, bytes.end), (lines.start, lines.end)).put(encoder);
        listed.put(encoder);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Slot> {
        let ((start, end), (first, last)): ((usize, usize), (u32, u32)) = Coded::get(decoder)?;
        Some(Slot { bytes: start..end, lines: first..last, listed: Coded::get(decoder)? })
    }
}
