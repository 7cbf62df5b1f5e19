//! The Cluster Inventory API of SIG Multicluster: a ClusterProfile describes a cluster for a manager.
//!
//! One cluster may have several profiles, in the namespaces of its users. They are merged by their name, like
//! all descriptions of one cluster.

mod profile;

#[cfg(test)]
mod tests;

use serde_json::{Value as Json, json};

use super::{
    AccessRole, Bearing, Claim, ClusterKind, Dialect, Document, Input, Lowered, NewCluster, ReadKind,
    ReadingContext,
};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::{Cluster, Key, Shared};
use berth_base::packed::View;

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
struct One {
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

fn read(input: &Input<'_>, document: &Document) -> One {
    // A server accepts `conditions: null`.
    let scope = input.scope(document, input.unknown_fields);
    let cluster = profile::read(&scope, document).map(Into::into);
    let is_faulty = scope.has_errors();
    One { cluster, diagnostics: scope.into_diagnostics(), is_faulty }
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
