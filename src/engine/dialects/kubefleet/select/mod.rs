//! `resourceSelectors` and the objects of the repository → the objects of a placement.
//!
//! The repository takes the place of the hub: [`Selectable`] holds its objects, [`read`] reads the
//! selectors and checks each of them, [`resolve`] combines them. A selection that KubeFleet refuses as a
//! whole (a reserved namespace, an object selected twice) blocks the placement with the reason.

mod selectable;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::common_mistakes::label_selector;
use crate::dialects::object_scopes::ObjectScope;
use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::model::Selector;
use berth_base::yaml::fields::{Fields, Scope};
use berth_base::yaml::node::Mark;

pub use selectable::{Item, Selectable};

const MOST: usize = 100;
const LONGEST_NAME: usize = 253;

/// A placement's selectors; at least one of them must match an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Selectors {
    pub at: Mark,
    pub list: Vec<ResourceSelector>,
}

/// Selects objects by kind, and optionally by name or labels.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSelector {
    pub at: Mark,
    pub path: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: Option<String>,
    pub labels: Option<Selector>,
    /// The namespace of the selected objects, for cluster-scoped placements of the next API.
    pub namespace: Option<String>,
    pub reach: Reach,
}

/// The objects that a selected namespace brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The namespace and all of its objects.
    Contents,
    /// Only the namespace object.
    Only,
    /// The namespace object; the placement's other selectors select from its contents.
    Chosen,
}

impl ResourceSelector {
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.version == "v1" && self.kind == "Namespace"
    }

    /// Returns `Kind name` or `Kind`, for messages.
    pub fn words(&self) -> String {
        let kind = if self.group.is_empty() {
            format!("{} {}", self.version, self.kind)
        } else {
            format!("{}/{} {}", self.group, self.version, self.kind)
        };
        self.name.as_ref().map_or(kind.clone(), |name| format!("{kind} `{name}`"))
    }
}

impl Selectors {
    /// Returns the namespace from whose contents the selectors select, if there is one.
    fn chosen_namespace(&self) -> Option<&str> {
        let chosen = |one: &&ResourceSelector| one.is_namespace() && one.reach == Reach::Chosen;
        self.list.iter().find(chosen).and_then(|one| one.name.as_deref())
    }
}

/// Reads the field. `None` if the key is absent: such a placement is a policy for others to use.
pub fn read(spec: &mut Fields<'_>, cluster_scoped: bool) -> Option<Selectors> {
    let at = spec.node("resourceSelectors")?.at;
    let path = spec.path_of("resourceSelectors");
    let count = spec.list("resourceSelectors").map_or(1, <[_]>::len);
    if count == 0 || count > MOST {
        spec.scope().error(at, format!("{path} must have from 1 to {MOST} entries, not {count}"));
    }
    let list: Vec<_> = spec.each("resourceSelectors").into_iter().filter_map(selector).collect();
    let selectors = Selectors { at, list };
    if cluster_scoped {
        check_namespaces(spec, &selectors);
    }
    Some(selectors)
}

fn selector(mut fields: Fields<'_>) -> Option<ResourceSelector> {
    let group = group(&mut fields).to_owned();
    let version = fields.required_str("version");
    let kind = fields.required_str("kind");
    let name = fields.str("name").filter(|name| !name.is_empty());
    let labels = fields.node("labelSelector");
    if name.is_some() && labels.is_some() {
        let message = format!("{} and name exclude each other", fields.path_of("labelSelector"));
        fields.error_at("labelSelector", message);
    }
    if name.is_some_and(|name| name.len() > LONGEST_NAME) {
        let message = format!("{} must not be longer than {LONGEST_NAME} characters", fields.path_of("name"));
        fields.error_at("name", message);
    }
    let path = fields.path_of("labelSelector");
    let labels = labels.map(|node| label_selector(fields.scope(), node, &path));
    let reach = match fields.choice(
        "selectionScope",
        &["NamespaceWithResources", "NamespaceOnly", "NamespaceWithResourceSelectors"],
    ) {
        Some("NamespaceOnly") => Reach::Only,
        Some("NamespaceWithResourceSelectors") => Reach::Chosen,
        _ => Reach::Contents,
    };
    let (at, path) = (fields.at(), fields.path().to_owned());
    fields.finish();
    // A faulty label selector must not become one that matches everything.
    let labels = match labels {
        Some(read) => Some(read?),
        None => None,
    };
    let (version, kind, name) = (version?.to_owned(), kind?.to_owned(), name.map(str::to_owned));
    Some(ResourceSelector { at, path, group, version, kind, name, labels, namespace: None, reach })
}

