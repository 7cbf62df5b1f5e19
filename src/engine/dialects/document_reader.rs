//! Reads the documents of one role one by one: each in its own scope, and keeps only those without errors.

use super::readings::ReadingContext;
use super::{Document, Input, Lowered};
use berth_base::diag::{Diagnostics, Severity};
use berth_base::parallel;
use berth_base::yaml::Scope;
use std::sync::Arc;

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
