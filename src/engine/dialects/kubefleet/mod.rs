//! KubeFleet (Azure Fleet Manager): member clusters, placements, overrides, envelopes.
//!
//! Documents are read one by one, then combined: selectors find their objects, overrides their workloads. A
//! faulty document is reported and left out; it never stops the others.

mod annotations;
mod cluster;
mod common_mistakes;
mod describe;
mod disruption;
mod envelope;
mod hub_refusals;
mod kinds;
mod make;
mod overrides;
mod placement;
mod placement_policy;
mod policy;
mod select;
mod staged_updates;
mod strategy;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Bearing, Claim, Dialect, Document, Input, Lowered, ReadingContext, Shown};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::placement::Source;
use berth_base::model::{Cluster, Key, Object, ObjectId, Placement, Shared, Template, Workload};
use berth_base::packed::{Packed, View};
use berth_base::yaml::{Limits, Scope};
use berth_base::{parallel, yaml};
use envelope::Envelope;
use kinds::Role;
use overrides::OverrideSpec;
use placement::PlacementSpec;
use select::{Item, Selectable};
use staged_updates::StagedUpdate;

pub(crate) use staged_updates::stages;
pub(crate) use strategy::rolling_update;

/// The switch that replaces ConfigMaps marked as envelopes by their contents, as older KubeFleets did.
const UNWRAP_CONFIG_MAPS: &str = "unwrapConfigMaps";

/// KubeFleet's parser.
pub const DIALECT: Dialect = Dialect {
    name: "kubefleet",
    claim: kinds::claim,
    lower,
    bearing: |_, claim| if claim == Claim::Inventory { Bearing::Alone } else { Bearing::Together },
    groups: &[kinds::CLUSTER_GROUP, kinds::PLACEMENT_GROUP, kinds::NEXT_GROUP],
    retired_groups: &["fleet.azure.com"],
    kinds: kinds::NAMES,
    reads: kinds::reads,
    cluster_kind: Some(&make::CLUSTER_KIND),
    is_placement: kinds::is_placement,
    staged_runs: Some(&make::STAGED_RUNS),
    cluster_scoped: kinds::CLUSTER_SCOPED,
    name_labels: &[placement_policy::ALIAS],
    access_role: kinds::access_role,
    carried_objects: envelope::carried_objects,
    switches: &[UNWRAP_CONFIG_MAPS],
    shown: Shown {
        short_names: kinds::SHORT_NAMES,
        placement_fields: kinds::placement_fields,
        describe: describe::describe,
        describe_run: |run, progress, standing| {
            let is_own = *run.key.group == *kinds::PLACEMENT_GROUP;
            is_own.then(|| staged_updates::status(run, progress, standing))
        },
        refused_by_hub: hub_refusals::refused_by_hub,
        ..Shown::NOTHING
    },
};

/// The documents after reading, each with its index in the input.
#[derive(Default)]
struct ReadDocuments {
    placements: Vec<(usize, Shared<PlacementSpec>)>,
    overrides: Vec<(usize, Shared<OverrideSpec>)>,
    envelopes: Vec<Shared<Envelope>>,
    staged: Vec<Shared<StagedUpdate>>,
}

/// The reading of a single document.
#[derive(Debug, Default)]
struct DocumentReading {
    cluster: Option<Shared<Cluster>>,
    placement: Option<Shared<PlacementSpec>>,
    over: Option<Shared<OverrideSpec>>,
    envelope: Option<Shared<Envelope>>,
    staged: Option<Shared<StagedUpdate>>,
    diagnostics: Diagnostics,
    faulty: bool,
}

fn lower(input: &Input<'_>, lowered: &mut Lowered) {
    let readings = parallel::map(&input.documents, |document| {
        let unknown_fields = kinds::unknown_fields(&document.version, input.unknown_fields);
        let against = ReadingContext { stage: "KubeFleet", context: 0, unknown_fields };
        document.recall(against, || read_one(input, document))
    });
    let mut read = ReadDocuments::default();
    for (index, one) in readings.iter().enumerate() {
        lowered.diagnostics.extend(one.diagnostics.iter().cloned());
        if one.faulty {
            lowered.faulty.insert(index);
            continue;
        }
        lowered.clusters.extend(one.cluster.clone());
        read.placements.extend(one.placement.clone().map(|spec| (index, spec)));
        read.overrides.extend(one.over.clone().map(|spec| (index, spec)));
        read.envelopes.extend(one.envelope.clone());
        read.staged.extend(one.staged.clone());
    }
    drop_rivals(&mut read, lowered);
    annotations::take_over(&mut read, lowered);
    take_staged_updates(input, &read, lowered);
    let mut workloads = place(input, &read, lowered);
    let keys: BTreeSet<Key> = read.placements.iter().map(|(_, spec)| spec.key.clone()).collect();
    let specs = read.overrides.into_iter().map(|(_, spec)| spec).collect();
    lowered.diagnostics.extend(overrides::bind(&mut workloads, specs, &keys));
    lowered.workloads.extend(workloads.into_iter().map(Shared::from));
}