/// Reads the API group, which must be written even if it is empty.
pub fn group<'a>(fields: &mut Fields<'a>) -> &'a str {
    fields.require_or_hint("group", Some("write `group: \"\"` for the core group".to_owned()));
    fields.str("group").unwrap_or_default()
}

/// Checks that `NamespaceWithResourceSelectors` selects a single namespace, by name.
fn check_namespaces(spec: &Fields<'_>, selectors: &Selectors) {
    let namespaces: Vec<_> = selectors.list.iter().filter(|one| one.is_namespace()).collect();
    let Some(chosen) = namespaces.iter().find(|one| one.reach == Reach::Chosen) else { return };
    let path = format!("{}.selectionScope", chosen.path);
    if namespaces.len() > 1 {
        let message = format!("{path} NamespaceWithResourceSelectors must be the only Namespace selector");
        spec.scope().error(chosen.at, message);
    }
    if chosen.name.is_none() {
        spec.scope().error(chosen.at, format!("{path} NamespaceWithResourceSelectors needs a name"));
    }
}

/// The selection of one placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// In the order of their keys.
    pub items: Vec<Item>,
    /// The reason why KubeFleet refuses the selection as a whole. Decision files contain it, so another text
    /// would break the proofs of old commits.
    pub invalid: Option<String>,
}

/// Resolves a placement's selectors; `namespace` is the ResourcePlacement's. Selectors that no object can
/// match are errors in the scope; selectors that currently match nothing are warnings.
pub fn resolve(
    scope: &Scope,
    stock: &Selectable<'_>,
    selectors: &Selectors,
    namespace: Option<&str>,
) -> Selected {
    let search = Search { stock, namespace, chosen: selectors.chosen_namespace() };
    let mut taken = BTreeSet::new();
    let mut selected = Selected::default();
    for selector in &selectors.list {
        search.check_scope(scope, selector);
        let found = search.one(selector);
        if found.items.is_empty() && found.invalid.is_none() {
            let message = format!(
                "{} selects nothing: the repository has no {} that can be placed",
                selector.path,
                selector.words()
            );
            let warning = Diagnostic::warning(scope.pos(selector.at), message);
            scope.report(warning.maybe_hint(search.similar(selector)));
        }
        for item in found.items {
            if !taken.insert((stock.parts(item), item)) {
                let message = format!("{} selects {} a second time", selector.path, stock.id(item));
                selected.invalid.get_or_insert(message);
            }
        }
        if let Some(invalid) = found.invalid {
            selected.invalid.get_or_insert(invalid);
        }
    }
    selected.items = taken.into_iter().map(|(_, item)| item).collect();
    selected
}

struct Search<'a> {
    stock: &'a Selectable<'a>,
    namespace: Option<&'a str>,
    /// The namespace to which `NamespaceWithResourceSelectors` limits namespaced kinds.
    chosen: Option<&'a str>,
}

