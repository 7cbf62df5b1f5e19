//! The rights of a daemon: none, but for the Events about its own Deployment where it writes them, its Lease, and the
//! objects that it writes for others.

use serde_json::Value as Json;

use berth_engine::hub_objects::rights::rights;

use super::parameters::{Hub, HubObjects, Install};
use super::{cluster_role, lease_rules, named, role, rule, service_account};

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
    let profiles = wanted.profiles.then(|| wanted.profiles_namespace.as_deref().unwrap_or(PROFILES));
    let needed = rights(&wanted.decisions, profiles).into_iter();
    let written = needed.map(|right| {
        let all = rule(right.group, &[right.resource], right.verbs);
        right.name.iter().fold(all, |rule, name| named(rule, &[name]))
    });
    written.collect()
}
