//! The readings of documents: an unchanged document in an unchanged context has the same reading, so the
//! reading stays with the document and is shared. Losing it costs only time.
//!
//! The documents of one role are read one by one, each in its own scope. Only those without errors are
//! kept.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Document, Input, Lowered, ParsedDocument};
use berth_base::diag::{Diagnostics, Severity};
use berth_base::parallel;
use berth_base::yaml::Scope;

/// The result of a reading, of any type.
type AnyReading = Arc<dyn Any + Send + Sync>;

/// The contexts in which documents are read, by stage.
#[derive(Debug, Default)]
pub struct ReadingContexts {
    contexts: Mutex<BTreeMap<&'static str, Context>>,
}

/// The last reading of each stage of one document.
#[derive(Debug, Default)]
pub struct Readings(Mutex<Vec<(ReadingContext, AnyReading)>>);

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
        if let Some(Ok(made)) = known.map(AnyReading::downcast) {
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

/// A dialect's input, and the result to which its documents are added.
pub(super) struct Reader<'a, 'b> {
    pub input: &'a Input<'a>,
    pub lowered: &'b mut Lowered,
    /// Reports whether a document's version may have fields unknown to berth.
    pub is_newer: fn(&Document) -> bool,
    /// Nulls in a spec are errors.
    pub refuses_nulls: bool,
}

/// The result of one document.
struct Reading<Given> {
    made: Lowered,
    /// The context that this document adds for later documents.
    given: Given,
    /// The document's own diagnostics.
    diagnostics: Diagnostics,
    faulty: bool,
}

/// The cache stage and context of a reading, and a test for documents that do not depend on the context.
pub(super) struct Recall<'c> {
    pub stage: &'static str,
    /// See [`super::ReadingContexts::number`].
    pub context: u64,
    /// Reports whether the document depends on no other document.
    pub stands_alone: &'c (dyn Fn(&Document) -> bool + Sync),
}

impl Recall<'_> {
    /// Returns a stage whose documents depend only on themselves.
    pub fn alone(stage: &'static str) -> Recall<'static> {
        Recall { stage, context: 0, stands_alone: &|_| true }
    }
}

impl<'a> Reader<'a, '_> {
    /// Reads the wanted documents into the reader's result and context.
    pub fn each(
        &mut self,
        wanted: impl Fn(&Document) -> bool,
        mut read: impl FnMut(&Scope, &Document, &mut Lowered),
    ) {
        let (input, nulls) = (self.input, self.refuses_nulls);
        for (index, document, unknown_fields) in self.those(wanted) {
            let scope = scope_of(input, document, unknown_fields, nulls);
            let reading = read_one(scope, |scope, made| read(scope, document, made));
            keep(self.lowered, index, &reading);
        }
    }

    /// Reads like [`Reader::each`] and caches the reading, for documents whose only effect is the result made
    /// of them.
    pub(crate) fn each_recalled(
        &mut self,
        recall: &Recall<'_>,
        wanted: impl Fn(&Document) -> bool,
        read: impl Fn(&Scope, &Document, &mut Lowered) + Sync,
    ) {
        self.each_recalled_with(recall, wanted, read, |()| {});
    }

    /// Reads like [`Reader::each_recalled`], for documents that also add context for later ones. That context
    /// counts even if the document is faulty.
    pub(crate) fn each_recalled_with<Given: Send + Sync + 'static>(
        &mut self,
        recall: &Recall<'_>,
        wanted: impl Fn(&Document) -> bool,
        read: impl Fn(&Scope, &Document, &mut Lowered) -> Given + Sync,
        mut take: impl FnMut(&Given),
    ) {
        let (input, nulls) = (self.input, self.refuses_nulls);
        let wanted = self.those(wanted);
        let readings = parallel::map(&wanted, |(_, document, unknown_fields)| {
            let fresh = || {
                let scope = scope_of(input, document, *unknown_fields, nulls);
                read_one(scope, |scope, made| read(scope, document, made))
            };
            let Recall { stage, context, stands_alone } = *recall;
            let against = ReadingContext { stage, context, unknown_fields: *unknown_fields };
            if stands_alone(document) { document.recall(against, fresh) } else { Arc::new(fresh()) }
        });
        for ((index, ..), reading) in wanted.iter().zip(&readings) {
            take(&reading.given);
            keep(self.lowered, *index, reading);
        }
    }

    /// Returns the wanted documents, with their indexes and the severity of unknown fields.
    fn those(&self, wanted: impl Fn(&Document) -> bool) -> Vec<(usize, &'a Document, Severity)> {
        let input = self.input;
        let wanted = input.documents.iter().enumerate().filter(|(_, document)| wanted(document));
        let each = wanted.map(|(index, document)| {
            let newer = (self.is_newer)(document);
            (index, *document, if newer { Severity::Warning } else { input.unknown_fields })
        });
        each.collect()
    }
}

fn scope_of(input: &Input<'_>, document: &Document, unknown_fields: Severity, refuses_nulls: bool) -> Scope {
    let scope = input.scope(document, unknown_fields);
    if refuses_nulls { scope.refuse_nulls() } else { scope }
}

fn read_one<Given>(scope: Scope, read: impl FnOnce(&Scope, &mut Lowered) -> Given) -> Reading<Given> {
    let mut made = Lowered::default();
    let given = read(&scope, &mut made);
    let faulty = scope.has_errors();
    Reading { made, given, diagnostics: scope.into_diagnostics(), faulty }
}

fn keep<Given>(lowered: &mut Lowered, index: usize, reading: &Reading<Given>) {
    let made = &reading.made;
    // Other diagnostics are not the document's fault.
    lowered.diagnostics.extend(made.diagnostics.iter().cloned());
    if reading.faulty {
        // The result of a document with errors is dropped: its last good form is used.
        lowered.faulty.insert(index);
    } else {
        lowered.clusters.extend_from_slice(&made.clusters);
        lowered.placements.extend_from_slice(&made.placements);
        lowered.workloads.extend_from_slice(&made.workloads);
        for (cluster, status) in &made.statuses {
            let known = lowered.statuses.or_default(cluster);
            known.cluster.clone_from(cluster);
            known.scores.extend(status.scores.clone());
        }
    }
    lowered.diagnostics.extend(reading.diagnostics.iter().cloned());
}
