//! The Cluster Inventory API of SIG Multicluster: a ClusterProfile describes a cluster for a manager.
//!
//! One cluster may have several profiles, in the namespaces of its users. They are merged by their name, like
//! all descriptions of one cluster.
//!
//! ClusterProfile → cluster. Its conditions decide whether it is ready, and its properties are also claims.

#[cfg(test)]
mod tests;

use serde_json::{Value as Json, json};

use super::{
    AccessRole, Bearing, Claim, ClusterKind, Dialect, Document, Input, Lowered, NewCluster, ReadKind,
    ReadingContext, clusters,
};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::meta;
use berth_base::model::cluster::{Readiness, Report};
use berth_base::model::{Cluster, Key, Shared};
use berth_base::packed::View;
use berth_base::yaml::{Fields, Scope};

pub const GROUP: &str = "multicluster.x-k8s.io";
pub const KIND: &str = "ClusterProfile";
pub const VERSION: &str = "v1alpha1";

/// The labels of a profile's cluster set, which some tools put on its namespace.
const SET_LABELS: [&str; 2] = ["multicluster.x-k8s.io/clusterset", "clusterset.multicluster.x-k8s.io"];

/// The label that names a profile's manager.
const MANAGER_LABEL: &str = "x-k8s.io/cluster-manager";

/// The namespace of profiles that `berth join` writes.
const NAMESPACE: &str = "fleet";

/// The inventory's parser.
pub const DIALECT: Dialect = Dialect {
    name: "inventory",
    claim: |documents| documents.iter().map(|document| claim(&document.key)).collect(),
    lower,
    bearing,
    groups: &[GROUP],
    kinds: &[KIND],
    reads: || vec![ReadKind::new(GROUP, KIND, &[VERSION], true)],
    cluster_kind: Some(&PROFILE),
    access_role: |key| if claim(key) == Claim::Foreign { AccessRole::Plain } else { AccessRole::Policy },
    ..Dialect::BLANK
};

/// A profile has no taints.
const PROFILE: ClusterKind = ClusterKind {
    group: GROUP,
    kind: KIND,
    effects: &[],
    cordon: None,
    dated: false,
    in_default_set: false,
    needs_endpoint: false,
    document,
};

/// Claims profiles. Other kinds of the group, such as ServiceExports, are objects that people place.
fn claim(key: &Key) -> Claim {
    match (&*key.group, &*key.kind) {
        (GROUP, KIND) => Claim::Inventory,
        (GROUP, "PlacementDecision") => Claim::Bookkeeping,
        _ => Claim::Foreign,
    }
}

/// Profiles are read against their namespaces.
fn bearing(document: &Document, claim: Claim) -> Bearing {
    match claim {
        Claim::Inventory => Bearing::Alone,
        Claim::Foreign if document.key.group.is_empty() && &*document.key.kind == "Namespace" => {
            Bearing::Context
        }
        _ => Bearing::Together,
    }
}

/// Makes the profile of a new member.
fn document(new: &NewCluster) -> Json {
    let mut labels = new.labels.clone();
    labels.insert(MANAGER_LABEL.to_owned(), "berth".to_owned());
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": KIND,
        "metadata": {"name": new.name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"displayName": new.name, "clusterManager": {"name": "berth"}},
    })
}

/// The reading of a single document.
#[derive(Debug)]
struct InventoryReading {
    cluster: Option<Shared<Cluster>>,
    diagnostics: Diagnostics,
    is_faulty: bool,
}

fn lower(input: &Input<'_>, lowered: &mut Lowered) {
    for (index, document) in input.documents.iter().enumerate() {
        let against = ReadingContext { stage: "inventory", context: 0, unknown_fields: input.unknown_fields };
        let one = document.recall(against, || read(input, document));
        lowered.diagnostics.extend(one.diagnostics.iter().cloned());
        if one.is_faulty {
            lowered.faulty.insert(index);
            continue;
        }
        if let Some(cluster) = &one.cluster {
            lowered.diagnostics.extend(set_of_namespace(input, document, cluster));
        }
        lowered.clusters.extend(one.cluster.clone());
    }
}

fn read(input: &Input<'_>, document: &Document) -> InventoryReading {
    // A server accepts `conditions: null`.
    let scope = input.scope(document, input.unknown_fields);
    let cluster = read_profile(&scope, document).map(Into::into);
    let is_faulty = scope.has_errors();
    InventoryReading { cluster, diagnostics: scope.into_diagnostics(), is_faulty }
}

