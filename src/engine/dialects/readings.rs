//! The readings of documents: an unchanged document in an unchanged context has the same reading, so the
//! reading stays with the document and is shared. Losing it costs only time.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::ParsedDocument;
use berth_base::diag::Severity;

/// The result of a reading, of any type.
type Made = Arc<dyn Any + Send + Sync>;

/// The contexts in which documents are read, by stage.
#[derive(Debug, Default)]
pub struct ReadingContexts {
    contexts: Mutex<BTreeMap<&'static str, Context>>,
}

/// The last reading of each stage of one document.
#[derive(Debug, Default)]
pub struct Readings(Mutex<Vec<(ReadingContext, Made)>>);

/// A copy of a document may be changed, so it begins without readings.
impl Clone for Readings {
    fn clone(&self) -> Readings {
        Readings::default()
    }
}

#[derive(Debug)]
struct Context {
    value: Box<dyn Any + Send>,
    number: u64,
}

/// The inputs of a reading besides the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingContext {
    /// Distinguishes the readings of one document.
    pub stage: &'static str,
    pub context: u64,
    pub unknown_fields: Severity,
}

impl ReadingContext {
    /// Returns the context of readings that depend only on the document.
    pub fn alone(stage: &'static str) -> ReadingContext {
        ReadingContext { stage, context: 0, unknown_fields: Severity::Error }
    }
}

impl ReadingContexts {
    /// Returns the number of a context, which changes only with the value.
    pub fn number<T: PartialEq + Send + 'static>(&self, name: &'static str, value: T) -> u64 {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match contexts.get(name) {
            Some(known) if known.value.downcast_ref::<T>() == Some(&value) => return known.number,
            known => known.map_or(0, |known| known.number + 1),
        };
        contexts.insert(name, Context { value: Box::new(value), number });
        number
    }
}

impl ParsedDocument {
    /// Returns the cached reading, or reads the document.
    pub fn recall<T: Send + Sync + 'static>(
        &self,
        against: ReadingContext,
        read: impl FnOnce() -> T,
    ) -> Arc<T> {
        let Some(readings) = &self.readings else { return Arc::new(read()) };
        let kept = || readings.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().iter().find(|(one, _)| *one == against).map(|(_, made)| made.clone());
        if let Some(Ok(made)) = known.map(Made::downcast) {
            return made;
        }
        let made = Arc::new(read());
        let is_other =
            |one: &ReadingContext| (one.stage, one.unknown_fields) != (against.stage, against.unknown_fields);
        let mut kept = kept();
        kept.retain(|(one, _)| is_other(one));
        // Most documents have one reading.
        kept.reserve_exact(1);
        kept.push((against, made.clone()));
        made
    }
}
