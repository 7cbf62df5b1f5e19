//! The cache of parsed files: an unchanged file is not parsed again, an unchanged document not lowered
//! again.
//!
//! Losing it costs time only. A file counts as unchanged if its bytes are equal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::documents::{self, FileDocuments};
use super::file_cache_codec::{self, FileDigest, Files};
use crate::dialects::ReadingCache;
use berth_base::codec::{Decoder, Encoder};
use berth_base::source::{SourceFile, SourceTree};
use berth_base::yaml::{HONEST_REPEATS, Limits};

/// The work that aliases may cause in all files of a tree together, beyond the share of each file.
const REPEATS_OF_A_TREE: usize = 4_000_000;

/// The cache entry of one file.
#[derive(Debug)]
struct Entry {
    bytes: Arc<[u8]>,
    /// The work that its aliases might take.
    repeats_allowed: usize,
    documents: Arc<FileDocuments>,
}

/// Parsed files by path, and the readings of their documents.
#[derive(Debug, Default)]
pub struct FileCache {
    files: BTreeMap<Arc<str>, Entry>,
    /// Entries that another process stored, until they are used.
    stored: Files,
    pub(super) readings: ReadingCache,
    count: usize,
}

impl FileCache {
    /// Returns the number of files that were parsed rather than found in the cache.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Forgets the files that are not in the tree.
    pub fn keep_only(&mut self, tree: &SourceTree) {
        let paths: BTreeSet<&Arc<str>> = tree.files.iter().map(|file| &file.path).collect();
        self.files.retain(|path, _| paths.contains(path));
        self.stored.clear();
    }

    /// Encodes the parsed files for another process.
    pub fn encode(&self, encoder: &mut Encoder) {
        let usual = Limits::default().repeats;
        let is_usual = |entry: &Entry| is_same_reading(entry.repeats_allowed, entry.documents.repeats, usual);
        let files = self.files.iter().filter(|(_, entry)| is_usual(entry));
        file_cache_codec::encode(
            encoder,
            files.map(|(path, entry)| (path, digest(&entry.bytes), &*entry.documents)),
        );
    }

    /// Reads the entries that another process stored.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<FileCache> {
        Some(FileCache { stored: file_cache_codec::decode(decoder)?, ..FileCache::default() })
    }

    /// Reads files in the order of their paths, each path once. They share the limit on aliases.
    pub(super) fn read_all<'f>(
        &mut self,
        files: impl Iterator<Item = &'f SourceFile>,
    ) -> Vec<(Arc<str>, Arc<FileDocuments>)> {
        let mut files: Vec<&SourceFile> = files.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        let mut left = REPEATS_OF_A_TREE;
        let mut read = |file: &SourceFile| {
            let allowed = Limits::default().repeats.min(left.saturating_add(HONEST_REPEATS));
            let documents = self.read(file, allowed);
            left = left.saturating_sub(documents.repeats.saturating_sub(HONEST_REPEATS));
            (file.path.clone(), documents)
        };
        files.into_iter().map(&mut read).collect()
    }

    fn read(&mut self, file: &SourceFile, allowed: usize) -> Arc<FileDocuments> {
        if let Some(Entry { bytes, repeats_allowed, documents }) = self.files.get(&file.path)
            && is_same_reading(*repeats_allowed, documents.repeats, allowed)
            && (Arc::ptr_eq(bytes, &file.bytes) || *bytes == file.bytes)
        {
            return documents.clone();
        }
        let documents = self.recall(file, allowed).unwrap_or_else(|| {
            self.count += 1;
            let limits = Limits { repeats: allowed, ..Limits::default() };
            Arc::new(documents::read(&file.path, &file.bytes, &limits))
        });
        let entry =
            Entry { bytes: file.bytes.clone(), repeats_allowed: allowed, documents: documents.clone() };
        self.files.insert(file.path.clone(), entry);
        documents
    }

    fn recall(&mut self, file: &SourceFile, allowed: usize) -> Option<Arc<FileDocuments>> {
        if self.stored.is_empty() {
            return None;
        }
        let (of, documents) = self.stored.remove(&file.path)?;
        let is_same = is_same_reading(Limits::default().repeats, documents.repeats, allowed);
        (is_same && of == digest(&file.bytes)).then_some(documents)
    }
}

/// Reports whether a file reads alike under both limits: aliases that took less than either allows were all
/// followed.
fn is_same_reading(allowed_then: usize, repeats: usize, allowed: usize) -> bool {
    allowed_then == allowed || repeats < allowed_then.min(allowed)
}

fn digest(bytes: &[u8]) -> FileDigest {
    let mut digest = [0; 20];
    digest.copy_from_slice(&Sha256::digest(bytes)[..20]);
    digest
}
