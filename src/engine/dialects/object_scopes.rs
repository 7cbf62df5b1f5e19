//! The scope of a kind's objects: a namespace or the cluster.

/// The scope of a kind's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectScope {
    Cluster,
    Namespaced,
}

/// Cluster-scoped kinds of Kubernetes' own groups; their other kinds are namespaced. Of a group without a list, all kinds
/// are cluster-scoped.
const CLUSTER_SCOPED: [(&str, &[&str]); 13] = [
    ("", &["Namespace", "Node", "PersistentVolume", "ComponentStatus"]),
    ("admissionregistration.k8s.io", &[]),
    ("apiextensions.k8s.io", &[]),
    ("apiregistration.k8s.io", &[]),
    ("authentication.k8s.io", &[]),
    ("authorization.k8s.io", &["SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("flowcontrol.apiserver.k8s.io", &[]),
    ("networking.k8s.io", &["IngressClass", "IPAddress", "ServiceCIDR"]),
    ("node.k8s.io", &[]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &[]),
    (
        "storage.k8s.io",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
];

/// Groups whose kinds are all namespaced.
const NAMESPACED: [&str; 8] = [
    "apps",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "policy",
];

/// The group and the kind of the definitions of custom kinds.
pub const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

impl ObjectScope {
    /// Returns the scope of a kind of Kubernetes itself.
    pub fn of_built_in(group: &str, kind: &str) -> Option<ObjectScope> {
        if NAMESPACED.contains(&group) {
            return Some(ObjectScope::Namespaced);
        }
        let (_, kinds) = CLUSTER_SCOPED.iter().find(|(known, _)| *known == group)?;
        let is_in_cluster = kinds.is_empty() || kinds.contains(&kind);
        Some(if is_in_cluster { ObjectScope::Cluster } else { ObjectScope::Namespaced })
    }

    /// Returns the scope that a definition of a custom kind names.
    pub fn of_word(word: &str) -> ObjectScope {
        if word == "Cluster" { ObjectScope::Cluster } else { ObjectScope::Namespaced }
    }
}
