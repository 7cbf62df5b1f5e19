//! Kinds that need no time to become available.

/// Kinds that are available as soon as they exist; for all others a member's report decides.
pub(super) const AT_ONCE: [&str; 18] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ControllerRevision",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "IngressClass",
    "LimitRange",
    "Namespace",
    "NetworkPolicy",
    "PriorityClass",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "Secret",
    "ServiceAccount",
    "StorageClass",
];
