//! `PlacementPolicy` and `ClusterPlacementPolicy` of `placement.kubefleet.dev`, the next API: successive
//! choices of clusters, each by terms and a number.
//!
//! Here are also `resourceSelectors`: objects by kind, and by namespace, name or labels; `syncStrategy` →
//! the annotations that members read; and the status of a policy: four conditions, and the clusters by
//! their progress.

mod cluster_selectors;

#[cfg(test)]
mod tests;

use serde_json::{Value as Json, json};

use super::annotations;
use super::common_mistakes::label_selector;
use super::describe::{ConditionStep, Word};
use super::placement::{self, PlacementSpec};
use super::select::{Reach, ResourceSelector, Selectors};
use super::strategy::{self, Applying, Method, TakeOver};
use crate::dialects::Described;
use berth_base::model::Key;
use berth_base::model::rollout::Strategy;
use berth_base::yaml::fields::{Fields, Scope};
use berth_base::yaml::node::Node;

/// The label by which policies select clusters by name. A cluster without the label gets its own name as the
/// value.
pub const ALIAS: &str = "kubefleet.dev/cluster-alias";

/// Reads a policy. Faults go to the scope; if there are any, the result must not be used.
pub fn read(scope: &Scope, root: &Node, key: &Key) -> Option<PlacementSpec> {
    let cluster_scoped = &*key.kind == "ClusterPlacementPolicy";
    let (mut fields, metadata) = placement::open(scope, root, cluster_scoped)?;
    let replaces = annotations::read_replaces(scope, root, key);
    let mut spec = fields.required_fields("spec")?;
    let own = (!cluster_scoped).then_some(metadata.namespace.as_str());
    let selectors = read_resources(&mut spec, own);
    let (applying, needs_namespace) = read_sync_strategy(&mut spec);
    let policy = cluster_selectors::policy(&mut spec, own.filter(|_| needs_namespace));
    spec.int_in("resourceRevisionHistoryLimit", 1..=20);
    // These fields have no effect, because berth creates no clusters.
    spec.str("clusterProviderClassName");
    spec.int_in("maxConcurrentClusterClaims", 1..=10);
    spec.finish();
    fields.finish();
    let mut rolling = strategy::DEFAULT;
    rolling.wanted = policy.selection.wanted();
    Some(PlacementSpec {
        key: key.clone(),
        origin: scope.pos(root.at),
        selectors: Some(selectors?),
        policy,
        named: Vec::new(),
        sync_annotations: applying.annotations(),
        strategy: Strategy::Rolling(rolling),
        replaces,
    })
}

const MOST_SELECTORS: usize = 10;

/// Reads the field. `own` is the namespace of a namespaced policy, which only selects objects there.
pub fn read_resources(spec: &mut Fields<'_>, own: Option<&str>) -> Option<Selectors> {
    if !spec.require("resourceSelectors") {
        return None;
    }
    let at = spec.place_of("resourceSelectors");
    let count = spec.list("resourceSelectors")?.len();
    if count == 0 || count > MOST_SELECTORS {
        let message = format!(
            "{} must have from 1 to {MOST_SELECTORS} entries, not {count}",
            spec.path_of("resourceSelectors")
        );
        spec.error_at("resourceSelectors", message);
    }
    let each = spec.each("resourceSelectors").into_iter();
    Some(Selectors { at, list: each.filter_map(|fields| selector(fields, own)).collect() })
}

fn selector(mut fields: Fields<'_>, own: Option<&str>) -> Option<ResourceSelector> {
    let group = fields.str("apiGroup").unwrap_or_default().to_owned();
    let version = fields.required_str("apiVersion");
    if let Some(text) = version.filter(|version| version.contains('/')) {
        let message = format!(
            "{} is `{text}`, but must be the version alone; the group goes into apiGroup",
            fields.path_of("apiVersion")
        );
        fields.error_at("apiVersion", message);
    }
    let kind = fields.required_str("kind");
    let name = fields.str("name").filter(|name| !name.is_empty());
    let labels = fields.node("labelSelector");
    if name.is_some() && labels.is_some() {
        let message = format!("{} and name exclude each other", fields.path_of("labelSelector"));
        fields.error_at("labelSelector", message);
    }
    let path = fields.path_of("labelSelector");
    let labels = labels.map(|node| label_selector(fields.scope(), node, &path));
    let namespace = fields.str("namespace").filter(|namespace| !namespace.is_empty());
    if let (Some(own), Some(asked)) = (own, namespace)
        && own != asked
    {
        let message = format!(
            "{} is `{asked}`, but a PlacementPolicy selects in its own namespace, `{own}`",
            fields.path_of("namespace")
        );
        fields.error_at("namespace", message);
    }
    let (at, path) = (fields.at(), fields.path().to_owned());
    fields.finish();
    // A faulty label selector must not become one that matches everything.
    let labels = match labels {
        Some(read) => Some(read?),
        None => None,
    };
    Some(ResourceSelector {
        at,
        path,
        group,
        version: version?.to_owned(),
        kind: kind?.to_owned(),
        name: name.map(str::to_owned),
        labels,
        namespace: namespace.filter(|_| own.is_none()).map(str::to_owned),
        // The API does not define that a namespace brings its contents.
        reach: Reach::Only,
    })
}

