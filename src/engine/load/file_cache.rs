//! The cache of parsed files: an unchanged file is not parsed again, an unchanged document not lowered
//! again.
//!
//! Losing it costs time only.

use std::sync::Arc;

use super::documents::{self, FileDocuments, FileKey};
use super::file_cache_codec;
use crate::dialects::ReadingCache;
use berth_base::cache::Cache;
use berth_base::codec::{Decoder, Encoder};
use berth_base::source::SourceFile;
use berth_base::yaml::{HONEST_REPEATS, Limits};

/// The work that aliases may cause in all files of a tree together, beyond the share of each file.
const REPEATS_OF_A_TREE: usize = 4_000_000;

/// A file as parsed.
#[derive(Clone, Debug)]
struct Parsed {
    /// The work that its aliases might take.
    repeats_allowed: usize,
    documents: Arc<FileDocuments>,
}

/// Parsed files, and the readings of their documents.
#[derive(Debug, Default)]
pub struct FileCache {
    files: Cache<FileKey, Parsed>,
    pub(super) readings: ReadingCache,
    count: usize,
}

impl FileCache {
    /// Returns the number of files that were parsed rather than found in the cache.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Forgets the files that were not used since the last call.
    pub fn forget_unused(&mut self) {
        self.files.forget_unused();
    }

    /// Encodes the parsed files for another process.
    pub fn encode(&self, encoder: &mut Encoder) {
        let usual = Limits::default().repeats;
        let is_usual =
            |parsed: &Parsed| is_same_reading(parsed.repeats_allowed, parsed.documents.repeats, usual);
        let files = self.files.iter().filter(|(_, parsed)| is_usual(parsed));
        file_cache_codec::encode(encoder, files.map(|(key, parsed)| (key, &*parsed.documents)));
    }

    /// Reads the entries that another process stored.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<FileCache> {
        let repeats_allowed = Limits::default().repeats;
        let parsed = |(key, documents)| (key, Parsed { repeats_allowed, documents });
        let files = file_cache_codec::decode(decoder)?.into_iter().map(parsed).collect();
        Some(FileCache { files, ..FileCache::default() })
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
        let key = (file.id, file.path.clone());
        if let Some(Parsed { repeats_allowed, documents }) = self.files.get(&key)
            && is_same_reading(repeats_allowed, documents.repeats, allowed)
        {
            return documents;
        }
        self.count += 1;
        let limits = Limits { repeats: allowed, ..Limits::default() };
        let mut documents = documents::read(&file.path, &file.bytes, &limits);
        documents.identify(file.id);
        let parsed = Parsed { repeats_allowed: allowed, documents: documents.into() };
        self.files.insert(key, parsed.clone());
        parsed.documents
    }
}

/// Reports whether a file reads alike under both limits: aliases that took less than either allows were all
/// followed.
fn is_same_reading(allowed_then: usize, repeats: usize, allowed: usize) -> bool {
    allowed_then == allowed || repeats < allowed_then.min(allowed)
}
