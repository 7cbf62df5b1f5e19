//! The scope of kinds, namespaced or cluster-scoped: known for Kubernetes' own kinds, otherwise taken from
//! the definitions and objects in the repository.

use std::collections::BTreeMap;

use crate::dialects::kubefleet::kinds::{self, Scope};
use crate::dialects::{Document, ParsedDocument};

/// Cluster-scoped kinds of Kubernetes' own groups; their other kinds are namespaced.
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

/// The scopes that the repository gives to kinds beside Kubernetes' own.
#[derive(Debug)]
pub(crate) struct Scopes<'a> {
    told: BTreeMap<(&'a str, &'a str), Scope>,
}

impl<'a> Scopes<'a> {
    pub fn new(plain: &'a [&'a Document]) -> Scopes<'a> {
        let mut told = BTreeMap::new();
        for key in plain.iter().map(|document| &document.key) {
            let scope = if key.namespace.is_empty() { Scope::Cluster } else { Scope::Namespaced };
            // An object that leaves its namespace out tells nothing against one that names it.
            let known = told.entry((&*key.group, &*key.kind)).or_insert(scope);
            if scope == Scope::Namespaced {
                *known = scope;
            }
        }
        told.extend(plain.iter().filter_map(|document| definition(document)));
        Scopes { told }
    }

    pub fn of(&self, group: &str, kind: &str) -> Option<Scope> {
        built_in(group, kind)
            .or_else(|| kinds::scope(group, kind))
            .or_else(|| self.told.get(&(group, kind)).copied())
    }
}

fn definition(document: &ParsedDocument) -> Option<((&str, &str), Scope)> {
    let key = &document.key;
    if &*key.kind != "CustomResourceDefinition" || &*key.group != "apiextensions.k8s.io" {
        return None;
    }
    let spec = document.root.get("spec")?;
    let group = spec.get("group")?.as_str()?;
    let kind = spec.get("names")?.get("kind")?.as_str()?;
    let scope = if spec.get("scope")?.as_str()? == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
    Some(((group, kind), scope))
}

fn built_in(group: &str, kind: &str) -> Option<Scope> {
    if NAMESPACED.contains(&group) {
        return Some(Scope::Namespaced);
    }
    let (_, kinds) = CLUSTER_SCOPED.iter().find(|(known, _)| *known == group)?;
    let cluster = kinds.is_empty() || kinds.contains(&kind);
    Some(if cluster { Scope::Cluster } else { Scope::Namespaced })
}
