//! The rights of a daemon: none, but for the Events about its own Deployment where it writes them.

use serde_json::Value as Json;

use super::parameters::{Hub, Install};
use super::{named, role, rule, service_account};

pub fn access(install: &Install, hub: &Hub) -> Vec<Json> {
    let mut objects = vec![service_account(install)];
    if hub.events {
        objects.extend(role(
            install,
            &[
                named(rule("apps", &["deployments"], &["get"]), &[&install.name]),
                // A right to create cannot name the object.
                rule("events.k8s.io", &["events"], &["create"]),
            ],
        ));
    }
    objects
}
