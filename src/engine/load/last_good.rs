//! Last good forms: a broken file is not a deletion, so its last readable objects stay until the file is
//! mended. A survey of a tree, without last good forms, is the input of the search for those.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::documents::{self, Slot};
use super::file_cache::FileCache;
use super::tree_objects::find_broken;
use super::{ReadTree, first, found_in};
use crate::dialects::{Claim, Document, ParsedDocument};
use berth_base::diag::{Pos, Severity};
use berth_base::model::Key;
use berth_base::source::SourceTree;
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

/// A tree's good documents and broken files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Every valid object, with its file and text.
    pub good: BTreeMap<Key, Text>,
    /// Files with a document that is not valid.
    pub broken: BTreeMap<String, Faults>,
}

/// An object's own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub path: String,
    pub bytes: Vec<u8>,
    /// The index among all documents, in the order of files and of the documents in each.
    pub place: usize,
}

/// The faults of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A part of the file is unreadable, so it may contain any object.
    pub unreadable: bool,
    /// Readable objects with a fault.
    pub objects: BTreeSet<Key>,
}

/// Surveys a published tree. Of its rivals, the first ones were used.
pub fn survey(tree: &SourceTree) -> Survey {
    survey_with_cache(tree, &mut FileCache::default())
}

/// Surveys a published tree like [`survey`], reusing cached files.
pub fn survey_with_cache(tree: &SourceTree, cache: &mut FileCache) -> Survey {
    let first = first(tree, cache);
    first.survey_beside(tree, &first.own_faults)
}

impl ReadTree {
    /// Reports whether every file of the tree is valid, so that no last good form is needed.
    pub fn is_whole(&self, tree: &SourceTree) -> bool {
        !tree.found.iter().any(|found| found.at.is_some() && found.severity != Severity::Note)
            && tree.rendered.failed.is_empty()
            && self.assembled.faulty.is_empty()
            && !self.objects.has_refused()
            && !self.objects.has_unreadable()
    }

    /// Returns the first of these files whose folder may contain all documents of a text, by the current
    /// access rules.
    pub fn home_for<'p>(&self, paths: &[&'p String], text: &[u8]) -> Option<&'p String> {
        let may_hold = |path: &&&String| {
            let file = documents::read(&path.as_str().into(), text, &Limits::of_a_part());
            file.objects.iter().all(|(document, _)| self.world.may_hold(document))
        };
        paths.iter().find(may_hold).copied()
    }

    /// Returns the first of these files for each set of access rights.
    pub fn apart_by_rights<'p>(&self, paths: impl Iterator<Item = &'p String>) -> Vec<&'p String> {
        let mut met = BTreeSet::new();
        let rights = |path: &&String| self.world.rules.numbers_of(path);
        paths.filter(|path| met.insert(rights(path))).collect()
    }

    /// Sorts the tree's documents into good and broken ones. All rivals count as broken.
    pub fn survey(&self, tree: &SourceTree) -> Survey {
        self.survey_beside(tree, &self.assembled.faulty)
    }

    /// Surveys like [`ReadTree::survey`], with these documents as the broken ones.
    fn survey_beside(&self, tree: &SourceTree, bad: &BTreeSet<usize>) -> Survey {
        let ReadTree { objects, assembled, loaded, .. } = self;
        let mut survey = Survey::default();
        for index in objects.countable(bad) {
            let (document, slot) = (&objects.documents[index], &objects.slots[index]);
            let path = document.at.file.to_string();
            let text = tree.files.get(&*path).map(|file| &*file.bytes).unwrap_or_default();
            let bytes = chunk_of(text, document, slot).into_owned();
            survey.good.insert(document.key.clone(), Text { path, bytes, place: index });
        }
        let found = found_in(tree, &loaded.config);
        for file in find_broken(tree, &found, objects, &assembled.faulty, History::None) {
            let unreadable = objects.is_unreadable(file.path);
            survey.broken.insert(file.path.to_owned(), Faults { unreadable, objects: BTreeSet::new() });
        }
        for index in &assembled.faulty {
            let document = &objects.documents[*index];
            if let Some(faults) = survey.broken.get_mut(&*document.at.file) {
                // An unknown kind may mean any kind.
                faults.unreadable |= assembled.claims.get(*index) == Some(&Claim::Unknown);
                faults.objects.insert(document.key.clone());
            }
        }
        for rivals in &objects.repeated {
            let keys = rivals.documents.iter().map(|index| &objects.documents[*index].key);
            for (key, file) in keys.flat_map(|key| rivals.others.iter().map(move |file| (key, file))) {
                survey.broken.entry(file.to_string()).or_default().objects.insert(key.clone());
            }
        }
        survey
    }
}
