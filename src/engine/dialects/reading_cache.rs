//! The readings of documents: an unchanged document in an unchanged context gives the same reading, so the
//! reading is reused and shared. Losing the cache costs time only.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Document;
use berth_base::diag::Severity;
use berth_base::yaml::Node;

/// The result of a reading, of any type.
type Made = Arc<dyn Any + Send + Sync>;

/// The cached readings by document, and the contexts they were read in.
#[derive(Debug, Default)]
pub struct ReadingCache {
    readings: RefCell<BTreeMap<(usize, &'static str), Reading>>,
    contexts: RefCell<BTreeMap<&'static str, Context>>,
}

#[derive(Debug)]
struct Reading {
    /// Keeps the address, which is the cache key, from being reused.
    _root: Arc<Node>,
    unknown_fields: Severity,
    context: u64,
    made: Made,
    used: bool,
}

#[derive(Debug)]
struct Context {
    value: Box<dyn Any + Send>,
    number: u64,
}

/// The inputs of a reading beside the document: the rest of its cache key.
#[derive(Clone, Copy, Debug)]
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
        let place = (Arc::as_ptr(&document.root) as usize, against.stage);
        if let Some(known) = self.readings.borrow_mut().get_mut(&place)
            && known.context == against.context
            && known.unknown_fields == against.unknown_fields
            && let Ok(made) = known.made.clone().downcast()
        {
            known.used = true;
            return made;
        }
        let made = Arc::new(read());
        let reading = Reading {
            _root: document.root.clone(),
            unknown_fields: against.unknown_fields,
            context: against.context,
            made: made.clone(),
            used: true,
        };
        self.readings.borrow_mut().insert(place, reading);
        made
    }

    /// Forgets readings that were not used since the last call.
    pub fn forget_unused(&self) {
        self.readings.borrow_mut().retain(|_, reading| std::mem::take(&mut reading.used));
    }
}
