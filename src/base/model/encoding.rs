//! Small values of the model ↔ bytes, for what a process leaves for the next one.

use super::Timestamp;
use super::key::Key;
use crate::codec::{Decoder, Encoder};
use crate::diag::{Diagnostic, Pos, Severity};

pub fn put_key(encoder: &mut Encoder, key: &Key) {
    [&key.group, &key.kind, &key.namespace, &key.name].into_iter().for_each(|text| encoder.text(text));
}

pub fn key(decoder: &mut Decoder<'_>) -> Option<Key> {
    let (group, kind) = (decoder.text()?, decoder.text()?);
    Some(Key { kind, namespace: decoder.text()?, name: decoder.text()?, group })
}

pub fn put_pos(encoder: &mut Encoder, Pos { file, line, column }: &Pos) {
    encoder.text(file);
    encoder.number(u64::from(*line));
    encoder.number(u64::from(*column));
}

pub fn pos(decoder: &mut Decoder<'_>) -> Option<Pos> {
    let file = decoder.text()?;
    Some(Pos { file, line: decoder.number()?.try_into().ok()?, column: decoder.number()?.try_into().ok()? })
}

pub fn put_diagnostic(encoder: &mut Encoder, diagnostic: &Diagnostic) {
    let Diagnostic { at, severity, message, hint } = diagnostic;
    encoder.maybe(at.as_ref(), put_pos);
    encoder.text(severity.word());
    encoder.text(message);
    encoder.maybe(hint.as_ref(), |encoder, hint| encoder.text(hint));
}

pub fn diagnostic(decoder: &mut Decoder<'_>) -> Option<Diagnostic> {
    let at = decoder.maybe(pos)?;
    let word = decoder.text()?;
    let all = [Severity::Error, Severity::Warning, Severity::Note];
    let severity = all.into_iter().find(|severity| severity.word() == &*word)?;
    let message = decoder.string()?;
    Some(Diagnostic { at, severity, message, hint: decoder.maybe(Decoder::string)? })
}

pub fn put_moment(encoder: &mut Encoder, moment: Timestamp) {
    encoder.signed(moment.as_second());
    encoder.signed(i64::from(moment.subsec_nanosecond()));
}

pub fn moment(decoder: &mut Decoder<'_>) -> Option<Timestamp> {
    Timestamp::new(decoder.signed()?, decoder.signed()?.try_into().ok()?).ok()
}
