//! The rights of a daemon: none, but for the Events about its own Deployment where it writes them, its Lease, and the
//! objects that it writes for others.

use serde_json::Value as Json;

use super::parameters::{DecisionGroup, Hub, HubObjects, Install};
use super::{cluster_role, lease_rules, named, role, rule, service_account};

const SIG: &str = "multicluster.x-k8s.io";
const OCM: &str = "cluster.open-cluster-management.io";
/// The namespace of ClusterProfiles, where nobody says otherwise.
const PROFILES: &str = "fleet";

pub fn access(install: &Install, hub: &Hub) -> Vec<Json> {
    let mut rules = Vec::new();
    if hub.events {
        rules.push(named(rule("apps", &["deployments"], &["get"]), &[&install.name]));
        // A right to create cannot name the object.
        rules.push(rule("events.k8s.io", &["events"], &["create"]));
    }
    if hub.standby {
        rules.extend(lease_rules(install));
    }
    let mut objects = vec![service_account(install)];
    if !rules.is_empty() {
        objects.extend(role(install, &rules));
    }
    if hub.objects.are_wanted() {
        objects.extend(cluster_role(install, &object_rules(&hub.objects)));
    }
    objects
}

/// Rules for the objects that others read. Placements are in any namespace, and so are their decisions.
fn object_rules(wanted: &HubObjects) -> Vec<Json> {
    let write = ["list", "create", "update", "delete"];
    let mut rules = Vec::new();
    if wanted.decisions.contains(&DecisionGroup::Sig) {
        rules.push(rule(SIG, &["placementdecisions"], &write));
    }
    if wanted.decisions.contains(&DecisionGroup::Ocm) {
        rules.push(rule(OCM, &["placementdecisions"], &write));
        rules.push(rule(OCM, &["placementdecisions/status"], &["update"]));
        rules.push(rule(OCM, &["placements"], &["list"]));
    }
    if wanted.profiles {
        rules.push(rule(SIG, &["clusterprofiles"], &write));
        rules.push(rule(SIG, &["clusterprofiles/status"], &["update"]));
        let namespace = wanted.profiles_namespace.as_deref().unwrap_or(PROFILES);
        rules.push(named(rule("", &["namespaces"], &["list", "update"]), &[namespace]));
        // A right to create cannot name the object.
        rules.push(rule("", &["namespaces"], &["create"]));
    } else if wanted.decisions.contains(&DecisionGroup::Sig) {
        // To warn of decisions for clusters without a profile.
        rules.push(rule(SIG, &["clusterprofiles"], &["list"]));
    }
    rules
}
