//! The role of each object for access rules: from its dialect, or from this file for berth's own kinds.

use super::OWN_GROUP;
use crate::dialects::{AccessRole, Dialects};
use berth_base::model::Key;

pub(super) fn role<'k>(dialects: Dialects, key: &'k Key) -> AccessRole<'k> {
    match (&*key.group, &*key.kind) {
        // An approval allows the removal of any workload.
        (OWN_GROUP, "Approval") => AccessRole::FleetWide,
        (OWN_GROUP, "PolicyTest") => AccessRole::FleetWide,
        // A namespaced policy affects only the workloads of its namespace.
        (OWN_GROUP, "RolloutPolicy") if key.namespace.is_empty() => AccessRole::FleetWide,
        (OWN_GROUP, _) => AccessRole::Policy,
        _ => {
            let mut roles = dialects.iter().map(|dialect| (dialect.access_role)(key));
            roles.find(|role| *role != AccessRole::Plain).unwrap_or(AccessRole::Plain)
        }
    }
}

pub(super) fn is_cluster(dialects: Dialects, key: &Key) -> bool {
    is_status(key) || dialects.iter().any(|dialect| dialect.is_cluster(key))
}

pub(super) fn is_status(key: &Key) -> bool {
    *key.group == *OWN_GROUP && *key.kind == *"ClusterStatus"
}

pub(super) fn is_set(dialects: Dialects, key: &Key) -> bool {
    role(dialects, key) == AccessRole::ClusterSet
}
