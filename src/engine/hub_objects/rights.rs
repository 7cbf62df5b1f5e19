//! The rights that a daemon needs in a hub cluster to write its objects there.

use super::decisions::{Form, OCM_GROUP};
use crate::dialects::inventory::GROUP as SIG_GROUP;

/// A right to act on objects of a kind, in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    pub group: &'static str,
    /// The kind's plural, with a subresource if the right is for that: `clusterprofiles/status`.
    pub resource: &'static str,
    pub verbs: &'static [&'static str],
    /// The single object that the right is for.
    pub name: Option<String>,
}

const WRITE: &[&str] = &["list", "create", "update", "delete"];

/// Returns the rights for decisions in these forms, and for ClusterProfiles if berth writes them in this
/// namespace.
pub fn rights(forms: &[Form], profiles: Option<&str>) -> Vec<Right> {
    let right = |group, resource, verbs| Right { group, resource, verbs, name: None };
    let mut rights = Vec::new();
    if forms.contains(&Form::Sig) {
        rights.push(right(SIG_GROUP, "placementdecisions", WRITE));
    }
    if forms.contains(&Form::Ocm) {
        rights.push(right(OCM_GROUP, "placementdecisions", WRITE));
        rights.push(right(OCM_GROUP, "placementdecisions/status", &["update"]));
        rights.push(right(OCM_GROUP, "placements", &["list"]));
    }
    if let Some(namespace) = profiles {
        rights.push(right(SIG_GROUP, "clusterprofiles", WRITE));
        rights.push(right(SIG_GROUP, "clusterprofiles/status", &["update"]));
        rights
            .push(Right { name: Some(namespace.to_owned()), ..right("", "namespaces", &["list", "update"]) });
        // A right to create cannot name the object.
        rights.push(right("", "namespaces", &["create"]));
    } else if forms.contains(&Form::Sig) {
        // Needed to warn of decisions for clusters without a profile.
        rights.push(right(SIG_GROUP, "clusterprofiles", &["list"]));
    }
    rights
}
