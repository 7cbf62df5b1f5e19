//! The rights of a syncer: on the kinds of its folder everywhere, on its own records in its own namespace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::parameters::{Install, RBAC, Resource};

/// Verbs on a folder's objects. A server-side apply is a patch, and a creation where the object is missing.
const WRITE: [&str; 6] = ["create", "delete", "get", "list", "patch", "watch"];
/// The same where other accounts do the writing.
const READ: [&str; 3] = ["get", "list", "watch"];

pub fn about(install: &Install) -> Vec<String> {
    let mut lines = vec![format!(
        "Made for {} in the folder of cluster {}. When new kinds come, make it again and apply it.",
        counted(install.kinds.len()),
        install.cluster
    )];
    let writes = install.tenant_account.is_none();
    if writes && install.has_access_kinds() {
        lines.extend(match install.escalate {
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
    if let Some(account) = &install.tenant_account {
        lines.push(format!(
            "It only reads; what a namespace's objects need is for the account `{account}` there to have."
        ));
    }
    lines
}

fn counted(kinds: usize) -> String {
    if kinds == 1 { "the one kind".to_owned() } else { format!("the {kinds} kinds") }
}

pub fn objects(install: &Install) -> Vec<Json> {
    let wide = json!({"name": install.name, "labels": install.labels()});
    let rbac = format!("{RBAC}/v1");
    let subjects = json!([{"kind": "ServiceAccount", "name": install.name, "namespace": install.namespace}]);
    let role_ref = |kind: &str| json!({"apiGroup": RBAC, "kind": kind, "name": install.name});
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": install.metadata()}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": wide, "rules": cluster_rules(install)}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": wide,
            "roleRef": role_ref("ClusterRole"), "subjects": subjects}),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": install.metadata(), "rules": own_rules(install)}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": install.metadata(),
            "roleRef": role_ref("Role"), "subjects": subjects}),
    ]
}

/// Rules for the kinds of the folder, one for each group.
fn cluster_rules(install: &Install) -> Vec<Json> {
    let verbs: &[&str] = if install.tenant_account.is_some() { &READ } else { &WRITE };
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Resource { group, plural } in &install.kinds {
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
    if let Some(account) = &install.tenant_account {
        rules.push(named(rule("", &["serviceaccounts"], &["get", "impersonate"]), &[account]));
    } else if install.escalate && install.has_access_kinds() {
        rules.push(rule(RBAC, &["clusterroles", "roles"], &["bind", "escalate"]));
    }
    rules
}

/// Rules for the syncer's own objects.
fn own_rules(install: &Install) -> Vec<Json> {
    let records = [install.name.clone(), format!("{}-status", install.name)];
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let mut rules = vec![
        named(rule("", &["configmaps"], &["create", "delete", "get", "patch", "update", "watch"]), &records),
        named(rule("coordination.k8s.io", &["leases"], &["get", "patch", "update"]), &[&install.name]),
        // A right to create cannot name the object: a POST has no name in its path.
        rule("coordination.k8s.io", &["leases"], &["create"]),
    ];
    for from in &install.overrides {
        rules.push(match &from.name {
            Some(name) => named(rule("", &[&from.plural], &["get"]), &[name]),
            None => rule("", &[&from.plural], &["list"]),
        });
    }
    rules
}

fn rule<T: serde::Serialize>(group: &str, plurals: &[T], verbs: &[&str]) -> Json {
    json!({"apiGroups": [group], "resources": plurals, "verbs": verbs})
}

fn named(mut rule: Json, names: &[&str]) -> Json {
    rule["resourceNames"] = json!(names);
    rule
}
