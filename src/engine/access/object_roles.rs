//! The role of each object for access rules: its dialect knows it, and of berth's own kinds this file.

use super::OWN_GROUP;
use crate::dialects::{AccessRole, Dialects};
use berth_base::model::Key;

pub(super) fn role<'k>(dialects: Dialects, key: &'k Key) -> AccessRole<'k> {
    match (&*key.group, &*key.kind) {
        // It deletes the object that it names, whoever owns it.
        (OWN_GROUP, "Approval") => AccessRole::FleetWide,
        (OWN_GROUP, "PolicyTest") => AccessRole::FleetWide,
        // In a namespace it is for the workloads there.
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
