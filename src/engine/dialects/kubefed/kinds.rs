//! KubeFed's kinds, and the role of each.

use std::collections::BTreeMap;

use super::config;
use super::types::SHIPPED;
use crate::dialects::{AccessRole, Bearing, Claim, Document, PlacementFields, ReadKind};
use berth_base::model::Key;

pub(super) const CORE: &str = "core.kubefed.io";
pub(super) const SCHEDULING: &str = "scheduling.kubefed.io";
pub(super) const TYPES: &str = "types.kubefed.io";

/// berth's own group, and its kinds that Federated objects name.
pub(super) const OWN: &str = "berth.dev";
pub(super) const TEMPLATE: &str = "Template";
pub(super) const OVERRIDE_LIST: &str = "OverrideList";

pub(super) const KINDS: &[&str] = &[
    "KubeFedCluster",
    "FederatedTypeConfig",
    "KubeFedConfig",
    "PropagatedVersion",
    "ClusterPropagatedVersion",
    "FederatedServiceStatus",
    "ReplicaSchedulingPreference",
    "FederatedClusterRole",
    "FederatedClusterRoleBinding",
    "FederatedConfigMap",
    "FederatedDeployment",
    "FederatedIngress",
    "FederatedJob",
    "FederatedNamespace",
    "FederatedReplicaSet",
    "FederatedSecret",
    "FederatedService",
    "FederatedServiceAccount",
];

/// KubeFed's internal records, and the input files of its command line.
const BOOKKEEPING: [&str; 4] =
    ["PropagatedVersion", "ClusterPropagatedVersion", "FederatedServiceStatus", "EnableTypeDirective"];

/// The group and kind of the federated types in type configs; true for types of namespaces.
pub(super) type FederatedKinds<'a> = BTreeMap<(&'a str, &'a str), bool>;

/// The role of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Cluster,
    TypeConfig,
    Config,
    Preference,
    /// berth's own: a template in a separate file.
    Template,
    /// berth's own: a list of overrides in a separate file.
    OverrideList,
    Federated {
        namespace: bool,
    },
    Bookkeeping,
    Unknown,
    Foreign,
}

pub(super) fn claim(documents: &[Document]) -> Vec<Claim> {
    let types = federated_in(documents.iter());
    let claim = |document| match role(document, &types) {
        Role::Cluster => Claim::Inventory,
        // Objects in a namespace depend on it, as on a policy.
        Role::TypeConfig | Role::Config | Role::Preference | Role::Federated { namespace: true } => {
            Claim::Policy
        }
        Role::Federated { namespace: false } | Role::Template | Role::OverrideList => Claim::Workload,
        Role::Bookkeeping => Claim::Bookkeeping,
        Role::Unknown => Claim::Unknown,
        Role::Foreign => Claim::Foreign,
    };
    documents.iter().map(claim).collect()
}

/// Returns the bearing: Federated objects are read against type configs, namespaces, preferences and shared
/// files.
pub(super) fn bearing(document: &Document, claim: Claim) -> Bearing {
    match claim {
        Claim::Inventory => Bearing::Alone,
        Claim::Workload if *document.key.group != *OWN => Bearing::Alone,
        Claim::Policy | Claim::Workload => Bearing::Context,
        Claim::Bookkeeping | Claim::Unknown | Claim::Foreign => Bearing::Together,
    }
}

pub(super) const FIELDS: PlacementFields = PlacementFields {
    count: &[],
    names: &["spec", "placement", "clusters"],
    name_key: Some("name"),
    tolerations: &[],
    sets: None,
};

pub(super) fn placement_fields(key: &Key) -> Option<&'static PlacementFields> {
    key.kind.starts_with("Federated").then_some(&FIELDS)
}

pub(super) fn access_role(key: &Key) -> AccessRole<'_> {
    match (&*key.group, &*key.kind) {
        (CORE, "FederatedTypeConfig" | "KubeFedConfig") => AccessRole::FleetWide,
        (TYPES, kind) => kind.strip_prefix("Federated").map_or(AccessRole::Policy, AccessRole::Wraps),
        (CORE | SCHEDULING, _) => AccessRole::Policy,
        _ => AccessRole::Plain,
    }
}

