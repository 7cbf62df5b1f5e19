//! `ClusterResourceOverride` and `ResourceOverride` → [`Override`](berth_base::model::Override)s of
//! workloads.
//!
//! [`read`] reads one document, [`bind()`] finds its workloads and objects.

mod bind;

#[cfg(test)]
mod tests;

use super::common_mistakes::label_selector;
use super::policy::check_terms;
use super::select::group;
use berth_base::diag::Pos;
use berth_base::meta;
use berth_base::model::object::ObjectId;
use berth_base::model::{Action, Key, Operation, Term};
use berth_base::patch::{PatchRules, operations};
use berth_base::yaml::fields::{Fields, Scope};
use berth_base::yaml::node::{Mark, Node};

pub use bind::{bind, refuse_rivals};

/// Only `add`, `remove` and `replace`, no empty part of a path, negative indexes, variables.
const PATCH_RULES: PatchRules = PatchRules {
    verbs: &["add", "remove", "replace"],
    from_the_end: true,
    allows_empty_parts: false,
    remove_may_have_value: false,
    variables: true,
    ..PatchRules::RFC_6902
};

/// An override object as written.
#[derive(Clone, Debug, PartialEq)]
pub struct OverrideSpec {
    pub key: Key,
    pub origin: Pos,
    pub placement: Option<PlacementName>,
    pub targets: Vec<Target>,
    pub rules: Vec<OverrideRule>,
}

/// The single placement to which an override is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacementName {
    pub at: Mark,
    pub name: String,
    /// True for a ResourcePlacement of the override's namespace, false for a ClusterResourcePlacement.
    pub namespaced: bool,
}

/// An object that the override names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub at: Mark,
    pub path: String,
    pub version: String,
    pub id: ObjectId,
}

/// The action of an override on some clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct OverrideRule {
    pub at: Pos,
    /// At least one term must match. Without terms, the rule matches no cluster.
    pub clusters: Vec<Term>,
    pub action: Action,
}

/// Reads an override. Faults go to the scope; if there are any, the result must not be used.
pub fn read(scope: &Scope, root: &Node, key: &Key) -> Option<OverrideSpec> {
    let (mut fields, metadata) = meta::open(scope, root)?;
    let cluster_scoped = &*key.kind == "ClusterResourceOverride";
    if !cluster_scoped && metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required".to_owned());
    }
    let mut spec = fields.required_fields("spec")?;
    let placement = spec.fields("placement").and_then(|fields| placement(fields, cluster_scoped));
    let selectors = if cluster_scoped { "clusterResourceSelectors" } else { "resourceSelectors" };
    spec.require(selectors);
    let targets = targets(&mut spec, selectors, &metadata.namespace);
    let mut rules = Vec::new();
    if let Some(mut policy) = spec.required_fields("policy") {
        policy.require("overrideRules");
        check_count(&mut policy, "overrideRules");
        rules = policy.each("overrideRules").into_iter().filter_map(rule).collect();
        policy.finish();
    }
    spec.finish();
    fields.finish();
    let origin = scope.pos(root.at);
    Some(OverrideSpec { key: key.clone(), origin, placement, targets, rules })
}

fn check_count(fields: &mut Fields<'_>, key: &'static str) {
    if let Some(count) = fields.list(key).map(<[_]>::len).filter(|count| !(1..=20).contains(count)) {
        fields.error_at(key, format!("{} must have from 1 to 20 entries, not {count}", fields.path_of(key)));
    }
}

fn placement(mut fields: Fields<'_>, cluster_scoped: bool) -> Option<PlacementName> {
    let at = fields.at();
    let name = fields.required_str("name").map(str::to_owned);
    let namespaced = fields.choice("scope", &["Cluster", "Namespaced"]) == Some("Namespaced");
    if namespaced && cluster_scoped {
        let message =
            format!("{} of a ClusterResourceOverride cannot be Namespaced", fields.path_of("scope"));
        fields.error_at("scope", message);
    }
    fields.finish();
    Some(PlacementName { at, name: name?, namespaced })
}

