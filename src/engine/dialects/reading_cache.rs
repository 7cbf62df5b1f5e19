//! The readings of documents: an unchanged document in an unchanged context gives the same reading, so the
//! reading is reused and shared. Losing the cache costs time only.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Document, DocumentId};
use berth_base::cache::Cache;
use berth_base::diag::Severity;

/// The result of a reading, of any type.
type Made = Arc<dyn Any + Send + Sync>;

/// The cached readings, and the contexts they were read in.
#[derive(Debug, Default)]
pub struct ReadingCache {
    readings: RefCell<Cache<ReadingKey, Made>>,
    contexts: RefCell<BTreeMap<&'static str, Context>>,
}

/// The document with its file's path, which stands in diagnostics, and what it is read against.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReadingKey {
    document: DocumentId,
    path: Arc<str>,
    against: ReadingContext,
}

#[derive(Debug)]
struct Context {
    value: Box<dyn Any + Send>,
    number: u64,
}

/// The inputs of a reading beside the document: the rest of its cache key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadingContext {
    /// Tells the readings of one document apart.
    pub stage: &'static str,
    pub context: u64,
    pub unknown_fields: Severity,
}

impl ReadingCache {
    /// Returns the number of a context: unchanged as long as the value is equal.
    pub fn number<T: PartialEq + Send + 'static>(&self, name: &'static str, value: T) -> u64 {
        let mut contexts = self.contexts.borrow_mut();
        let number = match contexts.get(name) {
            Some(known) if known.value.downcast_ref::<T>() == Some(&value) => return known.number,
            known => known.map_or(0, |known| known.number + 1),
        };
        contexts.insert(name, Context { value: Box::new(value), number });
        number
    }

    /// Returns the cached reading of a document, or reads the document.
    pub fn recall<T: Send + Sync + 'static>(
        &self,
        document: &Document,
        against: ReadingContext,
        read: impl FnOnce() -> T,
    ) -> Arc<T> {
        let Some(id) = document.id else { return Arc::new(read()) };
        let key = ReadingKey { document: id, path: document.at.file.clone(), against };
        let known = self.readings.borrow_mut().get(&key);
        if let Some(Ok(made)) = known.map(Made::downcast) {
            return made;
        }
        let made = Arc::new(read());
        self.readings.borrow_mut().insert(key, made.clone());
        made
    }

    /// Forgets the readings that were not used since the last call.
    pub fn forget_unused(&self) {
        self.readings.borrow_mut().forget_unused();
    }
}
