//! KubeFed: clusters, federated types and Federated* objects → the neutral model.
//!
//! The control planes' settings, the federated types and the federated namespaces are read first, because the
//! meaning of every other object depends on them. Each file lists its deliberate differences from KubeFed.

mod cluster;
mod config;
mod federated;
mod kinds;
mod lifecycle;
pub mod make;
mod overrides;
mod placement;
mod preference;
mod propagation;
mod referenced_files;
mod types;

use super::readings::{Reader, Recall};
use super::{Dialect, Document, Input, Lowered, Shown};
use config::Planes;
use kinds::Role;
use placement::Namespaces;
use preference::Preferences;
use referenced_files::Files;
use types::Types;

pub const DIALECT: Dialect = Dialect {
    name: "kubefed",
    claim: kinds::claim,
    lower,
    bearing: kinds::bearing,
    groups: &[kinds::CORE, kinds::SCHEDULING, kinds::TYPES],
    kinds: kinds::KINDS,
    reads: kinds::reads,
    cluster_kind: Some(&make::CLUSTER_KIND),
    access_role: kinds::access_role,
    shown: Shown {
        placement_fields: kinds::placement_fields,
        describe: |described| propagation::describe(&described.reported),
        report: propagation::describe,
        ..Shown::NOTHING
    },
    ..Dialect::BLANK
};

/// The context of all Federated objects.
#[derive(Debug, Default)]
struct FederatedContext {
    planes: Planes,
    types: Types,
    namespaces: Namespaces,
    preferences: Preferences,
    files: Files,
}

impl FederatedContext {
    /// Reports whether a Federated object depends on no preference and no other file.
    fn is_enough_for(&self, document: &Document) -> bool {
        let key = &document.key;
        !self.preferences.has(&key.namespace, &key.name) && !referenced_files::names_any(document)
    }
}

fn lower(input: &Input<'_>, lowered: &mut Lowered) {
    let types = kinds::federated_in(input.documents.iter().copied());
    let mut context = FederatedContext::default();
    let mut reader = Reader { input, lowered, is_newer: kinds::is_newer, refuses_nulls: false };
    reader.each(
        |document| matches!(kinds::role(document, &types), Role::Config),
        |scope, document, _| config::read(scope, document, &mut context.planes),
    );
    reader.each(
        |document| matches!(kinds::role(document, &types), Role::TypeConfig),
        |scope, document, _| types::read(scope, document, &mut context.types),
    );
    reader.lowered.list_kinds.extend(context.types.list_kinds());
    reader.each_recalled(
        &Recall::alone("KubeFed cluster"),
        |document| matches!(kinds::role(document, &types), Role::Cluster),
        |scope, document, lowered| lowered.clusters.extend(cluster::read(scope, document).map(Into::into)),
    );
    reader.each(
        |document| matches!(kinds::role(document, &types), Role::Preference),
        |scope, document, _| preference::read(scope, document, &mut context.preferences),
    );
    reader.each(
        |document| matches!(kinds::role(document, &types), Role::Template | Role::OverrideList),
        |scope, document, _| referenced_files::read(scope, document, &mut context.files),
    );
    // A namespace narrows its contents, so all namespaces come first.
    let read_against = (context.planes.clone(), context.types.clone());
    let recall = Recall {
        stage: "Federated namespace",
        context: input.contexts.number("KubeFed types", read_against),
        stands_alone: &|document| context.is_enough_for(document),
    };
    let mut namespaces = Namespaces::default();
    reader.each_recalled_with(
        &recall,
        |document| kinds::role(document, &types) == Role::Federated { namespace: true },
        |scope, document, lowered| {
            let mut own = Namespaces::default();
            federated::read(scope, document, &context, &mut own, lowered);
            own
        },
        |own| namespaces.extend(own),
    );
    let context = FederatedContext { namespaces, ..context };
    let read_against = (context.planes.clone(), context.types.clone(), context.namespaces.clone());
    let recall = Recall {
        stage: "Federated object",
        context: input.contexts.number("KubeFed", read_against),
        stands_alone: &|document| context.is_enough_for(document),
    };
    reader.each_recalled(
        &recall,
        |document| kinds::role(document, &types) == Role::Federated { namespace: false },
        |scope, document, lowered| {
            federated::read(scope, document, &context, &mut Namespaces::default(), lowered);
        },
    );
    context.preferences.report_unmet(&mut lowered.diagnostics);
    context.files.report_unnamed(&mut lowered.diagnostics);
}

#[cfg(test)]
mod tests;