fn scope_of(input: &Input<'_>, document: &Document) -> Scope {
    let unknown_fields = kinds::unknown_fields(&document.version, input.unknown_fields);
    input.scope(document, unknown_fields).refuse_nulls()
}

fn read_one(input: &Input<'_>, document: &Document) -> DocumentReading {
    let (scope, key, root) = (scope_of(input, document), &document.key, &document.open());
    let mut one = DocumentReading::default();
    match kinds::role(&key.group, &key.kind) {
        Some(Role::Cluster) => one.cluster = cluster::read(&scope, root).map(Into::into),
        Some(Role::Placement) => one.placement = placement::read(&scope, root, key).map(Into::into),
        Some(Role::PlacementPolicy) => {
            one.placement = placement_policy::read(&scope, root, key).map(Into::into);
        }
        Some(Role::Override) => one.over = overrides::read(&scope, root, key).map(Into::into),
        Some(Role::Envelope) => {
            one.envelope = envelope::read(&scope, root, &key.kind, &document.version).map(Into::into);
        }
        Some(Role::StagedUpdate | Role::Approval) => {
            one.staged = staged_updates::read(&scope, root, key).map(Into::into);
        }
        Some(Role::Eviction) => disruption::eviction(&scope, root, key),
        Some(Role::Budget) => disruption::budget(&scope, root, key),
        Some(Role::Bookkeeping) | None => {}
    }
    one.faulty = scope.has_errors();
    one.diagnostics = scope.into_diagnostics();
    one
}

/// Passes on a document's diagnostics; true if it is sound.
fn settle(scope: Scope, index: usize, lowered: &mut Lowered) -> bool {
    let sound = !scope.has_errors();
    if !sound {
        lowered.faulty.insert(index);
    }
    lowered.diagnostics.extend(scope.into_diagnostics());
    sound
}

fn take_staged_updates(input: &Input<'_>, read: &ReadDocuments, lowered: &mut Lowered) {
    let staged: Vec<&StagedUpdate> = read.staged.iter().map(|one| &**one).collect();
    let placements = read.placements.iter().map(|(_, spec)| &**spec);
    lowered.diagnostics.extend(staged_updates::check_references(&input.documents, placements, &staged));
    for one in staged {
        match one.clone() {
            StagedUpdate::Strategy(strategy) => lowered.stage_strategies.push(strategy),
            StagedUpdate::Run(run) => lowered.runs.push(run),
            StagedUpdate::Approval(approval) => lowered.stage_approvals.push(approval),
        }
    }
}

fn drop_rivals(read: &mut ReadDocuments, lowered: &mut Lowered) {
    let specs: Vec<_> = read.overrides.iter().map(|(_, spec)| spec.clone()).collect();
    let (refused, found) = overrides::refuse_rivals(&specs);
    lowered.diagnostics.extend(found);
    read.overrides.retain(|(index, spec)| {
        let rival = refused.contains(&spec.key);
        if rival {
            lowered.faulty.insert(*index);
        }
        !rival
    });
}

/// Looks up the objects of every placement; returns the workloads.
fn place(input: &Input<'_>, read: &ReadDocuments, lowered: &mut Lowered) -> Vec<Workload> {
    let stock = Selectable::new(input.plain, &read.envelopes);
    let mut workloads = Vec::new();
    for (index, spec) in &read.placements {
        let scope = scope_of(input, input.documents[*index]);
        let mut policy = spec.policy.clone();
        let mut workload = None;
        // A forbidden selection is no new version of the placed objects: these stay unchanged.
        let mut frozen = false;
        if let Some(selectors) = &spec.selectors {
            let selected = select::resolve(&scope, &stock, selectors, spec.namespace());
            if let Some(message) = selected.invalid {
                scope.warning(
                    selectors.at,
                    format!("{}: {message}, so its clusters stay unchanged", spec.key),
                );
                policy::block(&mut policy, policy::invalid_selectors(message));
                frozen = true;
            }
            let templates = templates(input, &scope, &stock, &selected.items, spec);
            let forms: Option<Vec<_>> = selected.items.iter().map(|item| stock.overrides(*item)).collect();
            // Until the forms are known, each cluster keeps its own.
            frozen |= forms.is_none();
            let overrides = forms.into_iter().flatten().flatten().collect::<Vec<_>>();
            workload = Some((selected.items, templates, overrides));
        }
        if !settle(scope, *index, lowered) {
            continue;
        }
        let (key, origin, named) = (spec.key.clone(), spec.origin.clone(), spec.named.clone());
        if let Some((items, templates, overrides)) = workload {
            lowered.selected.extend(items.into_iter().filter_map(Item::plain));
            let (key, origin) = (key.clone(), origin.clone());
            workloads.push(Workload {
                frozen,
                strategy: spec.strategy.clone(),
                overrides: overrides.into(),
                ..Workload::new(key, origin, templates)
            });
        }
        let source = Source::Own(Box::new(policy));
        lowered.placements.push(Placement { named, ..Placement::new(key, origin, source) }.into());
    }
    workloads
}