/// Reads the field. Also returns whether objects only go to clusters that have their namespace.
pub fn read_sync_strategy(spec: &mut Fields<'_>) -> (Applying, bool) {
    let usual = Applying { take_over: TakeOver::Never, ..Applying::default() };
    let Some(mut fields) = spec.fields("syncStrategy") else { return (usual, false) };
    let on_server =
        fields.choice("applyMethod", &["ClientSideApply", "ServerSideApply"]) == Some("ServerSideApply");
    let mut force = false;
    if let Some(mut options) = fields.fields("serverSideApplyOptions") {
        force = options.bool("forceConflicts") == Some(true);
        options.finish();
        if !on_server {
            let message =
                format!("{} has no effect without ServerSideApply", fields.path_of("serverSideApplyOptions"));
            fields.scope().warning(fields.place_of("serverSideApplyOptions"), message);
        }
    }
    let owned = fields.choice("whenOwnedByOthers", &["ShareOwnership", "ReportError"]);
    let drifted = fields.choice("whenDrifted", &["ApplyAnyway", "ReportError"]);
    let exists = fields.choice("whenAlreadyExists", &["AlwaysTakeOver", "TakeOverIfNoDiff", "ReportError"]);
    let deleted = fields.choice("whenPlacementDeleted", &["CleanUpResources", "OrphanResources"]);
    let namespace = fields.choice("whenNamespaceDoesNotExist", &["CreateNamespace", "ReportError"]);
    let compared = fields.choice("comparisonOption", &["PartialComparison", "FullComparison"]);
    fields.finish();
    let applying = Applying {
        method: if on_server { Method::ServerSide { force } } else { Method::ClientSide },
        take_over: match exists {
            Some("AlwaysTakeOver") => TakeOver::Always,
            Some("TakeOverIfNoDiff") => TakeOver::WithoutDifference,
            _ => TakeOver::Never,
        },
        co_owners: owned == Some("ShareOwnership"),
        compares_all: compared == Some("FullComparison"),
        keeps_drift: drifted == Some("ReportError"),
        orphans: deleted == Some("OrphanResources"),
    };
    (applying, namespace == Some("ReportError"))
}

/// The indexes of two conditions among those of a cluster.
const SYNCHRONIZED: usize = 2;
const AVAILABLE: usize = 4;

/// Returns the status of a policy. `clusters` has the conditions of each picked cluster, in order.
pub fn describe(described: &Described<'_>, clusters: Vec<Vec<ConditionStep>>) -> Json {
    let decision = described.decision;
    let wanted = described.fleet.and_then(|fleet| {
        let policy = fleet.placements.get(&decision.key)?.own_policy()?;
        policy.selection.wanted()
    });
    let reached = |step: usize| {
        clusters.iter().filter(|steps| steps.get(step).is_some_and(|step| step.word == Word::True)).count()
    };
    let (picked, synchronized, available) = (clusters.len(), reached(SYNCHRONIZED), reached(AVAILABLE));
    let condition = |kind: &str, done: bool, reasons: [&str; 2], message: String| {
        let (status, reason) = if done { ("True", reasons[0]) } else { ("False", reasons[1]) };
        json!({"type": kind, "status": status, "reason": reason, "message": message})
    };
    let is_blocked = decision.condition.as_ref().is_some_and(|one| one.reason == "InvalidResourceSelectors");
    let mut conditions = vec![condition(
        "ResourceCollected",
        !is_blocked,
        ["AllResourcesCollected", "FailedToCollectSomeResources"],
        format!("{} objects are selected", decision.objects.len()),
    )];
    conditions.extend(
        decision
            .condition
            .iter()
            .map(|one| condition(&one.kind, one.status, [&one.reason, &one.reason], one.message.clone())),
    );
    conditions.push(condition(
        "Synchronized",
        synchronized == picked,
        ["AllClustersSynchronized", "FailedToSynchronizeSomeClusters"],
        format!("{synchronized} of {picked} clusters have the objects"),
    ));
    conditions.push(condition(
        "Available",
        available == picked,
        ["ResourcesAvailableOnAllClusters", "ResourcesUnavailableOnSomeClusters"],
        format!("in {available} of {picked} clusters the objects are available"),
    ));
    json!({
        "conditions": conditions,
        "desiredClusters": wanted.unwrap_or(picked),
        "scheduledClusters": picked,
        "synchronizedClusters": synchronized,
        "resourcesAvailableClusters": available,
    })
}
