//! Reads a file's bytes into documents, as kubectl would, with the place of every value.
//!
//! An unreadable document is reported, and affects no other document. Bytes, depth and the number of
//! values (after aliases are resolved) are limited, so that no file can crash the reader.
//!
//! [`read_stored`] reads files that berth wrote: one document each. The reader of people's files reads
//! them too, so that untrusted text is at worst an error.

use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScanError};

use super::builder::Builder;
use super::fault::{self, Fault, error, too_many_values};
use super::node::{Mark, Node};
use super::split::{self, Slice, last_line, split};
use crate::diag::Severity;

/// The documents of a file, and its faults.
#[derive(Clone, Debug, Default)]
pub struct Read {
    pub documents: Vec<ReadDocument>,
    pub faults: Vec<Fault>,
    /// The work that aliases took, see [`Limits::repeats`].
    pub repeats: usize,
    /// The number of values, including those that aliases repeat.
    pub values: usize,
}

/// A readable document.
#[derive(Clone, Debug)]
pub struct ReadDocument {
    pub root: Node,
    /// Its text in the file, including a leading `---`.
    pub bytes: Range<usize>,
    /// The line of the file on which its text begins.
    pub line: u32,
}

/// The maximal numbers of faults for a document and for a file: more would not help.
const MOST_FAULTS: usize = 100;
const MOST_FAULTS_OF_A_FILE: usize = 1000;

/// Reads all documents of a file. Empty documents are left out.
pub fn read(text: &[u8], limits: &Limits) -> Read {
    let (text, skipped) = match usable_text(text, limits) {
        Ok(usable) => usable,
        Err(fault) => return Read { faults: vec![fault], ..Read::default() },
    };
    let mut result = Read::default();
    let mut left = *limits;
    for slice in split(text) {
        let bytes = slice.bytes.start + skipped..slice.bytes.end + skipped;
        if result.faults.len() >= MOST_FAULTS_OF_A_FILE {
            let fault = error(
                Mark { line: slice.line, column: 1 },
                "too many errors; the rest of the file is not \
                read",
                None,
            );
            result.faults.push(Fault { unreadable: Some(bytes.start..text.len() + skipped), ..fault });
            break;
        }
        let mut builder = Builder::new(&mut left);
        let outcome = read_slice(text, &slice, &mut builder);
        let (found, warnings) = builder.into_faults();
        let mut faults: Vec<Fault> = found.into_iter().chain(outcome.as_ref().err().cloned()).collect();
        for fault in &mut faults {
            fault.unreadable = Some(bytes.clone());
        }
        faults.truncate(MOST_FAULTS);
        if faults.is_empty() {
            let root = outcome.ok().flatten().filter(|root| !root.is_null());
            result.documents.extend(root.map(|root| ReadDocument { root, bytes, line: slice.line }));
        }
        result.faults.extend(faults);
        result.faults.extend(warnings.into_iter().take(MOST_FAULTS));
    }
    result.repeats = limits.repeats - left.repeats;
    result.values = limits.nodes - left.nodes;
    result
}

/// Returns the file as text without its byte order mark, and the length of the mark.
fn usable_text<'a>(bytes: &'a [u8], limits: &Limits) -> Result<(&'a str, usize), Fault> {
    let whole = |line: u32, message: String, hint: &str| Fault {
        at: Mark { line, column: line.min(1) },
        severity: Severity::Error,
        message,
        hint: Some(hint.to_owned()),
        unreadable: Some(0..bytes.len()),
    };
    if bytes.len() > limits.bytes {
        let message = format!("the file has {} bytes, and berth reads at most {}", bytes.len(), limits.bytes);
        return Err(whole(0, message, "split it into smaller files"));
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(whole(0, "the file is UTF-16 text".to_owned(), "save it as UTF-8"));
    }
    let skipped = if bytes.starts_with(&[0xEF, 0xBB, 0xBF]) { 3 } else { 0 };
    match std::str::from_utf8(&bytes[skipped..]) {
        Ok(text) => Ok((text, skipped)),
        Err(error) => {
            let line = last_line(&bytes[..skipped + error.valid_up_to()]);
            Err(whole(line, "the file is not UTF-8 text".to_owned(), "save it as UTF-8"))
        }
    }
}

