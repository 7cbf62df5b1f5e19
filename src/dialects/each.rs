//! Documents of one role, read one by one: each with a scope of its own, and kept only if it is sound.

use super::{Document, Input, Lowered};
use crate::diag::Severity;
use crate::yaml::Scope;

/// What documents are read from, and what is made of them.
pub(super) struct Reader<'a, 'b> {
    pub input: &'a Input<'a>,
    pub lowered: &'b mut Lowered,
    /// Whether a document is of a version whose fields are not all known.
    pub is_newer: fn(&Document) -> bool,
}

impl Reader<'_, '_> {
    pub fn each(
        &mut self,
        wanted: impl Fn(&Document) -> bool,
        mut read: impl FnMut(&Scope, &Document, &mut Lowered),
    ) {
        for (index, document) in self.input.documents.iter().enumerate() {
            if !wanted(document) {
                continue;
            }
            let newer = (self.is_newer)(document);
            let unknown_fields = if newer { Severity::Warning } else { self.input.unknown_fields };
            let scope = Scope::new(document.at.file.clone(), unknown_fields);
            let mut made = Lowered::default();
            read(&scope, document, &mut made);
            // What is wrong, and yet no fault of the document itself.
            self.lowered.diagnostics.extend(std::mem::take(&mut made.diagnostics));
            if scope.has_errors() {
                // What was made of a document with errors is dropped: its last good form counts.
                self.lowered.faulty.insert(index);
            } else {
                self.keep(made);
            }
            self.lowered.diagnostics.extend(scope.into_diagnostics());
        }
    }

    fn keep(&mut self, mut made: Lowered) {
        self.lowered.clusters.append(&mut made.clusters);
        self.lowered.placements.append(&mut made.placements);
        self.lowered.workloads.append(&mut made.workloads);
        for (cluster, status) in made.statuses {
            let known = self.lowered.statuses.entry(cluster.clone()).or_default();
            known.cluster = cluster;
            known.scores.extend(status.scores);
        }
    }
}
