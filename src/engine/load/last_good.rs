//! Last good forms: a broken file is not a deletion, so its last readable objects stay until the file is
//! mended.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::documents::{self, Slot};
use crate::dialects::{Document, ParsedDocument};
use berth_base::diag::Pos;
use berth_base::model::Key;
use berth_base::yaml::{Limits, emit};

/// The source of last good forms.
#[derive(Clone, Copy)]
pub enum History<'a> {
    /// The first pass: no decision depends on a file yet.
    None,
    /// Current decisions may exist, but their source is unavailable.
    Unavailable,
    /// Returns the last good form of a path; `None` for a new file.
    Known(&'a dyn Fn(&str) -> Option<Arc<[u8]>>),
}

impl std::fmt::Debug for History<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            History::None => "None",
            History::Unavailable => "Unavailable",
            History::Known(_) => "Known",
        })
    }
}

/// A file with a document that is not valid.
#[derive(Debug)]
pub(super) struct BrokenFile<'a> {
    pub path: &'a str,
    /// The file's text, if it has any.
    pub text: &'a [u8],
    /// The file's valid documents.
    pub good: Vec<(&'a Document, &'a Slot)>,
    /// Access rules refused a document of the file. Recording the file's last good form ensures that the
    /// refused document never counts as a good one later.
    pub refused: bool,
}

/// The last good forms of broken files.
#[derive(Debug, Default)]
pub(super) struct LastGood {
    pub documents: Vec<Document>,
    /// The complete last good form of each file, by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Broken files without a known last good form.
    pub unknown: BTreeSet<String>,
}

/// Looks up the last good forms of broken files. `good` are the keys of all valid documents.
pub(super) fn keep(broken: &[BrokenFile<'_>], good: &BTreeSet<&Key>, history: History<'_>) -> LastGood {
    let mut kept = LastGood::default();
    let mut seen: BTreeSet<Key> = BTreeSet::new();
    // A last good form may combine two forms, so it may be as large as both.
    let limits = Limits::default();
    let limits = Limits { bytes: limits.bytes * 2, nodes: limits.nodes * 2, ..limits };
    for file in broken {
        let last_good = match history {
            History::None => None,
            History::Unavailable => {
                kept.unknown.insert(file.path.to_owned());
                None
            }
            History::Known(last_good) => last_good(file.path),
        };
        if last_good.is_none() && !file.refused {
            continue;
        }
        let path: Arc<str> = file.path.into();
        let mut form = Vec::new();
        for (document, slot) in &file.good {
            append(&mut form, &chunk_of(file.text, document, slot));
        }
        let Some(bytes) = last_good else {
            kept.files.insert(file.path.to_owned(), form);
            continue;
        };
        let before = documents::read(&path, &bytes, &limits);
        let n_before = kept.documents.len();
        for (document, slot) in before.objects {
            if !good.contains(&document.key) && seen.insert(document.key.clone()) {
                append(&mut form, &chunk_of(&bytes, &document, &slot));
                kept.documents.push(document);
            }
        }
        // A file that lost no document needs no last good form.
        if kept.documents.len() == n_before && !file.refused {
            continue;
        }
        kept.files.insert(file.path.to_owned(), form);
    }
    kept
}

impl LastGood {
    /// Adds a document that its file lost. `rest` returns the text of the file's valid documents.
    pub(super) fn add(&mut self, document: &Document, text: &[u8], rest: impl FnOnce() -> Vec<u8>) {
        if self.documents.iter().any(|kept| kept.key == document.key) {
            return;
        }
        let path: Arc<str> = (&*document.at.file).into();
        append(self.files.entry(path.to_string()).or_insert_with(rest), text);
        let mut document = ParsedDocument { readings: None, ..(**document).clone() };
        document.at.file = path;
        self.documents.push(document.into());
    }

    /// Reports whether a place is in a last good form rather than in the tree's file. Both have the same
    /// path, but different allocations of it.
    pub(super) fn holds(&self, at: &Pos) -> bool {
        self.documents.iter().any(|kept| Arc::ptr_eq(&kept.at.file, &at.file))
    }
}

/// Returns a document's own part of its file's text.
pub(super) fn chunk_of<'t>(text: &'t [u8], document: &Document, slot: &Slot) -> Cow<'t, [u8]> {
    if slot.listed {
        Cow::Owned(emit(&document.root.to_json()).into_bytes())
    } else {
        Cow::Borrowed(text.get(slot.bytes.clone()).unwrap_or_default())
    }
}

/// Appends a document's text, separated from the one before.
pub fn append(form: &mut Vec<u8>, chunk: &[u8]) {
    if !form.is_empty() && !form.ends_with(b"\n") {
        form.push(b'\n');
    }
    // A YAML directive needs an explicit document end before it.
    let has_directive = chunk.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"%"));
    if has_directive {
        form.extend_from_slice(b"...\n");
    } else if !form.is_empty() && !chunk.starts_with(b"---") {
        form.extend_from_slice(b"---\n");
    }
    form.extend_from_slice(chunk);
}
