//! The cache of parsed files: an unchanged file is not parsed again, and an unchanged document is not lowered
//! again.
//!
//! Losing the cache costs only time.

use std::sync::Arc;

use super::Loaded;
use super::documents::{self, FileDocuments, FileKey, FileSize, Room};
use crate::dialects::{Document, ReadingContexts};
use berth_base::cache::Cache;
use berth_base::model::{Key, Shared};
use berth_base::parallel;
use berth_base::source::{SourceFile, SourceTree};
use berth_base::text::SharedTexts;
use berth_base::yaml::{HONEST_REPEATS, Limits};

/// The total work that aliases may take in all files of a tree, beyond the share of each file.
const REPEATS_OF_A_TREE: usize = 4_000_000;

/// The bytes of new files that are parsed before their sizes are checked; this bounds the memory of oversized
/// trees.
const BATCH: usize = 16 << 20;

/// A file as parsed.
#[derive(Clone, Debug)]
struct Parsed {
    /// The work that the file's aliases were allowed, and the work that they took.
    repeats_allowed: usize,
    repeats: usize,
    /// The size of the whole file, even if it is left out.
    size: FileSize,
    /// The tree's limit had no room for the file.
    is_left_out: bool,
    documents: Shared<FileDocuments>,
}

/// The last loaded tree.
#[derive(Debug)]
pub(super) struct LastLoad {
    pub(super) tree: SourceTree,
    pub(super) loaded: Loaded,
    /// Nothing in the tree is broken, so its history cannot change the result.
    pub(super) is_whole: bool,
    /// The documents that other documents are read against.
    pub(super) context: Vec<Document>,
    /// The size of all files together.
    pub(super) size: FileSize,
}

/// Parsed files, and the contexts in which their documents are read.
#[derive(Debug, Default)]
pub struct FileCache {
    files: Cache<FileKey, Parsed>,
    pub(super) contexts: ReadingContexts,
    pub(super) last: Option<LastLoad>,
    /// The kinds, namespaces and groups of documents, shared between documents.
    names: SharedTexts,
    count: usize,
    pub(super) room: Room,
}

impl FileCache {
    /// Returns the number of files that were parsed rather than found in the cache.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Drops the files that were not used since the last call.
    pub fn forget_unused(&mut self) {
        self.files.forget_unused();
    }

    /// Returns the cached documents of a file.
    pub(super) fn known(&self, file: &SourceFile) -> Option<&Shared<FileDocuments>> {
        self.files.peek(&(file.id, file.path.clone())).map(|parsed| &parsed.documents)
    }

    /// Reads a single file.
    pub(super) fn read(&mut self, file: &SourceFile) -> Shared<FileDocuments> {
        if let Some(known) = self.known(file) {
            return known.clone();
        }
        self.count += 1;
        let mut parsed = parse(file, Limits::default().repeats);
        parsed.share_names(&mut self.names);
        self.files.keep((file.id, file.path.clone()), parsed.clone());
        parsed.documents
    }

    /// Drops a file that no longer exists.
    pub(super) fn forget(&mut self, file: &SourceFile) {
        self.files.forget(&(file.id, file.path.clone()));
    }

    /// Reads files in the order of their paths, each path once. The files share the limits on aliases,
    /// documents and values: a file that exceeds them is left out, later ones are still read.
    pub(super) fn read_all<'f>(
        &mut self,
        files: impl Iterator<Item = &'f SourceFile>,
    ) -> Vec<(Arc<str>, Shared<FileDocuments>)> {
        let mut files: Vec<&SourceFile> = files.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        let (mut left, mut size) = (REPEATS_OF_A_TREE, FileSize::default());
        let mut all = Vec::with_capacity(files.len());
        let mut files = files.as_slice();
        while !files.is_empty() {
            let (some, rest) = files.split_at(self.batch(files));
            files = rest;
            let known: Vec<Option<Parsed>> =
                some.iter().map(|file| self.files.get(&(file.id, file.path.clone()))).collect();
            let new = some.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(file, _)| *file);
            let new: Vec<&SourceFile> = new.collect();
            self.count += new.len();
            // The share of alias work that each file has in any case.
            let mut new = parallel::map(&new, |file| parse(file, HONEST_REPEATS)).into_iter();
            for (file, known) in some.iter().zip(known) {
                let allowed = Limits::default().repeats.min(left.saturating_add(HONEST_REPEATS));
                let is_new = known.is_none();
                let mut parsed = known.or_else(|| new.next()).unwrap_or_else(|| parse(file, allowed));
                let has_room = size.plus(parsed.size).is_within(self.room.0);
                let is_other = !is_same_reading(parsed.repeats_allowed, parsed.repeats, allowed)
                    || has_room && parsed.is_left_out;
                if is_other {
                    self.count += usize::from(!is_new);
                    parsed = parse(file, allowed);
                }
                // Another limit on aliases gives other values.
                let next = size.plus(parsed.size);
                let is_left_out = !next.is_within(self.room.0) && !parsed.is_left_out;
                if is_left_out {
                    parsed.leave_out(&file.path);
                }
                if is_new || is_other || is_left_out {
                    parsed.repeats_allowed = allowed;
                    parsed.share_names(&mut self.names);
                    self.files.insert((file.id, file.path.clone()), parsed.clone());
                }
                if !parsed.is_left_out {
                    size = next;
                }
                left = left.saturating_sub(parsed.repeats.saturating_sub(HONEST_REPEATS));
                all.push((file.path.clone(), parsed.documents));
            }
        }
        all
    }

    /// Returns how many of these files to parse before checking their sizes.
    fn batch(&self, files: &[&SourceFile]) -> usize {
        let mut bytes = 0;
        let fits = |file: &&&SourceFile| {
            let before = bytes;
            bytes += if self.known(file).is_some() { 0 } else { file.bytes.len() };
            before < BATCH
        };
        files.iter().take_while(fits).count()
    }
}

fn parse(file: &SourceFile, repeats_allowed: usize) -> Parsed {
    let limits = Limits { repeats: repeats_allowed, ..Limits::default() };
    let mut documents = documents::read(&file.path, &file.bytes, &limits);
    documents.remember();
    let (repeats, size) = (documents.repeats, documents.size);
    Parsed { repeats_allowed, repeats, size, is_left_out: false, documents: documents.into() }
}

impl Parsed {
    fn leave_out(&mut self, path: &Arc<str>) {
        self.documents = FileDocuments::left_out(path, self.repeats).into();
        self.is_left_out = true;
    }

    fn share_names(&mut self, names: &mut SharedTexts) {
        for (document, _) in &mut self.documents.objects {
            let Key { kind, namespace, group, name: _ } = &mut document.key;
            [kind, namespace, group].into_iter().for_each(|text| names.share(text));
        }
    }
}

/// Reports whether a file reads the same under both limits: its aliases took less work than either allows.
fn is_same_reading(allowed_then: usize, repeats: usize, allowed: usize) -> bool {
    allowed_then == allowed || repeats < allowed_then.min(allowed)
}
