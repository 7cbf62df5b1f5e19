//! The rights of both roles.
//!
//! - A daemon: only on Events about its own Deployment if it writes them, on its Lease, and on the objects that it writes
//!   for other systems.
//! - A syncer: on the kinds of its folder in all namespaces, and on its own records in its own namespace. A reporter only
//!   reads these kinds, and the object by which another program applies the folder.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::parameters::{Hub, HubObjects, Install, Member, RBAC, Resource};
use super::{cluster_binding, cluster_role, lease_rules, named, role, role_at, rule, service_account};
use crate::appliers::{argocd, flux};
use berth_engine::hub_objects::rights;

/// The default namespace of ClusterProfiles.
const PROFILES: &str = "fleet";

pub fn hub_access(install: &Install, hub: &Hub) -> Vec<Json> {
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

/// The verbs on a folder's objects. A server-side apply is a patch, and also a creation if the object is missing.
const WRITE: [&str; 6] = ["create", "delete", "get", "list", "patch", "watch"];
/// The verbs if other accounts write the objects.
const READ: [&str; 3] = ["get", "list", "watch"];
/// The verbs if another program writes the objects, and a reporter reads them from time to time.
const LOOK: [&str; 2] = ["get", "list"];

/// The kinds that such a program leaves for berth to remove. A reporter lists them to find these objects.
const GUARDED: [(&str, &str); 3] = [
    ("", "namespaces"),
    ("", "persistentvolumeclaims"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
];

pub fn about(member: &Member) -> Vec<String> {
    if let Some(role) = &member.cluster_role {
        return vec![format!(
            "Its rights on objects are those of the ClusterRole `{role}`, in every namespace."
        )];
    }
    let mut lines = vec![format!(
        "Made for {} in the folder of cluster {}. When new kinds come, run the command again.",
        counted(member.kinds.len()),
        member.cluster
    )];
    if member.reporter.is_some() {
        lines.push(
            "It only reads, and removes objects of kinds that need an approval, if the folder has such kinds."
                .to_owned(),
        );
        return lines;
    }
    let writes = member.tenant_account.is_none();
    if writes && member.has_access_kinds() {
        lines.extend(match member.escalate {
            true => vec![
                "It may grant rights that it does not have itself (escalate, bind): anyone who can change this"
                    .to_owned(),
                "cluster's folder can become its administrator.".to_owned(),
            ],
            false => vec![
                "It may not grant rights that it does not have itself: the API server refuses each role and binding"
                    .to_owned(),
                "of the folder that would grant them. --allow-escalation allows it.".to_owned(),
            ],
        });
    }
    if let Some(account) = &member.tenant_account {
        lines.push(format!(
            "The syncer itself only reads. Give the account `{account}` in each namespace the rights to write"
        ));
        lines.push("the objects of that namespace.".to_owned());
    }
    lines
}

fn counted(kinds: usize) -> String {
    if kinds == 1 { "the one kind".to_owned() } else { format!("the {kinds} kinds") }
}

pub fn member_access(install: &Install, member: &Member) -> Vec<Json> {
    let mut objects = vec![service_account(install)];
    objects.extend(cluster_role(install, &cluster_rules(member)));
    let of_people = member.cluster_role.as_ref();
    objects.extend(of_people.map(|role| cluster_binding(install, &objects_binding(install), role)));
    let Some(reporter) = &member.reporter else {
        objects.extend(role(install, &own_rules(install, member)));
        return objects;
    };
    for read in &reporter.reads {
        let of_kind = |kind: &Resource| named(rule(&kind.group, &[&kind.plural], &["get"]), &[&read.name]);
        let rules: Vec<Json> = read.kinds.iter().map(of_kind).collect();
        objects.extend(role_at(install, metadata_at(install, &read.namespace), &rules));
    }
    objects
}

fn metadata_at(install: &Install, namespace: &str) -> Json {
    json!({"name": install.name, "namespace": namespace, "labels": install.labels()})
}

/// Returns the metadata of the Role that an earlier reporter may have in the namespace of each program.
pub fn usual_places(install: &Install) -> [Json; 2] {
    [flux::NAMESPACE, argocd::NAMESPACE].map(|namespace| metadata_at(install, namespace))
}

/// Returns the metadata of the binding to a role that the user named.
pub fn objects_binding(install: &Install) -> Json {
    install.cluster_metadata(&format!("{}-objects", install.name))
}

/// Returns the rules for the kinds of the folder, one per group.
fn cluster_rules(member: &Member) -> Vec<Json> {
    let kinds = member.kinds.iter().map(|Resource { group, plural }| (group.as_str(), plural.as_str()));
    let properties =
        member.cluster_properties.then(|| rule("about.k8s.io", &["clusterproperties"], &["list"]));
    if member.reporter.is_some() {
        let mut rules = rules_of(kinds.clone().chain(GUARDED), &LOOK);
        rules.extend(rules_of(kinds.filter(|kind| GUARDED.contains(kind)), &["delete"]));
        rules.extend(properties);
        return rules;
    }
    let verbs: &[&str] = if member.tenant_account.is_some() { &READ } else { &WRITE };
    let mut rules = rules_of(kinds.clone(), verbs);
    // Often only the pods show why an object is unhealthy.
    if !kinds.clone().any(|kind| kind == ("", "pods")) {
        rules.push(rule("", &["pods"], &["list"]));
    }
    for group in ["", "events.k8s.io"] {
        rules.push(rule(group, &["events"], &["create", "patch"]));
    }
    if let Some(account) = &member.tenant_account {
        rules.push(named(rule("", &["serviceaccounts"], &["get", "impersonate"]), &[account]));
    } else if member.escalate && member.has_access_kinds() {
        rules.push(rule(RBAC, &["clusterroles", "roles"], &["bind", "escalate"]));
    }
    rules.extend(properties);
    rules
}

/// Returns the rules for kinds, one per group.
fn rules_of<'a>(kinds: impl Iterator<Item = (&'a str, &'a str)>, verbs: &[&str]) -> Vec<Json> {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (group, plural) in kinds {
        groups.entry(group).or_default().insert(plural);
    }
    groups.iter().map(|(group, plurals)| rule(group, &Vec::from_iter(plurals), verbs)).collect()
}

/// Returns the rules for the syncer's own objects.
fn own_rules(install: &Install, member: &Member) -> Vec<Json> {
    let records = [install.name.clone(), format!("{}-status", install.name)];
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let mut rules = vec![named(
        rule("", &["configmaps"], &["create", "delete", "get", "patch", "update", "watch"]),
        &records,
    )];
    rules.extend(lease_rules(install));
    for from in &member.overrides {
        rules.push(match &from.name {
            Some(name) => named(rule("", &[&from.plural], &["get"]), &[name]),
            None => rule("", &[&from.plural], &["list"]),
        });
    }
    rules
}
