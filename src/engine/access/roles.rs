//! A hub's roles, in the forms of Open Cluster Management's documentation → grants.
//!
//! A ClusterRole names rights on cluster sets, a ClusterRoleBinding binds it to groups and users, and an
//! `AccessRule` binds these to folders. Rights without a counterpart in a repository get a warning.

use std::collections::{BTreeMap, BTreeSet};

use super::FOLDER;
use super::patterns::Names;
use super::rule::{Grants, Rule, SUBJECT_KINDS, Subject};
use crate::dialects::Document;
use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::meta;
use berth_base::yaml::{Fields, Mark, Scope};

/// The API group of roles.
const GROUP: &str = "rbac.authorization.k8s.io";
/// The group of the resources in these rules.
const CLUSTERS: &str = "cluster.open-cluster-management.io";
/// The prefix of the roles that the hub makes for each set.
const MADE_BY_HUB: &str = "open-cluster-management:managedclusterset:";
const CHANGING: [&str; 3] = ["create", "update", "patch"];

/// Reports whether a document is a role or a role binding.
pub fn is_role(document: &Document) -> bool {
    let kinds = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    *document.key.group == *GROUP && kinds.contains(&&*document.key.kind)
}

/// Roles and their bindings.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    by_name: BTreeMap<String, Vec<Grants>>,
    bindings: Vec<Binding>,
}

#[derive(Clone, Debug)]
struct Binding {
    name: String,
    role: String,
    role_at: Mark,
    subjects: Vec<(Subject, Mark)>,
    file: std::sync::Arc<str>,
}

impl Roles {
    /// Reads one document and reports its faults.
    pub fn read(&mut self, scope: &Scope, document: &Document) {
        let root = document.open();
        let Some((mut fields, metadata)) = meta::open(scope, &root) else { return };
        match &*document.key.kind {
            "ClusterRole" => {
                if fields.node("aggregationRule").is_some() {
                    let at = fields.place_of("aggregationRule");
                    scope.warning(at, "aggregationRule has no effect here: name the rights in `rules`");
                }
                let grants = fields.each("rules").into_iter().map(grants).collect();
                fields.finish();
                if !scope.has_errors() {
                    self.by_name.insert(metadata.name, grants);
                }
            }
            "ClusterRoleBinding" => {
                let binding = binding(&mut fields, metadata.name, document);
                fields.finish();
                self.bindings.extend(binding.filter(|_| !scope.has_errors()));
            }
            kind => {
                let message = format!("a {kind} gives no right here: cluster sets are in no namespace");
                let hint = "use a ClusterRole and a ClusterRoleBinding, or `namespaces` of an AccessRule";
                scope.report(Diagnostic::warning(document.at.clone(), message).hint(hint));
            }
        }
    }

    /// Returns the rules that follow from bindings, for the folders of their subjects. Passes warnings about
    /// useless parts to `tell`.
    pub fn rules(&self, rules: &[Rule], mut tell: impl FnMut(Diagnostic)) -> Vec<Rule> {
        let mut made = Vec::new();
        for binding in &self.bindings {
            let warn = |at: Mark, message: String, hint: Option<String>| {
                let scope = Scope::new(binding.file.clone(), berth_base::diag::Severity::Error);
                Diagnostic::warning(scope.pos(at), message).maybe_hint(hint)
            };
            let Some(grants) =
                self.by_name.get(&binding.role).cloned().or_else(|| made_by_hub(&binding.role))
            else {
                let names = self.by_name.keys().map(String::as_str);
                let message = format!("the ClusterRole `{}` does not exist in `{FOLDER}`", binding.role);
                tell(warn(binding.role_at, message, did_you_mean(&binding.role, names)));
                continue;
            };
            for (subject, at) in &binding.subjects {
                let theirs: Vec<&Rule> =
                    rules.iter().filter(|rule| rule.subjects.contains(subject)).collect();
                if theirs.is_empty() {
                    let message = format!(
                        "no AccessRule lists the {} `{}` under `subjects`, so its roles have no effect",
                        subject.kind, subject.name
                    );
                    tell(warn(*at, message, Some("add it to the `subjects` of an AccessRule".to_owned())));
                }
                made.extend(theirs.into_iter().flat_map(|rule| {
                    grants.iter().map(|grants| Rule {
                        name: format!("{} by {}", rule.name, binding.name),
                        folders: rule.folders.clone(),
                        subjects: Vec::new(),
                        grants: grants.clone(),
                    })
                }));
            }
        }
        made
    }
}

