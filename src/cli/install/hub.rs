//! The rights of a daemon: only on Events about its own Deployment if it writes them, on its Lease, and on the
//! objects that it writes for other systems.

use serde_json::Value as Json;

use berth_engine::hub_objects::rights;

use super::parameters::{Hub, HubObjects, Install};
use super::{cluster_role, lease_rules, named, role, rule, service_account};

/// The default namespace of ClusterProfiles.
const PROFILES: &str = "fleet";

pub fn access(install: &Install, hub: &Hub) -> Vec<Json> {
    let mut rules = Vec::new();
    if hub.events {
        rules.push(named(rule("apps", &["deployments"], &["get"]), &[&install.name]));
        // A rule for `create` cannot name the object.
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

/// Returns the rules for objects that other systems read. Placements and their decisions may be in any namespace.
fn object_rules(wanted: &HubObjects) -> Vec<Json> {
    let profiles = wanted.profiles.then(|| wanted.profiles_namespace.as_deref().unwrap_or(PROFILES));
    let needed = rights(&wanted.decisions, profiles).into_iter();
    let written = needed.map(|right| {
        let all = rule(right.group, &[right.resource], right.verbs);
        right.name.iter().fold(all, |rule, name| named(rule, &[name]))
    });
    written.collect()
}
