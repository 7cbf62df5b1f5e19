//! The rights of a syncer: on the kinds of its folder everywhere, on its own records in its own namespace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::parameters::{Install, Member, RBAC, Resource};
use super::{lease_rules, named, role, rule, service_account, subjects};

/// Verbs on a folder's objects. A server-side apply is a patch, and a creation where the object is missing.
const WRITE: [&str; 6] = ["create", "delete", "get", "list", "patch", "watch"];
/// The same where other accounts do the writing.
const READ: [&str; 3] = ["get", "list", "watch"];

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
    let writes = member.tenant_account.is_none();
    if writes && member.has_access_kinds() {
        lines.extend(match member.escalate {
            true => vec![
                "It may hand out rights that it has not itself (escalate, bind): whoever can change the"
                    .to_owned(),
                "folder of this cluster can become its administrator.".to_owned(),
            ],
            false => vec![
                "It may not hand out rights that it has not itself: roles and bindings of the folder that would"
                    .to_owned(),
                "are refused by the API server, each alone. --allow-escalation lets them pass.".to_owned(),
            ],
        });
    }
    if let Some(account) = &member.tenant_account {
        lines.push(format!(
            "It only reads; what a namespace's objects need is for the account `{account}` there to have."
        ));
    }
    lines
}

fn counted(kinds: usize) -> String {
    if kinds == 1 { "the one kind".to_owned() } else { format!("the {kinds} kinds") }
}

pub fn access(install: &Install, member: &Member) -> Vec<Json> {
    let version = format!("{RBAC}/v1");
    let own = json!({"name": install.name, "labels": install.labels()});
    let binding = |metadata: &Json, role: &str| {
        json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}, "subjects": subjects(install)})
    };
    let mut objects = vec![
        service_account(install),
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": own,
            "rules": cluster_rules(install, member)}),
        binding(&own, &install.name),
    ];
    objects.extend(member.cluster_role.iter().map(|role| binding(&objects_binding(install), role)));
    objects.extend(role(install, &own_rules(install, member)));
    objects
}

/// Returns the metadata of the binding to a role that people named.
pub fn objects_binding(install: &Install) -> Json {
    json!({"name": format!("{}-objects", install.name), "labels": install.labels()})
}

/// Rules for the kinds of the folder, one for each group.
fn cluster_rules(install: &Install, member: &Member) -> Vec<Json> {
    let verbs: &[&str] = if member.tenant_account.is_some() { &READ } else { &WRITE };
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Resource { group, plural } in &member.kinds {
        groups.entry(group).or_default().insert(plural);
    }
    let mut rules: Vec<Json> =
        groups.iter().map(|(group, plurals)| rule(group, &Vec::from_iter(plurals), verbs)).collect();
    // Often only the pods know why an object is not healthy.
    if !groups.get("").is_some_and(|core| core.contains("pods")) {
        rules.push(rule("", &["pods"], &["list"]));
    }
    rules.push(named(rule("", &["namespaces"], &["get"]), &[&install.namespace]));
    for group in ["", "events.k8s.io"] {
        rules.push(rule(group, &["events"], &["create", "patch"]));
    }
    if let Some(account) = &member.tenant_account {
        rules.push(named(rule("", &["serviceaccounts"], &["get", "impersonate"]), &[account]));
    } else if member.escalate && member.has_access_kinds() {
        rules.push(rule(RBAC, &["clusterroles", "roles"], &["bind", "escalate"]));
    }
    rules
}

/// Rules for the syncer's own objects.
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
