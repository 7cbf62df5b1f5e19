//! What files held when they were last read: an unchanged file is not parsed again, an unchanged
//! document not lowered again.
//!
//! Losing it costs time only. A file counts as unchanged where its bytes are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::documents::{self, FileDocuments};
use super::stored::{self, FileDigest, Files};
use crate::codec::{Decoder, Encoder};
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
    /// What another process left, until it is asked for.
    stored: Files,
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
        self.stored.clear();
    }

    /// Writes down what was parsed, for another process.
    pub fn encode(&self, encoder: &mut Encoder) {
        let limits = Limits::default();
        let files = self.files.iter().filter(|(_, entry)| entry.limits == limits);
        stored::encode(encoder, files.map(|(path, entry)| (path, digest(&entry.bytes), &*entry.documents)));
    }

    /// What another process wrote down.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Parsed> {
        Some(Parsed { stored: stored::decode(decoder)?, ..Parsed::default() })
    }

    pub(super) fn read(&mut self, file: &SourceFile, limits: &Limits) -> Arc<FileDocuments> {
        if let Some(Entry { bytes, limits: read_under, documents }) = self.files.get(&file.path)
            && read_under == limits
            && (Arc::ptr_eq(bytes, &file.bytes) || *bytes == file.bytes)
        {
            return documents.clone();
        }
        let documents = self.recall(file, limits).unwrap_or_else(|| {
            self.count += 1;
            Arc::new(documents::read(&file.path, &file.bytes, limits))
        });
        let entry = Entry { bytes: file.bytes.clone(), limits: *limits, documents: documents.clone() };
        self.files.insert(file.path.clone(), entry);
        documents
    }

    fn recall(&mut self, file: &SourceFile, limits: &Limits) -> Option<Arc<FileDocuments>> {
        if self.stored.is_empty() || *limits != Limits::default() {
            return None;
        }
        let (of, documents) = self.stored.remove(&file.path)?;
        (of == digest(&file.bytes)).then_some(documents)
    }
}

fn digest(bytes: &[u8]) -> FileDigest {
    let mut digest = [0; 20];
    digest.copy_from_slice(&Sha256::digest(bytes)[..20]);
    digest
}