/// Returns the templates of the selected items. An object that is both plain and in an envelope is taken as
/// plain.
fn templates(
    input: &Input<'_>,
    scope: &Scope,
    stock: &Selectable<'_>,
    items: &[Item],
    spec: &PlacementSpec,
) -> Vec<Template> {
    let (envelopes, plain): (Vec<Item>, Vec<Item>) = items.iter().partition(|item| item.plain().is_none());
    let plain = plain.into_iter().flat_map(|item| stock.objects(item));
    let (mut old, mut plain): (Vec<_>, Vec<_>) = plain.partition(|object| is_one(object));
    if input.switched_off.contains(&UNWRAP_CONFIG_MAPS) {
        old.iter().for_each(|envelope| stays_closed(scope, envelope));
        plain.append(&mut old);
    }
    let inside = old.iter().flat_map(|envelope| unwrap(scope, envelope));
    let wrapped = envelopes.into_iter().flat_map(|item| stock.objects(item)).chain(inside);
    let mut objects = BTreeMap::new();
    for object in plain.into_iter().chain(wrapped) {
        let id = object.id.clone();
        if objects.contains_key(&id) {
            let message = format!("{} already carries {id}, so this copy is left out", spec.key);
            scope.report(Diagnostic::warning(object.origin.clone(), message));
            continue;
        }
        objects.insert(id, object);
    }
    let sync_annotations = Arc::new(spec.sync_annotations.clone());
    let template = |object: Arc<_>| Template {
        object,
        final_labels: Arc::default(),
        sync_annotations: sync_annotations.clone(),
        retained: Vec::new(),
    };
    objects.into_values().map(template).collect()
}

const MARK: &str = "/metadata/annotations/kubernetes-fleet.io~1envelope-configmap";

/// Reports whether an object is an envelope of the old form.
pub fn is_one(object: &Object) -> bool {
    let marked = object.content.pointer(MARK).and_then(View::as_str);
    object.id.group.is_empty() && &*object.id.kind == "ConfigMap" && marked == Some("true")
}

/// Warns of an envelope that members get unopened.
pub(crate) fn stays_closed(scope: &Scope, envelope: &Object) {
    let message = format!(
        "{} is an envelope of the old form: the ConfigMap is placed, and not its content",
        envelope.id
    );
    let hint = "use a ResourceEnvelope or ClusterResourceEnvelope, or take `spec.kubefleet.unwrapConfigMaps: false` \
                out of berth.yaml";
    scope.report(Diagnostic::warning(envelope.origin.clone(), message).hint(hint));
}

/// Returns the objects inside. Faults go to the scope, at the ConfigMap.
pub fn unwrap(scope: &Scope, envelope: &Object) -> Vec<Arc<Object>> {
    let id = &envelope.id;
    let message = format!("{id} is an envelope of the old form: its content is placed instead");
    let hint = "use a ResourceEnvelope or ClusterResourceEnvelope; today's KubeFleet places such a ConfigMap as it is, and so \
         does berth with `spec.kubefleet.unwrapConfigMaps: false` in berth.yaml";
    scope.report(Diagnostic::warning(envelope.origin.clone(), message).hint(hint));
    let data = envelope.content.get("data");
    let mut objects = Vec::new();
    for (key, value) in data.into_iter().flat_map(View::entries) {
        let at = format!("{id}: data.{key}");
        let fault = |fault: String| {
            scope.report(Diagnostic::error(envelope.origin.clone(), format!("{at}{fault}")));
        };
        let read = yaml::read(value.as_str().unwrap_or_default().as_bytes(), &Limits::of_a_part());
        for one in read.faults.iter().filter(|one| one.severity == berth_base::diag::Severity::Error) {
            fault(format!(", line {}: {}", one.at.line, one.message));
        }
        for document in &read.documents {
            let content = document.root.to_json();
            let Some(inner) = ObjectId::of(&content) else {
                fault(" must hold objects with apiVersion, kind and metadata.name".to_owned());
                continue;
            };
            if !inner.namespace.is_empty() && inner.namespace != id.namespace {
                let namespaces = (&inner.namespace, &id.namespace);
                fault(format!(
                    ": {inner} is in namespace {}, but its envelope is in {}",
                    namespaces.0, namespaces.1
                ));
                continue;
            }
            objects.push(Arc::new(Object {
                id: inner,
                origin: envelope.origin.clone(),
                content: Packed::of(&content),
            }));
        }
    }
    objects
}