/// Labels decide who may place where, so only those on the cluster itself count.
fn set_of_namespace(input: &Input<'_>, document: &Document, cluster: &Cluster) -> Option<Diagnostic> {
    let is_own = |one: &&&Document| {
        one.key.group.is_empty() && &*one.key.kind == "Namespace" && *one.key.name == *document.key.namespace
    };
    let namespace = input.plain.iter().find(is_own)?;
    let labels = namespace.root.get("metadata").and_then(|metadata| metadata.get("labels"))?;
    let label = |key: &str| labels.get(key).and_then(View::as_str).filter(|set| !set.is_empty());
    let set = SET_LABELS.iter().find_map(|key| label(key))?;
    if SET_LABELS.iter().any(|key| cluster.labels.contains_key(*key)) {
        return None;
    }
    let message =
        format!("{}: its namespace is of the cluster set `{set}`, which is not read there", document.key);
    let hint = format!("label the profile itself: `{}: {set}`", SET_LABELS[0]);
    Some(Diagnostic::warning(document.at.clone(), message).hint(hint))
}

/// The condition that the API defines, and the one that its proposal adds.
const HEALTHY: &str = "ControlPlaneHealthy";
const JOINED: &str = "Joined";

const LONGEST_NAME: usize = 253;
const LONGEST_VALUE: usize = 1024;

fn read_profile(scope: &Scope, document: &Document) -> Option<Cluster> {
    let root = document.open();
    let (mut fields, metadata) = meta::open(scope, &root)?;
    if metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required");
    }
    let mut cluster = Cluster {
        name: metadata.name.into(),
        origins: vec![document.at.clone()],
        labels: metadata.labels,
        leaving: metadata.deleting,
        applier: clusters::read_applier(scope, &root),
        ..Cluster::default()
    };
    if let Some(mut spec) = fields.required_fields("spec") {
        spec.str("displayName");
        if let Some(mut manager) = spec.required_fields("clusterManager") {
            check_manager(&mut manager, &cluster);
            manager.finish();
        }
        spec.finish();
    }
    if let Some(status) = fields.fields("status") {
        read_status(status, &mut cluster);
    }
    fields.finish();
    Some(cluster)
}

fn check_manager(manager: &mut Fields<'_>, cluster: &Cluster) {
    let Some(name) = manager.required_str("name") else { return };
    if let Some(label) = cluster.labels.get(MANAGER_LABEL).filter(|label| *label != name) {
        let message = format!(
            "{} is `{name}`, but the label {MANAGER_LABEL} is `{label}`; make them equal",
            manager.path_of("name")
        );
        manager.scope().warning(manager.place_of("name"), message);
    }
}

/// Reads a status, without the ways to reach the cluster: only its users need them.
fn read_status(mut status: Fields<'_>, cluster: &mut Cluster) {
    if let Some(version) = status.node("version") {
        cluster.details.insert("status.version".to_owned(), version.to_json());
    }
    let mut ready = None;
    if status.node("conditions").is_some_and(|node| !node.is_null()) {
        for mut condition in status.each("conditions") {
            let (kind, word) = (condition.str("type"), condition.str("status"));
            if kind == Some(HEALTHY) || kind == Some(JOINED) {
                // If both conditions exist, both must be true.
                ready = Some(ready.unwrap_or(true) && word == Some("True"));
            }
        }
    }
    if ready.is_some() {
        cluster.standing = Readiness::Reported(Report { ready, ..Report::default() });
    }
    for mut property in status.each("properties") {
        property.accept(&["lastObservedTime"]);
        let name = text(&mut property, "name", LONGEST_NAME);
        let value = text(&mut property, "value", LONGEST_VALUE);
        property.finish();
        let (Some(name), Some(value)) = (name, value) else { continue };
        if cluster.claims.contains_key(name) {
            let message = format!("{} has the property `{name}` twice", status.path_of("properties"));
            status.error_at("properties", message);
        }
        cluster.claims.insert(name.to_owned(), value.to_owned());
        cluster.properties.insert(name.to_owned(), value.to_owned());
    }
}

fn text<'a>(fields: &mut Fields<'a>, key: &'static str, longest: usize) -> Option<&'a str> {
    let text = fields.required_str(key)?;
    if text.chars().count() > longest {
        let message = format!("{} must not be longer than {longest} characters", fields.path_of(key));
        fields.error_at(key, message);
        return None;
    }
    Some(text)
}
