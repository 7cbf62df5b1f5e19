//! Open Cluster Management: clusters, sets, bindings, placements and work sets → the neutral model.
//!
//! Sets and their bindings come first: they limit the clusters that a namespace's placements may pick. A
//! placement that OCM would admit and then report as misconfigured, without any cluster, is an error here.

mod cel_view;
mod cluster;
mod describe;
mod fields;
mod kinds;
mod placement;
mod rollout;
mod sets;
mod work_options;

#[cfg(test)]
mod tests;
mod works;

use super::readings::{Reader, Recall};
use super::{Dialect, Document, Input, Lowered, Shown};
pub(crate) use rollout::{duration, read as rollout_strategy};

use kinds::Role;
use sets::{Bindings, Sets};
use work_options::Plurals;

pub const DIALECT: Dialect = Dialect {
    name: "ocm",
    claim: kinds::claim,
    lower,
    bearing: kinds::bearing,
    groups: &[kinds::CLUSTER, kinds::WORK, kinds::ADD_ON],
    kinds: kinds::KINDS,
    reads: kinds::reads,
    cluster_kind: Some(&cluster::CLUSTER_KIND),
    is_placement: kinds::is_placement,
    access_role: kinds::access_role,
    carried_objects: works::carried_objects,
    shown: Shown {
        short_names: &[("mwrs", "ManifestWorkReplicaSet")],
        placement_fields: kinds::placement_fields,
        describe: describe::describe,
        acted_on_by_hub: kinds::acted_on_by_hub,
        ..Shown::NOTHING
    },
    ..Dialect::BLANK
};

/// The context of placements.
#[derive(Debug, Default)]
struct PlacementContext {
    sets: Sets,
    bindings: Bindings,
}

fn lower(input: &Input<'_>, lowered: &mut Lowered) {
    let mut context = PlacementContext::default();
    let mut reader = Reader { input, lowered, is_newer: kinds::is_newer, refuses_nulls: true };
    reader.each(of(Role::Set), |scope, document, _| sets::read(scope, document, &mut context.sets));
    reader.each(of(Role::Binding), |scope, document, _| {
        sets::read_bindings(scope, document, &context.sets, &mut context.bindings);
    });
    reader.each_recalled(&Recall::alone("ManagedCluster"), of(Role::Cluster), |scope, document, lowered| {
        lowered.clusters.extend(cluster::read(scope, document).map(Into::into));
    });
    sets::warn_of_missing(&context.sets, reader.lowered);
    reader.each_recalled(&Recall::alone("score"), of(Role::Score), |scope, document, lowered| {
        cluster::read_addon_score(scope, document, &mut lowered.statuses);
    });
    let read_against = (context.sets.clone(), context.bindings.clone());
    let context_number = input.contexts.number("OCM", read_against);
    let recall = Recall { context: context_number, ..Recall::alone("Placement") };
    reader.each_recalled(&recall, of(Role::Placement), |scope, document, lowered| {
        lowered.placements.extend(placement::read(scope, document, &context).map(Into::into));
    });
    let plurals = Plurals::of(input.plain);
    let context_number = input.contexts.number("OCM plurals", plurals.clone());
    let recall = Recall { context: context_number, ..Recall::alone("work") };
    reader.each_recalled(&recall, of(Role::Work), |scope, document, lowered| {
        if let Some((placement, workload)) = works::read_work_replica_set(scope, document, &plurals) {
            lowered.placements.push(placement.into());
            lowered.workloads.push(workload.into());
        }
    });
    let recall = Recall { context: context_number, ..Recall::alone("ManifestWork") };
    reader.each_recalled(&recall, of(Role::SingleWork), |scope, document, lowered| {
        if let Some((placement, workload)) = works::read_manifest_work(scope, document, &plurals) {
            lowered.placements.push(placement.into());
            lowered.workloads.push(workload.into());
        }
    });
}

fn of(role: Role) -> impl Fn(&Document) -> bool {
    move |document| kinds::role(document) == Some(role)
}
