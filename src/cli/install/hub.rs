//! The rights of a daemon: none, but for the Events about its own Deployment where it writes them, and its Lease.

use serde_json::Value as Json;

use super::parameters::{Hub, Install};
use super::{lease_rules, named, role, rule, service_account};

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
    objects
}
