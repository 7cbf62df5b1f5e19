//! What files held when they were last read: an unchanged file is not parsed again, an unchanged
//! document not lowered again.
//!
//! Losing it costs time only. A file counts as unchanged where its bytes are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::documents::{self, FileDocuments};
use crate::dialects::Memory;
use crate::source::{SourceFile, SourceTree};
use crate::yaml::Limits;

/// One file as it was read.
#[derive(Debug)]
struct Entry {
    bytes: Arc<[u8]>,
    limits: Limits,
    documents: Arc<FileDocuments>,
}

/// The documents of files by path, and what was made of them.
#[derive(Debug, Default)]
pub struct Parsed {
    files: BTreeMap<Arc<str>, Entry>,
    pub(super) readings: Memory,
    count: usize,
}

impl Parsed {
    /// How many files were really parsed.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Forgets the files that are not in the tree.
    pub fn keep_only(&mut self, tree: &SourceTree) {
        let paths: BTreeSet<&Arc<str>> = tree.files.iter().map(|file| &file.path).collect();
        self.files.retain(|path, _| paths.contains(path));
    }

    pub(super) fn read(&mut self, file: &SourceFile, limits: &Limits) -> Arc<FileDocuments> {
        if let Some(Entry { bytes, limits: read_under, documents }) = self.files.get(&file.path)
            && read_under == limits
            && (Arc::ptr_eq(bytes, &file.bytes) || *bytes == file.bytes)
        {
            return documents.clone();
        }
        let documents = Arc::new(documents::read(&file.path, &file.bytes, limits));
        self.count += 1;
        let entry = Entry { bytes: file.bytes.clone(), limits: *limits, documents: documents.clone() };
        self.files.insert(file.path.clone(), entry);
        documents
    }
}
