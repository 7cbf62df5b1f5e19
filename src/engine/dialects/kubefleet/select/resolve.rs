//! Selectors over the selectable objects → the items of a placement, or the reason for refusing them.

use std::collections::BTreeSet;

use super::selectable::{Item, Selectable};
use super::selectors::{Reach, ResourceSelector, Selectors};
use crate::dialects::kubefleet::kinds::Scope as ObjectScope;
use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::yaml::fields::Scope;

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
