//! ClusterProfile → cluster. Its conditions decide whether it is ready, and its properties are also claims.

use super::MANAGER_LABEL;
use crate::dialects::{Document, applier};
use berth_base::meta;
use berth_base::model::Cluster;
use berth_base::model::cluster::{Report, Standing};
use berth_base::yaml::{Fields, Scope};

/// The condition that the API defines, and the one that its proposal adds.
const HEALTHY: &str = "ControlPlaneHealthy";
const JOINED: &str = "Joined";

const LONGEST_NAME: usize = 253;
const LONGEST_VALUE: usize = 1024;

pub(super) fn read(scope: &Scope, document: &Document) -> Option<Cluster> {
    let root = document.open();
    let (mut fields, metadata) = meta::open(scope, &root)?;
    if metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required");
    }
    let mut cluster = Cluster {
        name: metadata.name.into(),
        origins: vec![document.at.clone()],
        labels: metadata.labels,
        leaving: metadata.deleting,
        applier: applier::read(scope, &root),
        ..Cluster::default()
    };
    if let Some(mut spec) = fields.required_fields("spec") {
        spec.str("displayName");
        if let Some(mut manager) = spec.required_fields("clusterManager") {
            check_manager(&mut manager, &cluster);
            manager.finish();
        }
        spec.finish();
    }
    if let Some(status) = fields.fields("status") {
        read_status(status, &mut cluster);
    }
    fields.finish();
    Some(cluster)
}

fn check_manager(manager: &mut Fields<'_>, cluster: &Cluster) {
    let Some(name) = manager.required_str("name") else { return };
    if let Some(label) = cluster.labels.get(MANAGER_LABEL).filter(|label| *label != name) {
        let message = format!(
            "{} is `{name}`, but the label {MANAGER_LABEL} is `{label}`; make them equal",
            manager.path_of("name")
        );
        manager.scope().warning(manager.place_of("name"), message);
    }
}

/// Reads a status, without the ways to reach the cluster: only its users need them.
fn read_status(mut status: Fields<'_>, cluster: &mut Cluster) {
    if let Some(version) = status.node("version") {
        cluster.details.insert("status.version".to_owned(), version.to_json());
    }
    let mut ready = None;
    if status.node("conditions").is_some_and(|node| !node.is_null()) {
        for mut condition in status.each("conditions") {
            let (kind, word) = (condition.str("type"), condition.str("status"));
            if kind == Some(HEALTHY) || kind == Some(JOINED) {
                // If both conditions exist, both must be true.
                ready = Some(ready.unwrap_or(true) && word == Some("True"));
            }
        }
    }
    if ready.is_some() {
        cluster.standing = Standing::Reported(Report { ready, ..Report::default() });
    }
    for mut property in status.each("properties") {
        property.accept(&["lastObservedTime"]);
        let name = text(&mut property, "name", LONGEST_NAME);
        let value = text(&mut property, "value", LONGEST_VALUE);
        property.finish();
        let (Some(name), Some(value)) = (name, value) else { continue };
        if cluster.claims.contains_key(name) {
            let message = format!("{} has the property `{name}` twice", status.path_of("properties"));
            status.error_at("properties", message);
        }
        cluster.claims.insert(name.to_owned(), value.to_owned());
        cluster.properties.insert(name.to_owned(), value.to_owned());
    }
}

fn text<'a>(fields: &mut Fields<'a>, key: &'static str, longest: usize) -> Option<&'a str> {
    let text = fields.required_str(key)?;
    if text.chars().count() > longest {
        let message = format!("{} must not be longer than {longest} characters", fields.path_of(key));
        fields.error_at(key, message);
        return None;
    }
    Some(text)
}
