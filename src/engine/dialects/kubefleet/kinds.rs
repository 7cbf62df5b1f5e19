//! The kinds of KubeFleet's groups, and the role of each.
//!
//! One table determines both the claim on a document and its reader. The loader reports an unlisted kind of
//! these groups as unknown, with the nearest name.

use crate::dialects::object_scopes::ObjectScope;
use crate::dialects::{AccessRole, Claim, Document, PlacementFields, ReadKind};
use berth_base::diag::Severity;
use berth_base::model::Key;

pub(crate) const CLUSTER_GROUP: &str = "cluster.kubernetes-fleet.io";
pub(crate) const PLACEMENT_GROUP: &str = "placement.kubernetes-fleet.io";
/// The next generation of the placement API.
pub(crate) const NEXT_GROUP: &str = "placement.kubefleet.dev";

/// Versions whose fields this reader knows. `v1` is a subset of `v1beta1`.
const VERSIONS: [&str; 3] = ["v1beta1", "v1", "v1alpha1"];

const NEXT_VERSIONS: [&str; 1] = ["v1alpha1"];

/// The role of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Cluster,
    Placement,
    Override,
    Envelope,
    /// Checked, but without effect, because no hub runs.
    Eviction,
    Budget,
    /// A strategy or a run of staged updates.
    StagedUpdate,
    /// A request to approve a stage.
    Approval,
    /// A placement of the next API.
    PlacementPolicy,
    Bookkeeping,
}

struct KindRow(&'static str, &'static str, Role, ObjectScope);