/// Returns the grants of a role that the hub makes for each set, recognized by its name.
fn made_by_hub(name: &str) -> Option<Vec<Grants>> {
    let (what, set) = name.strip_prefix(MADE_BY_HUB)?.split_once(':')?;
    let set = Names::of([set]);
    Some(vec![match what {
        "admin" => Grants { admin: set, ..Grants::default() },
        "bind" => Grants { bind: set, ..Grants::default() },
        // Every reader of the repository sees every set.
        "view" => Grants::default(),
        _ => return None,
    }])
}

fn binding(fields: &mut Fields<'_>, name: String, document: &Document) -> Option<Binding> {
    let role = fields.required_fields("roleRef").and_then(|mut role| {
        role.accept(&["apiGroup"]);
        role.choice("kind", &["ClusterRole"]);
        let at = role.place_of("name");
        let name = role.required_str("name").map(str::to_owned);
        role.finish();
        Some((name?, at))
    });
    let subjects = fields.each("subjects").into_iter().filter_map(subject).collect();
    let (role, role_at) = role?;
    Some(Binding { name, role, role_at, subjects, file: document.at.file.clone() })
}

fn subject(mut fields: Fields<'_>) -> Option<(Subject, Mark)> {
    fields.accept(&["apiGroup"]);
    let at = fields.at();
    fields.require("kind");
    let kind = fields.choice("kind", &SUBJECT_KINDS);
    let name = fields.required_str("name").map(str::to_owned);
    let namespace = fields.str("namespace").unwrap_or_default().to_owned();
    fields.finish();
    Some((Subject { kind: kind?.to_owned(), namespace, name: name? }, at))
}

/// Reads one rule of a role. Rights without a counterpart in a repository get a warning.
fn grants(mut fields: Fields<'_>) -> Grants {
    let mut words = |key| -> BTreeSet<String> {
        fields.strings(key).unwrap_or_default().into_iter().map(str::to_owned).collect()
    };
    let (groups, resources, verbs) = (words("apiGroups"), words("resources"), words("verbs"));
    words("nonResourceURLs");
    let named = fields.strings("resourceNames").filter(|names| !names.is_empty());
    let names =
        named.map_or_else(Names::every, |names| Names::of(names.into_iter().filter(|name| *name != "*")));
    let mut grants = Grants::default();
    let has = |of: &BTreeSet<String>, one: &str| of.contains(one) || of.contains("*");
    let mut idle = Vec::new();
    for resource in &resources {
        let creates = has(&verbs, "create");
        let changes = CHANGING.iter().any(|verb| has(&verbs, verb));
        let before = grants.clone();
        if has(&groups, CLUSTERS) {
            let is = |one: &str| resource == one || resource == "*";
            if creates && (is("managedclustersets/bind") || resource == "managedclustersets/*") {
                grants.bind = names.clone();
            }
            if creates && (is("managedclustersets/join") || resource == "managedclustersets/*") {
                grants.join = names.clone();
            }
            if changes && is("managedclustersets") {
                grants.define = names.clone();
            }
            if changes && is("managedclusters") {
                grants.edit = names.clone();
            }
        }
        let only_reads = verbs.iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str()));
        if grants == before && !only_reads {
            idle.push(format!("`{resource}`"));
        }
    }
    if !idle.is_empty() {
        let verbs = verbs.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("the rights on {} ({verbs}) have no effect in a repository", idle.join(", "));
        let hint = format!(
            "of `{CLUSTERS}`, create on managedclustersets/bind and managedclustersets/join, and create, update or \
             patch on managedclustersets and managedclusters count"
        );
        let at = fields.scope().pos(fields.place_of("resources"));
        fields.scope().report(Diagnostic::warning(at, message).hint(hint));
    }
    fields.finish();
    grants
}

/// Warns of a role with rights on cluster sets in a folder where it has no effect.
pub fn misplaced(document: &Document) -> Option<Diagnostic> {
    if *document.key.kind != *"ClusterRole" || !is_role(document) {
        return None;
    }
    let rules = document.root.get("rules")?;
    let resources = rules.items().filter_map(|rule| Some(rule.get("resources")?.items()));
    let found = resources
        .flatten()
        .find(|item| item.as_str().is_some_and(|text| text.starts_with("managedclustersets/")))?;
    let at = berth_base::diag::Pos {
        file: document.at.file.clone(),
        line: found.at().line,
        column: found.at().column,
    };
    let text = found.as_str().unwrap_or_default();
    let message = format!("`{text}` is a right on a hub; as an access rule it counts only under `{FOLDER}`");
    Some(Diagnostic::warning(at, message).hint("see docs/tenancy.md"))
}