impl Search<'_> {
    fn one(&self, selector: &ResourceSelector) -> Selected {
        let mut matching: Vec<Item> = self.candidates(selector);
        matching.retain(|item| self.matches(selector, *item));
        if let Some(name) = selector.namespace.as_deref().filter(|name| is_reserved(name)) {
            let message =
                format!("{} selects in namespace {name}, which is reserved and never placed", selector.path);
            return Selected { items: Vec::new(), invalid: Some(message) };
        }
        if self.namespace.is_some() || !selector.is_namespace() || selector.reach == Reach::Only {
            return Selected { items: matching, invalid: None };
        }
        self.namespaces(selector, matching)
    }

    /// Returns the items of the selector's kind, and of its name if it has one, in the order of their files.
    fn candidates(&self, selector: &ResourceSelector) -> Vec<Item> {
        // A ResourcePlacement selects in its own namespace, others cluster-scoped objects and objects in the
        // chosen namespace.
        let namespaces = match (self.namespace, self.chosen) {
            (Some(own), _) => [Some(own), None],
            (None, _) if selector.namespace.is_some() => [selector.namespace.as_deref(), None],
            (None, chosen) => [Some(""), chosen.filter(|chosen| !chosen.is_empty())],
        };
        let of = |namespace| {
            self.stock.of_kind(&selector.group, &selector.kind, namespace, selector.name.as_deref())
        };
        let mut found: Vec<Item> = namespaces.into_iter().flatten().flat_map(of).copied().collect();
        found.sort_unstable();
        found
    }

    /// Returns a hint with the object of the same kind whose name is nearest.
    fn similar(&self, selector: &ResourceSelector) -> Option<String> {
        let wanted = selector.name.as_deref()?;
        let all = self.candidates(&ResourceSelector { name: None, ..selector.clone() });
        did_you_mean(wanted, all.into_iter().map(|item| self.stock.name(item)))
    }

    fn matches(&self, selector: &ResourceSelector, item: Item) -> bool {
        self.stock.version(item) == selector.version
            && selector.labels.as_ref().is_none_or(|labels| labels.matches(&self.stock.labels(item)))
    }

    /// Selects namespaces with their contents, or the namespace for the other selectors.
    fn namespaces(&self, selector: &ResourceSelector, matching: Vec<Item>) -> Selected {
        let named = selector.name.as_deref().filter(|name| is_reserved(name));
        let mut names = matching.iter().map(|item| self.stock.name(*item));
        if let Some(name) = named.or_else(|| names.find(|name| is_reserved(name))) {
            let message =
                format!("{} selects namespace {name}, which is reserved and never placed", selector.path);
            let allowed = matching.into_iter().filter(|item| !is_reserved(self.stock.name(*item)));
            let items = allowed.flat_map(|item| self.with_contents(selector, item)).collect();
            return Selected { items, invalid: Some(message) };
        }
        if selector.reach == Reach::Chosen && matching.is_empty() {
            let name = selector.name.as_deref().unwrap_or_default();
            let message = format!("{} selects namespace `{name}`, which does not exist", selector.path);
            return Selected { items: matching, invalid: Some(message) };
        }
        let items = matching.into_iter().flat_map(|item| self.with_contents(selector, item)).collect();
        Selected { items, invalid: None }
    }

    fn with_contents(&self, selector: &ResourceSelector, namespace: Item) -> Vec<Item> {
        let mut items = vec![namespace];
        if selector.reach == Reach::Contents {
            items.extend(self.stock.in_namespace(self.stock.name(namespace)));
        }
        items
    }

    /// Checks the scope: a ClusterResourcePlacement selects cluster-scoped kinds, a ResourcePlacement
    /// namespaced ones.
    fn check_scope(&self, scope: &Scope, selector: &ResourceSelector) {
        let kind = self.stock.scope(&selector.group, &selector.kind);
        let words = selector.words();
        if self.namespace.is_some() && kind == Some(ObjectScope::Cluster) {
            let message = format!(
                "{}: {words} is cluster-scoped, which a ResourcePlacement cannot select",
                selector.path
            );
            scope.error(selector.at, message);
        }
        let in_one = self.chosen.is_some() || selector.namespace.is_some();
        if self.namespace.is_none() && !in_one && kind == Some(ObjectScope::Namespaced) {
            let message = format!(
                "{}: {words} is namespaced, which a ClusterResourcePlacement selects only beside a Namespace \
                 with selectionScope NamespaceWithResourceSelectors",
                selector.path
            );
            scope.error(selector.at, message);
        }
    }
}

/// Reports whether a namespace belongs to Kubernetes or to the fleet itself.
fn is_reserved(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-") || namespace.starts_with("fleet-")
}
