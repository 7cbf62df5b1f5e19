//! Parsed files ↔ bytes, so that another process need not parse them again.
//!
//! Only files without a fault are stored; the faults of other files are found again.

use std::ops::Range;
use std::sync::Arc;

use super::documents::{FileDocuments, FileKey, Slot};
use crate::dialects::{Document, ParsedDocument, Readings};
use berth_base::codec::{Decoder, Encoder};
use berth_base::diag::{Diagnostics, Pos};
use berth_base::model::{ContentId, Key};
use berth_base::packed::{Mark, Packed};

pub(super) fn encode<'f>(
    encoder: &mut Encoder,
    files: impl Iterator<Item = (&'f FileKey, &'f FileDocuments)>,
) {
    let sound: Vec<_> = files.filter(|(_, file)| !file.broken && file.diagnostics.is_empty()).collect();
    encoder.list(sound.into_iter(), |encoder, ((id, path), file)| {
        encoder.raw(&id.0);
        encoder.text(path);
        encoder.count(file.passed_over);
        encoder.count(file.repeats);
        encoder.list(file.objects.iter(), |encoder, (document, slot)| {
            put_document(encoder, document);
            put_slot(encoder, slot);
        });
    });
}

pub(super) fn decode(decoder: &mut Decoder<'_>) -> Option<Vec<(FileKey, Arc<FileDocuments>)>> {
    decoder.list(|decoder| {
        let (id, path) = (ContentId(decoder.raw()?), decoder.text()?);
        // These counts are not of the items that follow, so they may exceed the number of bytes left.
        let passed_over = usize::try_from(decoder.number()?).ok()?;
        let repeats = usize::try_from(decoder.number()?).ok()?;
        let objects = decoder.list(|decoder| Some((document(decoder, &path)?, slot(decoder)?)))?;
        let diagnostics = Diagnostics::new();
        let file = FileDocuments { objects, passed_over, broken: false, diagnostics, repeats };
        Some(((id, path), Arc::new(file)))
    })
}

fn put_document(encoder: &mut Encoder, document: &Document) {
    let key = &document.key;
    [&*key.group, &*key.kind, &*key.namespace, &*key.name, &document.version]
        .into_iter()
        .for_each(|text| encoder.text(text));
    put_mark(encoder, Mark { line: document.at.line, column: document.at.column });
    encoder.bytes(document.root.bytes());
}

fn document(decoder: &mut Decoder<'_>, path: &Arc<str>) -> Option<Document> {
    let (group, kind) = (decoder.text()?, decoder.text()?);
    let (namespace, name) = (decoder.text()?, decoder.text()?);
    let version = decoder.string()?;
    let Mark { line, column } = mark(decoder)?;
    let at = Pos { file: path.clone(), line, column };
    let key = Key { kind, namespace, name, group };
    let (root, readings) = (Packed::stored(decoder.bytes()?), Some(Readings::default()));
    Some(ParsedDocument { key, version, at, root, readings }.into())
}

fn put_slot(encoder: &mut Encoder, slot: &Slot) {
    encoder.count(slot.bytes.start);
    encoder.count(slot.bytes.end);
    encoder.number(slot.lines.start.into());
    encoder.number(slot.lines.end.into());
    encoder.flag(slot.listed);
}

fn slot(decoder: &mut Decoder<'_>) -> Option<Slot> {
    let mut place = || usize::try_from(decoder.number()?).ok();
    let bytes = Range { start: place()?, end: place()? };
    let lines = Range { start: small(decoder)?, end: small(decoder)? };
    Some(Slot { bytes, lines, listed: decoder.flag()? })
}

fn put_mark(encoder: &mut Encoder, at: Mark) {
    encoder.number(at.line.into());
    encoder.number(at.column.into());
}

fn mark(decoder: &mut Decoder<'_>) -> Option<Mark> {
    Some(Mark { line: small(decoder)?, column: small(decoder)? })
}

fn small(decoder: &mut Decoder<'_>) -> Option<u32> {
    decoder.number()?.try_into().ok()
}