fn targets(spec: &mut Fields<'_>, key: &'static str, namespace: &str) -> Vec<Target> {
    check_count(spec, key);
    let mut targets: Vec<Target> = Vec::new();
    for mut fields in spec.each(key) {
        let group = group(&mut fields);
        let version = fields.required_str("version");
        let kind = fields.required_str("kind");
        let name = fields.required_str("name");
        if fields.misplaced("labelSelector").is_some() {
            let message = format!("{}: an override selects by name only", fields.path_of("labelSelector"));
            fields.error_at("labelSelector", message);
        }
        // The API shares this field with placements; here it has no effect.
        fields.str("selectionScope");
        let (at, path, scope) = (fields.at(), fields.path().to_owned(), fields.scope());
        fields.finish();
        let (Some(version), Some(kind), Some(name)) = (version, kind, name) else { continue };
        let id = ObjectId::new(group, kind, namespace, name);
        if targets.iter().any(|earlier| earlier.id == id && earlier.version == version) {
            scope.error(at, format!("{path} selects {id} twice"));
        }
        targets.push(Target { at, path, version: version.to_owned(), id });
    }
    targets
}

fn rule(mut fields: Fields<'_>) -> Option<OverrideRule> {
    let scope = fields.scope();
    let at = scope.pos(fields.at());
    let clusters = match fields.fields("clusterSelector") {
        Some(selector) => terms(selector),
        None => {
            let message = format!("{} has no clusterSelector and so matches no cluster", fields.path());
            scope.report(
                berth_base::diag::Diagnostic::warning(at.clone(), message)
                    .hint("write `clusterSelector: {}` for all clusters"),
            );
            Vec::new()
        }
    };
    let delete = fields.choice("overrideType", &["JSONPatch", "Delete"]) == Some("Delete");
    let path = fields.path_of("jsonPatchOverrides");
    let list = fields.list("jsonPatchOverrides");
    let count = list.map_or(0, <[_]>::len);
    let patch = operations(scope, list.unwrap_or_default(), &path, &PATCH_RULES);
    for operation in &patch {
        if let Some(fault) = path_fault(operation) {
            scope.report(berth_base::diag::Diagnostic::error(
                operation.at.clone(),
                format!("{path}: path {fault}"),
            ));
        }
    }
    if delete && count > 0 {
        fields.error_at("jsonPatchOverrides", format!("{path} does not go with overrideType Delete"));
    }
    if !delete && !(1..=20).contains(&count) {
        let message = format!("{path} must have from 1 to 20 entries, not {count}");
        fields.error_at("jsonPatchOverrides", message);
    }
    fields.finish();
    let action = if delete { Action::Delete } else { Action::Patch(patch.into()) };
    Some(OverrideRule { at, clusters, action })
}

/// Reads the terms of a selector; a selector without terms matches all clusters.
fn terms(mut selector: Fields<'_>) -> Vec<Term> {
    let mut terms = Vec::new();
    check_terms(&mut selector);
    for mut term in selector.each("clusterSelectorTerms") {
        term.require("labelSelector");
        let path = term.path_of("labelSelector");
        let labels = term.node("labelSelector").and_then(|node| label_selector(term.scope(), node, &path));
        for key in ["propertySelector", "propertySorter"] {
            if term.misplaced(key).is_some() {
                term.error_at(key, format!("{}: an override looks at labels only", term.path_of(key)));
            }
        }
        term.finish();
        terms.push(Term { labels: labels.unwrap_or_default(), ..Term::default() });
    }
    if selector.list("clusterSelectorTerms").is_none_or(<[_]>::is_empty) {
        terms.push(Term::default());
    }
    selector.finish();
    terms
}

/// Returns the fault of an operation's path.
pub fn path_fault(operation: &Operation) -> Option<String> {
    let mut parts = operation.path.parts().iter().map(String::as_str);
    let refused = match (parts.next(), parts.next()) {
        (None, _) => "must start with `/` and name a part of the object",
        (Some("kind" | "apiVersion" | "status"), _) => "must not touch kind, apiVersion or status",
        (Some("metadata"), Some("labels" | "annotations")) => return None,
        (Some("metadata"), _) => "may touch only labels and annotations of metadata",
        _ => return None,
    };
    Some(format!("`{}` {refused}", operation.path))
}
