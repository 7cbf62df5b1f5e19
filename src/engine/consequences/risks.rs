//! Signs that a change is dangerous, read from its effect on objects.

use std::collections::BTreeSet;

use berth_base::model::{Key, ObjectId};

use super::field_changes::FieldChange;

/// The share of a fleet, in percent, above which a change is a risk.
const LARGE_SHARE: usize = 30;

/// The smallest number of clusters in a large share.
const LARGE_COUNT: usize = 5;

/// A reason for a second look.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// The objects inside it, or of its kind, are removed with it.
    TakesAlong { object: ObjectId },
    /// No cluster keeps a copy of the workload.
    LastCopy { key: Key },
    /// The data of these objects stays in the clusters that lose them.
    LeavesData { key: Key, object: ObjectId },
    /// The cluster refuses another value for the field, so the object must be replaced.
    Immutable { object: ObjectId, field: String },
    /// The keys of a Secret change.
    SecretKeys { object: ObjectId, keys: BTreeSet<String> },
    /// The clusters end without any object.
    Emptied { clusters: BTreeSet<String> },
    /// A large share of the fleet's clusters.
    Share { clusters: usize, of: usize },
}

/// Immutable fields by kind. A field includes those below it.
const IMMUTABLE: [(&str, &str, &[&str]); 12] = [
    ("apps", "Deployment", &["spec.selector"]),
    ("apps", "ReplicaSet", &["spec.selector"]),
    ("apps", "DaemonSet", &["spec.selector"]),
    (
        "apps",
        "StatefulSet",
        &["spec.selector", "spec.serviceName", "spec.volumeClaimTemplates", "spec.podManagementPolicy"],
    ),
    ("batch", "Job", &["spec.selector", "spec.template", "spec.completionMode"]),
    ("", "Service", &["spec.clusterIP"]),
    (
        "",
        "PersistentVolumeClaim",
        &["spec.storageClassName", "spec.accessModes", "spec.volumeName", "spec.selector"],
    ),
    ("", "Secret", &["type"]),
    ("rbac.authorization.k8s.io", "RoleBinding", &["roleRef"]),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", &["roleRef"]),
    ("storage.k8s.io", "StorageClass", &["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"]),
    ("apiextensions.k8s.io", "CustomResourceDefinition", &["spec.scope", "spec.group"]),
];

/// Returns the risks of changed fields of one object.
pub(super) fn of_fields(object: &ObjectId, fields: &[FieldChange]) -> Vec<Risk> {
    let mut risks = Vec::new();
    let rules =
        IMMUTABLE.iter().filter(|(group, kind, _)| *group == &*object.group && *kind == &*object.kind);
    for field in rules.flat_map(|(_, _, fields)| *fields) {
        if fields.iter().any(|change| change.before.is_some() && is_below(&change.path, field)) {
            risks.push(Risk::Immutable { object: object.clone(), field: (*field).to_owned() });
        }
    }
    if object.is_secret() {
        let keys = fields.iter().filter_map(|change| {
            let rest = ["data", "stringData"].iter().find_map(|part| change.path.strip_prefix(part))?;
            let key = rest.strip_prefix('.').or_else(|| rest.strip_prefix("[\"")?.strip_suffix("\"]"))?;
            (!key.is_empty()).then(|| key.to_owned())
        });
        let keys: BTreeSet<String> = keys.collect();
        if !keys.is_empty() {
            risks.push(Risk::SecretKeys { object: object.clone(), keys });
        }
    }
    risks
}

fn is_below(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the risks of objects that leave a cluster while the fleet keeps the workload.
pub(super) fn of_leaving(key: &Key, objects: &BTreeSet<&ObjectId>) -> Vec<Risk> {
    let takes_along = objects.iter().filter(|object| object.takes_more_along());
    let mut risks: Vec<Risk> =
        takes_along.map(|object| Risk::TakesAlong { object: (*object).clone() }).collect();
    let holds_data =
        objects.iter().filter(|object| &*object.group == "apps" && &*object.kind == "StatefulSet");
    risks.extend(holds_data.map(|object| Risk::LeavesData { key: key.clone(), object: (*object).clone() }));
    risks
}

/// Returns the risk of a change that reaches a large share of a fleet.
pub(super) fn of_share(clusters: usize, of: usize) -> Option<Risk> {
    let is_large = clusters >= LARGE_COUNT && clusters * 100 > of * LARGE_SHARE;
    is_large.then_some(Risk::Share { clusters, of })
}