const ROWS: [KindRow; 37] = [
    KindRow(CLUSTER_GROUP, "MemberCluster", Role::Cluster, ObjectScope::Cluster),
    KindRow(CLUSTER_GROUP, "InternalMemberCluster", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterResourcePlacement", Role::Placement, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ResourcePlacement", Role::Placement, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterResourceOverride", Role::Override, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ResourceOverride", Role::Override, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterResourceEnvelope", Role::Envelope, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ResourceEnvelope", Role::Envelope, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterResourcePlacementEviction", Role::Eviction, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ClusterResourcePlacementDisruptionBudget", Role::Budget, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ClusterStagedUpdateRun", Role::StagedUpdate, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ClusterStagedUpdateStrategy", Role::StagedUpdate, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ClusterApprovalRequest", Role::Approval, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "StagedUpdateRun", Role::StagedUpdate, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "StagedUpdateStrategy", Role::StagedUpdate, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ApprovalRequest", Role::Approval, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterResourcePlacementStatus", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterSchedulingPolicySnapshot", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "SchedulingPolicySnapshot", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterResourceSnapshot", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ResourceSnapshot", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterResourceBinding", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ResourceBinding", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "ClusterResourceOverrideSnapshot", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(PLACEMENT_GROUP, "ResourceOverrideSnapshot", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "Work", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(PLACEMENT_GROUP, "AppliedWork", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(NEXT_GROUP, "ClusterPlacementPolicy", Role::PlacementPolicy, ObjectScope::Cluster),
    KindRow(NEXT_GROUP, "PlacementPolicy", Role::PlacementPolicy, ObjectScope::Namespaced),
    KindRow(NEXT_GROUP, "ClusterPlacementBinding", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(NEXT_GROUP, "PlacementBinding", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(NEXT_GROUP, "ClusterPlacementResourceSnapshot", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(NEXT_GROUP, "PlacementResourceSnapshot", Role::Bookkeeping, ObjectScope::Namespaced),
    KindRow(NEXT_GROUP, "ClusterRequest", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(NEXT_GROUP, "ClusterClaim", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(NEXT_GROUP, "ClusterProviderClass", Role::Bookkeeping, ObjectScope::Cluster),
    KindRow(NEXT_GROUP, "Work", Role::Bookkeeping, ObjectScope::Namespaced),
];

/// The kinds to compare a misspelt kind with.
pub const NAMES: &[&str] = &[
    "MemberCluster",
    "ClusterResourcePlacement",
    "ResourcePlacement",
    "ClusterResourceOverride",
    "ResourceOverride",
    "ClusterResourceEnvelope",
    "ResourceEnvelope",
    "ClusterResourcePlacementEviction",
    "ClusterResourcePlacementDisruptionBudget",
    "ClusterStagedUpdateRun",
    "ClusterStagedUpdateStrategy",
    "ClusterApprovalRequest",
    "StagedUpdateRun",
    "StagedUpdateStrategy",
    "ApprovalRequest",
    "ClusterPlacementPolicy",
    "PlacementPolicy",
];

/// Short names of kinds, as in kubectl.
pub(crate) const SHORT_NAMES: &[(&str, &str)] =
    &[("crp", "ClusterResourcePlacement"), ("rp", "ResourcePlacement")];

/// The cluster-scoped kinds, for access rules.
pub(crate) const CLUSTER_SCOPED: &[(&str, &str)] = &[
    (PLACEMENT_GROUP, "ClusterResourcePlacement"),
    (PLACEMENT_GROUP, "ClusterResourceOverride"),
    (PLACEMENT_GROUP, "ClusterResourceEnvelope"),
    (PLACEMENT_GROUP, "ClusterStagedUpdateRun"),
    (PLACEMENT_GROUP, "ClusterStagedUpdateStrategy"),
    (PLACEMENT_GROUP, "ClusterApprovalRequest"),
    (NEXT_GROUP, "ClusterPlacementPolicy"),
];

/// Claims KubeFleet's documents.
pub fn claim(documents: &[Document]) -> Vec<Claim> {
    documents.iter().map(|document| claim_one(&document.key.group, &document.key.kind)).collect()
}

fn claim_one(group: &str, kind: &str) -> Claim {
    if !matches!(group, CLUSTER_GROUP | PLACEMENT_GROUP | NEXT_GROUP) {
        return Claim::Foreign;
    }
    match role(group, kind) {
        Some(Role::Cluster) => Claim::Inventory,
        Some(Role::Placement | Role::PlacementPolicy | Role::Eviction | Role::Budget) => Claim::Policy,
        Some(Role::StagedUpdate | Role::Approval) => Claim::Policy,
        Some(Role::Override | Role::Envelope) => Claim::Workload,
        Some(Role::Bookkeeping) => Claim::Bookkeeping,
        None => Claim::Unknown,
    }
}

/// Returns the kinds whose fields are read.
pub(crate) fn reads() -> Vec<ReadKind> {
    let read = ROWS.iter().filter(|row| row.2 != Role::Bookkeeping);
    read.map(|row| ReadKind::new(row.0, row.1, versions(row.0), row.3 == ObjectScope::Namespaced)).collect()
}

fn versions(group: &str) -> &'static [&'static str] {
    if group == NEXT_GROUP { &NEXT_VERSIONS } else { &VERSIONS }
}

pub(super) const FIELDS: PlacementFields = PlacementFields {
    count: &["spec", "policy", "numberOfClusters"],
    names: &["spec", "policy", "clusterNames"],
    name_key: None,
    tolerations: &["spec", "policy", "tolerations"],
    sets: None,
};

/// Returns the fields of a placement that select its clusters.
pub fn placement_fields(key: &Key) -> Option<&'static PlacementFields> {
    (role(&key.group, &key.kind) == Some(Role::Placement)).then_some(&FIELDS)
}

/// Reports whether an object is a placement of either API.
pub fn is_placement(key: &Key) -> bool {
    matches!(role(&key.group, &key.kind), Some(Role::Placement | Role::PlacementPolicy))
}

/// Returns the role of an object for access rules.
pub fn access_role(key: &Key) -> AccessRole<'_> {
    match &*key.group {
        PLACEMENT_GROUP if role(&key.group, &key.kind) == Some(Role::Placement) => AccessRole::Selector,
        NEXT_GROUP if role(&key.group, &key.kind) == Some(Role::PlacementPolicy) => AccessRole::Selector,
        // A separate role allows rules to withhold approvals from the authors of runs.
        PLACEMENT_GROUP if role(&key.group, &key.kind) == Some(Role::Approval) => AccessRole::Plain,
        CLUSTER_GROUP | PLACEMENT_GROUP | NEXT_GROUP => AccessRole::Policy,
        _ => AccessRole::Plain,
    }
}

pub fn role(group: &str, kind: &str) -> Option<Role> {
    row(group, kind).map(|row| row.2)
}

pub fn scope(group: &str, kind: &str) -> Option<ObjectScope> {
    row(group, kind).map(|row| row.3)
}

fn row(group: &str, kind: &str) -> Option<&'static KindRow> {
    ROWS.iter().find(|row| row.0 == group && row.1 == kind)
}

/// Returns the severity of unknown fields: a version newer than this reader may have unknown fields.
pub fn unknown_fields(version: &str, asked: Severity) -> Severity {
    if VERSIONS.contains(&version) { asked } else { asked.max(Severity::Warning) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_claim() {
        for (group, kind, claim) in [
            (CLUSTER_GROUP, "MemberCluster", Claim::Inventory),
            (PLACEMENT_GROUP, "ResourcePlacement", Claim::Policy),
            (PLACEMENT_GROUP, "ClusterResourceOverride", Claim::Workload),
            (PLACEMENT_GROUP, "Work", Claim::Bookkeeping),
            (PLACEMENT_GROUP, "ClusterResourcePlacment", Claim::Unknown),
            ("cluster.open-cluster-management.io", "Placement", Claim::Foreign),
            ("", "Namespace", Claim::Foreign),
        ] {
            assert_eq!(claim_one(group, kind), claim, "{kind}.{group}");
        }
    }

    #[test]
    fn unknown_fields_of_newer_versions_are_only_warnings() {
        assert_eq!(unknown_fields("v1beta1", Severity::Error), Severity::Error);
        assert_eq!(unknown_fields("v2", Severity::Error), Severity::Warning);
        assert_eq!(unknown_fields("v2", Severity::Note), Severity::Note);
    }
}
