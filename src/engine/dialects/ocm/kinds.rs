//! Open Cluster Management's API groups and kinds, with their roles and known versions.

use serde_json::{Value as Json, json};

use super::sets::SET_LABEL;
use super::works;
use crate::dialects::{AccessRole, Bearing, Claim, Document, PlacementFields, ReadKind, SetFields};
use berth_base::model::{Cluster, Key};

pub(super) const KINDS: &[&str] = &[
    "ManagedCluster",
    "ManagedClusterSet",
    "ManagedClusterSetBinding",
    "Placement",
    "PlacementDecision",
    "AddOnPlacementScore",
    "ClusterClaim",
    "ManifestWork",
    "ManifestWorkReplicaSet",
    "AppliedManifestWork",
];

/// The role of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Cluster,
    Score,
    Set,
    Binding,
    Placement,
    Work,
    /// Belongs to one cluster.
    SingleWork,
}

/// Group, kind, role, and the known versions, the preferred one first.
const READ: [(&str, &str, Role, &[&str]); 7] = [
    (CLUSTER, "ManagedCluster", Role::Cluster, &["v1"]),
    (CLUSTER, "AddOnPlacementScore", Role::Score, &["v1alpha1"]),
    (CLUSTER, "ManagedClusterSet", Role::Set, &["v1beta2", "v1beta1", "v1alpha1"]),
    (CLUSTER, "ManagedClusterSetBinding", Role::Binding, &["v1beta2", "v1beta1", "v1alpha1"]),
    (CLUSTER, "Placement", Role::Placement, &["v1beta1", "v1alpha1"]),
    (WORK, "ManifestWorkReplicaSet", Role::Work, &["v1alpha1"]),
    (WORK, "ManifestWork", Role::SingleWork, &["v1"]),
];

const BOOKKEEPING: [(&str, &str); 5] = [
    (CLUSTER, "PlacementDecision"),
    (CLUSTER, "ClusterClaim"),
    (WORK, "AppliedManifestWork"),
    (ADD_ON, "ManagedClusterAddOn"),
    (ADD_ON, "ClusterManagementAddOn"),
];

/// Kinds that RHACM adds to the clusters' group, for its controllers on a hub.
const OF_RHACM: [&str; 3] = ["BackupSchedule", "ClusterCurator", "Restore"];

/// Returns the kinds whose fields are read.
pub(super) fn reads() -> Vec<ReadKind> {
    let is_namespaced = |role: Role| !matches!(role, Role::Cluster | Role::Set);
    READ.iter().map(|row| ReadKind::new(row.0, row.1, row.3, is_namespaced(row.2))).collect()
}

const FIELDS: PlacementFields = PlacementFields {
    count: &["spec", "numberOfClusters"],
    names: &[],
    name_key: None,
    tolerations: &["spec", "tolerations"],
    sets: Some(SetFields { list: &["spec", "clusterSets"], of: set_of, binding }),
};

pub(super) fn placement_fields(key: &Key) -> Option<&'static PlacementFields> {
    ((&*key.group, &*key.kind) == (CLUSTER, "Placement")).then_some(&FIELDS)
}

fn set_of(cluster: &Cluster) -> String {
    cluster.labels.get(SET_LABEL).cloned().unwrap_or_default()
}

fn binding(namespace: &str, set: &str) -> Json {
    json!({
        "apiVersion": format!("{CLUSTER}/v1beta2"),
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": set, "namespace": namespace},
        "spec": {"clusterSet": set},
    })
}

pub(super) fn is_placement(key: &Key) -> bool {
    &*key.group == CLUSTER && &*key.kind == "Placement"
}

pub(super) fn access_role(key: &Key) -> AccessRole<'_> {
    match (&*key.group, &*key.kind) {
        (CLUSTER, "ManagedClusterSet") => AccessRole::ClusterSet,
        (CLUSTER, "ManagedClusterSetBinding") => AccessRole::SetBinding,
        (CLUSTER | WORK, _) => AccessRole::Policy,
        _ => AccessRole::Plain,
    }
}

/// Returns the counterpart in berth to the work of RHACM and Argo CD with a kind on a hub.
pub(super) fn acted_on_by_hub(key: &Key) -> Option<&'static str> {
    const POLICIES: &str = "RHACM's policy framework still reads it on a hub; place the objects it enforces, and berth keeps them";
    const APPLICATIONS: &str = "RHACM's applications still read it on a hub; place what it deploys";
    const OTHERS: &str = "RHACM still reads it on a hub";
    const ARGO: &str = "Argo CD still reads it; an Application for each cluster can follow the cluster's folder of the rendered branch, and PlacementDecisions are under `decisions/`";
    match (&*key.group, &*key.kind) {
        ("policy.open-cluster-management.io", _) => Some(POLICIES),
        ("apps.open-cluster-management.io", "GitOpsCluster") => Some(ARGO),
        ("apps.open-cluster-management.io", _) | ("app.k8s.io", "Application") => Some(APPLICATIONS),
        ("argoproj.io", "ApplicationSet" | "Application" | "AppProject") => Some(ARGO),
        (CLUSTER, kind) if OF_RHACM.contains(&kind) => Some(OTHERS),
        (CLUSTER | WORK, _) => None,
        (group, _) if group.ends_with(".open-cluster-management.io") => Some(OTHERS),
        _ => None,
    }
}

pub(super) fn claim(documents: &[Document]) -> Vec<Claim> {
    documents.iter().map(claim_one).collect()
}

fn claim_one(document: &Document) -> Claim {
    match role(document) {
        // Scores are reports about the inventory: any placement may read them.
        Some(Role::Cluster | Role::Score) => return Claim::Inventory,
        Some(Role::Set | Role::Binding | Role::Placement) => return Claim::Policy,
        Some(Role::SingleWork) if works::is_made(document) => return Claim::Bookkeeping,
        Some(Role::Work | Role::SingleWork) => return Claim::Workload,
        None => {}
    }
    let (group, kind) = (&*document.key.group, &*document.key.kind);
    if BOOKKEEPING.contains(&(group, kind)) {
        Claim::Bookkeeping
    } else if (group == CLUSTER && !OF_RHACM.contains(&kind)) || group == WORK {
        Claim::Unknown
    } else {
        Claim::Foreign
    }
}

/// Placements are read against sets and bindings, and works against the kinds that the source defines.
pub(super) fn bearing(document: &Document, _: Claim) -> Bearing {
    match role(document) {
        Some(Role::Cluster | Role::Placement | Role::Work | Role::SingleWork) => Bearing::Alone,
        Some(Role::Set | Role::Binding) => Bearing::Context,
        None if &*document.key.kind == "CustomResourceDefinition" => Bearing::Context,
        Some(Role::Score) | None => Bearing::Together,
    }
}

pub(super) fn role(document: &Document) -> Option<Role> {
    row(document).map(|(_, _, role, _)| *role)
}

/// Reports whether the object's version is newer than berth's known versions.
pub(super) fn is_newer(document: &Document) -> bool {
    row(document).is_some_and(|(_, _, _, versions)| !versions.contains(&document.version.as_str()))
}

fn row(document: &Document) -> Option<&'static (&'static str, &'static str, Role, &'static [&'static str])> {
    READ.iter().find(|(group, kind, _, _)| *document.key.group == **group && *document.key.kind == **kind)
}

pub(super) const CLUSTER: &str = "cluster.open-cluster-management.io";
pub(super) const WORK: &str = "work.open-cluster-management.io";
pub(super) const ADD_ON: &str = "addon.open-cluster-management.io";