/// Returns the federated types that any type config names, sound or not.
pub(super) fn federated_in<'a>(documents: impl Iterator<Item = &'a Document>) -> FederatedKinds<'a> {
    let named = |document: &'a Document| {
        let spec = document.root.get("spec")?;
        let (federated, target) = (spec.get("federatedType")?, spec.get("targetType")?);
        let kind = federated.get("kind")?.as_str()?;
        let group = federated.get("group").and_then(|group| group.as_str()).unwrap_or(TYPES);
        let of_core = target.get("group").and_then(|group| group.as_str()).unwrap_or_default().is_empty();
        let is_namespace = of_core && target.get("kind").and_then(|kind| kind.as_str()) == Some("Namespace");
        Some(((group, kind), is_namespace))
    };
    documents.filter(|document| is(document, CORE, "FederatedTypeConfig")).filter_map(named).collect()
}

pub(super) fn role(document: &Document, types: &FederatedKinds<'_>) -> Role {
    let (group, kind) = (&*document.key.group, &*document.key.kind);
    if let Some(namespace) = types.get(&(group, kind)) {
        return Role::Federated { namespace: *namespace };
    }
    match (group, kind) {
        (CORE, "KubeFedCluster") => Role::Cluster,
        (CORE, "FederatedTypeConfig") => Role::TypeConfig,
        (CORE, "KubeFedConfig") => Role::Config,
        (CORE, kind) if BOOKKEEPING.contains(&kind) => Role::Bookkeeping,
        (SCHEDULING, "ReplicaSchedulingPreference") => Role::Preference,
        (OWN, TEMPLATE) => Role::Template,
        (OWN, OVERRIDE_LIST) => Role::OverrideList,
        (TYPES, "FederatedNamespace") => Role::Federated { namespace: true },
        (TYPES, kind) if kind.starts_with("Federated") => Role::Federated { namespace: false },
        (CORE | SCHEDULING | TYPES, _) => Role::Unknown,
        _ => Role::Foreign,
    }
}

/// Returns the kinds whose fields are read.
pub(super) fn reads() -> Vec<ReadKind> {
    let kind = |group, kind, namespaced| {
        let versions = known_versions(group).unwrap_or_default();
        ReadKind::new(group, kind, versions, namespaced)
    };
    let mut all = vec![
        kind(CORE, "KubeFedCluster", true),
        kind(CORE, "FederatedTypeConfig", true),
        ReadKind { sample: config::NAME, ..kind(CORE, "KubeFedConfig", true) },
        kind(SCHEDULING, "ReplicaSchedulingPreference", true),
        kind(OWN, TEMPLATE, true),
        kind(OWN, OVERRIDE_LIST, true),
    ];
    let federated = |(_, _, target, namespaced): &(&str, &str, &str, bool)| {
        let name = KINDS.iter().find(|one| one.strip_prefix("Federated") == Some(target))?;
        Some(kind(TYPES, name, *namespaced || *target == "Namespace"))
    };
    all.extend(SHIPPED.iter().filter_map(federated));
    all
}

/// Returns the known versions of a group; `None` for a person's own federated group, with own versions.
fn known_versions(group: &str) -> Option<&'static [&'static str]> {
    match group {
        CORE | TYPES => Some(&["v1beta1", "v1alpha1"]),
        SCHEDULING | OWN => Some(&["v1alpha1"]),
        _ => None,
    }
}

/// Reports whether the object's version is newer than berth's known versions.
pub(super) fn is_newer(document: &Document) -> bool {
    known_versions(&document.key.group).is_some_and(|known| !known.contains(&document.version.as_str()))
}

fn is(document: &Document, group: &str, kind: &str) -> bool {
    *document.key.group == *group && *document.key.kind == *kind
}