fn read_slice(text: &str, slice: &Slice, builder: &mut Builder<'_>) -> Result<Option<Node>, Fault> {
    let text = &text[slice.bytes.clone()];
    if let Some(line) = slice.junk {
        let hint = "begin the next document with a line `---`";
        return Err(error(Mark { line, column: 1 }, "nothing may follow `...` on its line", Some(hint)));
    }
    check_characters(text, slice.line)?;
    // The scanner stores all tokens of a list in brackets before it returns the first, so they are counted
    // here.
    let indicators = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if indicators > builder.values_left() {
        return Err(too_many_values(Mark { line: slice.line, column: 1 }));
    }
    let joined = split::join_surrogates(text);
    let place = |at: Mark| split::correct_surrogates(&joined, slice.line, at);
    let mut parser = Parser::new_from_str(&joined.text);
    // Each byte causes a few events at most; this only guards against a parser that makes no progress.
    let mut events_left = text.len().saturating_mul(8).saturating_add(64);
    let mut documents = 0;
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|fault| {
            let fault = syntax(&fault, slice.line);
            let fault = Fault { at: place(fault.at), ..fault };
            pasted(text, slice.line, &fault).unwrap_or(fault)
        })?;
        let at = place(mark(span.start, slice.line));
        events_left = events_left.saturating_sub(1);
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) if documents > 0 => {
                let hint = "begin the next document with a line `---`";
                return Err(error(at, "a second value follows the first", Some(hint)));
            }
            Event::DocumentStart(_) => documents += 1,
            event => builder.take(event, at)?,
        }
        if events_left == 0 {
            return Err(error(at, "the document cannot be parsed", None));
        }
    }
    Ok(builder.finish())
}

/// Refuses characters that YAML forbids, and characters that only some readers treat as line breaks.
fn check_characters(text: &str, first_line: u32) -> Result<(), Fault> {
    let doubtful = |c: char| match c {
        '\t' | '\n' | '\r' => false,
        '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{FFFE}' | '\u{FFFF}' => true,
        c => c.is_control(),
    };
    let Some((at, c)) = text.char_indices().find(|(_, c)| doubtful(*c)) else { return Ok(()) };
    let before = &text[..at];
    let line_start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let place = Mark {
        line: first_line.saturating_add(last_line(before.as_bytes()) - 1),
        column: clamp(before[line_start..].chars().count() + 1),
    };
    let code = u32::from(c);
    let message = match c {
        '\u{85}' | '\u{2028}' | '\u{2029}' => {
            format!("the character U+{code:04X} is a line break to some YAML readers and not to others")
        }
        _ => format!("the control character U+{code:04X} is not allowed"),
    };
    Err(error(place, &message, Some(&format!("write it as `\\u{code:04X}` inside double quotes"))))
}

fn syntax(fault: &ScanError, first_line: u32) -> Fault {
    let info = fault.info();
    let hint = match info {
        text if text.contains("tab") => Some("indent with spaces, not tabs"),
        text if text.contains("unknown anchor") => Some("an alias `*name` needs an earlier `&name`"),
        text if text.contains("mapping values are not allowed") => {
            Some("put text that contains `: ` in quotes")
        }
        _ => None,
    };
    error(mark(*fault.marker(), first_line), &format!("not YAML: {info}"), hint)
}

/// Returns the cause of a syntax error in pasted text: a blank that is not a space.
fn pasted(text: &str, first_line: u32, fault: &Fault) -> Option<Fault> {
    let lines = usize::try_from(fault.at.line.saturating_sub(first_line)).ok()?;
    let end: usize = text.split_inclusive('\n').take(lines + 1).map(str::len).sum();
    fault::blank_in_indentation(&text[..end], fault.at.line)
}

fn mark(marker: Marker, first_line: u32) -> Mark {
    Mark {
        line: clamp(marker.line()).saturating_add(first_line).saturating_sub(1),
        column: clamp(marker.col()).saturating_add(1),
    }
}

fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Inside a decision, a policy may nest as deep as in a source file.
const LIMITS: Limits = Limits { bytes: 64 << 20, depth: 200, nodes: 4_000_000, repeats: HONEST_REPEATS };

/// Reads the single document of a file; the error is one line.
pub fn read_stored(bytes: &[u8]) -> Result<Node, String> {
    let mut read = read(bytes, &LIMITS);
    if let Some(fault) = read.faults.iter().find(|fault| fault.severity == Severity::Error) {
        return Err(format!("line {}: {}", fault.at.line, fault.message));
    }
    match (read.documents.pop(), read.documents.is_empty()) {
        (Some(document), true) => Ok(document.root),
        (None, _) => Err("it is empty".to_owned()),
        (Some(_), false) => Err("it holds more than one document".to_owned()),
    }
}

/// Limits on the cost of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of the file. Text that aliases repeat may add the same amount again.
    pub bytes: usize,
    /// The deepest nesting of lists and mappings.
    pub depth: usize,
    /// The values in the file, including those that aliases repeat.
    pub nodes: usize,
    /// The work for aliases: the values that they repeat, and their text by [`TEXT_PER_STEP`] bytes.
    pub repeats: usize,
}

/// Bytes of repeated text that count like one repeated value.
pub(super) const TEXT_PER_STEP: usize = 100;

/// The alias work that every file may take.
pub const HONEST_REPEATS: usize = 10_000;

impl Limits {
    /// Returns limits for text within an object, and for files that berth wrote or a single machine reads:
    /// their alias work counts for no other file.
    pub fn of_a_part() -> Limits {
        Limits { repeats: HONEST_REPEATS, ..Limits::default() }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 10 << 20, depth: 100, nodes: 1_000_000, repeats: usize::MAX }
    }
}
