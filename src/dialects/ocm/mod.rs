//! Open Cluster Management: clusters, sets, bindings, placements and work sets → the neutral model.
//!
//! Sets and their bindings come first: they say which clusters a namespace's placements may pick.
//! What OCM admits and then reports as misconfigured, taking all clusters away, is an error here.

mod bindings;
mod cluster;
mod common;
mod kinds;
mod placement;
mod rollout;
mod score;
mod sets;
mod work;

#[cfg(test)]
mod tests;

use super::{Dialect, Document, Input, Lowered};
use crate::diag::Severity;
use crate::yaml::Scope;
use bindings::Bindings;
use kinds::Role;
use sets::Sets;

pub const DIALECT: Dialect = Dialect {
    name: "ocm",
    claim: kinds::claim,
    groups: &[kinds::CLUSTER, kinds::WORK, kinds::ADD_ON],
    kinds: kinds::KINDS,
    lower,
    policy_text: |_, _| None,
};

/// What placements are read against.
#[derive(Debug, Default)]
struct Context {
    sets: Sets,
    bindings: Bindings,
}

fn lower(input: &Input<'_>, lowered: &mut Lowered) {
    let mut context = Context::default();
    let mut reader = Reader { input, lowered };
    reader.each(Role::Set, |scope, document, _| sets::read(scope, document, &mut context.sets));
    reader.each(Role::Binding, |scope, document, _| {
        bindings::read(scope, document, &context.sets, &mut context.bindings);
    });
    reader.each(Role::Cluster, |scope, document, lowered| {
        lowered.clusters.extend(cluster::read(scope, document));
    });
    reader.each(Role::Score, |scope, document, lowered| score::read(scope, document, &mut lowered.statuses));
    reader.each(Role::Placement, |scope, document, lowered| {
        lowered.placements.extend(placement::read(scope, document, &context));
    });
    reader.each(Role::Work, |scope, document, lowered| {
        if let Some((placement, workload)) = work::read(scope, document) {
            lowered.placements.push(placement);
            lowered.workloads.push(workload);
        }
    });
}

/// Reads documents of one role, each with a scope of its own.
struct Reader<'a, 'b> {
    input: &'a Input<'a>,
    lowered: &'b mut Lowered,
}

impl Reader<'_, '_> {
    fn each(&mut self, role: Role, mut read: impl FnMut(&Scope, &Document, &mut Lowered)) {
        for (index, document) in self.input.documents.iter().enumerate() {
            if kinds::role(document) != Some(role) {
                continue;
            }
            let unknown_fields =
                if kinds::is_newer(document) { Severity::Warning } else { self.input.unknown_fields };
            let scope = Scope::new(document.at.file.clone(), unknown_fields);
            let mut made = Lowered::default();
            read(&scope, document, &mut made);
            if scope.has_errors() {
                // What was made of a document with errors is dropped: its last good form counts.
                self.lowered.faulty.insert(index);
            } else {
                self.lowered.clusters.append(&mut made.clusters);
                self.lowered.placements.append(&mut made.placements);
                self.lowered.workloads.append(&mut made.workloads);
                for (cluster, status) in made.statuses {
                    let known = self.lowered.statuses.entry(cluster.clone()).or_default();
                    known.cluster = cluster;
                    known.scores.extend(status.scores);
                }
            }
            self.lowered.diagnostics.extend(scope.into_diagnostics());
        }
    }
}
