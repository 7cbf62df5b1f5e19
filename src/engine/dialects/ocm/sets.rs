//! ManagedClusterSet → cluster set. `default` and `global` exist even if no file declares them.
//!
//! ManagedClusterSetBinding → the sets that the placements of a namespace may use. A binding of a missing
//! set is ignored, as in OCM, with a warning.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::{open_named, open_namespaced};
use crate::dialects::{Document, Lowered};
use berth_base::diag::{Diagnostic, Pos, did_you_mean};
use berth_base::meta::label_selector;
use berth_base::model::placement::ClusterSet;
use berth_base::model::{Requirement, Selector};
use berth_base::yaml::{Fields, Scope};

/// The label that puts a cluster into the set with this name.
pub(super) const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
pub(super) const DEFAULT_SET: &str = "default";
const GLOBAL_SET: &str = "global";

/// The annotation that stops a hub from managing its built-in sets.
const AUTO_UPDATE: &str = "cluster.open-cluster-management.io/autoupdate";

const BY_LABEL: &str = "ExclusiveClusterSetLabel";
const BY_SELECTOR: &str = "LabelSelector";

/// The sets by name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sets {
    by_name: BTreeMap<String, ClusterSet>,
    /// The sets that have a file.
    in_files: BTreeSet<String>,
}

impl Default for Sets {
    fn default() -> Sets {
        let global = ClusterSet { name: GLOBAL_SET.to_owned(), members: Some(Selector::default()) };
        let by_name = [(DEFAULT_SET.to_owned(), exclusive(DEFAULT_SET)), (GLOBAL_SET.to_owned(), global)];
        Sets { by_name: by_name.into(), in_files: BTreeSet::new() }
    }
}

impl Sets {
    pub(super) fn get(&self, name: &str) -> Option<&ClusterSet> {
        self.by_name.get(name)
    }

    /// Returns a built-in set in its required form.
    fn built_in(name: &str) -> Option<ClusterSet> {
        Sets::default().by_name.remove(name)
    }

    /// Reports whether this is the set of all unlabelled clusters, and no file declares it.
    fn takes_all_others(&self, name: &str) -> bool {
        name == DEFAULT_SET && !self.in_files.contains(DEFAULT_SET)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

pub(super) fn read(scope: &Scope, document: &Document, sets: &mut Sets) {
    let root = document.open();
    let Some((mut fields, metadata)) = open_named(scope, &root) else { return };
    let mut set = exclusive(&metadata.name);
    if let Some(mut spec) = fields.fields("spec") {
        if let Some(selector) = spec.fields("clusterSelector") {
            read_selector(scope, selector, &mut set);
        }
        let mut met = BTreeSet::new();
        for mut namespace in spec.each("managedNamespaces") {
            let name = namespace.required_str("name");
            if let Some(name) = name.filter(|name| !met.insert(*name)) {
                namespace.error_at("name", format!("{} repeats `{name}`", namespace.path_of("name")));
            }
            namespace.finish();
        }
        spec.finish();
    }
    fields.finish();
    let left_alone = metadata.annotations.get(AUTO_UPDATE).is_some_and(|value| value == "false");
    if Sets::built_in(&metadata.name).is_some_and(|built_in| built_in != set) && !left_alone {
        let message = format!("the set `{}` cannot be changed: a hub would restore it", metadata.name);
        let hint = format!("name a set of your own, or annotate this one with {AUTO_UPDATE}: \"false\"");
        scope.report(Diagnostic::error(scope.pos(metadata.name_at), message).hint(hint));
    }
    if !scope.has_errors() {
        sets.in_files.insert(metadata.name.clone());
        sets.by_name.insert(metadata.name, set);
    }
}

/// Warns of clusters with the label of a missing set: no placement that requires a set picks them.
pub(super) fn warn_of_missing(sets: &Sets, lowered: &mut Lowered) {
    for cluster in &lowered.clusters {
        let Some(set) = cluster.labels.get(SET_LABEL).filter(|set| sets.get(set).is_none()) else { continue };
        let message =
            format!("the label of cluster `{}` names the set `{set}`, which does not exist", cluster.name);
        let at = cluster.origins.first().cloned().unwrap_or_else(|| Pos::file(""));
        lowered
            .diagnostics
            .push(Diagnostic::warning(at, message).maybe_hint(did_you_mean(set, sets.names())));
    }
}

fn read_selector(scope: &Scope, mut fields: Fields<'_>, set: &mut ClusterSet) {
    let kind = match fields.str("selectorType") {
        None | Some("") => Some(BY_LABEL),
        Some(_) => fields.choice("selectorType", &[BY_LABEL, BY_SELECTOR]),
    };
    let node = fields.node("labelSelector");
    let members = node.and_then(|node| label_selector(scope, node, &fields.path_of("labelSelector")));
    if kind == Some(BY_SELECTOR) {
        // Without a selector the set has no clusters; with an empty one, all.
        set.members = members;
    }
    fields.finish();
}

fn exclusive(name: &str) -> ClusterSet {
    let label = Requirement::Is(SET_LABEL.to_owned(), name.to_owned());
    ClusterSet { name: name.to_owned(), members: Some(Selector { requirements: vec![label] }) }
}

/// The names of bound, existing sets, by namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bindings {
    by_namespace: BTreeMap<String, BTreeSet<String>>,
}

impl Bindings {
    pub(super) fn of(&self, namespace: &str) -> impl Iterator<Item = &str> {
        self.by_namespace.get(namespace).into_iter().flatten().map(String::as_str)
    }
}

pub(super) fn read_bindings(scope: &Scope, document: &Document, sets: &Sets, bindings: &mut Bindings) {
    let root = document.open();
    let Some((mut fields, metadata)) = open_namespaced(scope, &root) else { return };
    if let Some(mut spec) = fields.required_fields("spec") {
        let set = spec.required_str("clusterSet");
        if let Some(set) = set.filter(|set| *set != metadata.name) {
            let message = format!(
                "spec.clusterSet is `{set}`, but a binding must be named after its set and this one is `{}`",
                metadata.name
            );
            spec.error_at("clusterSet", message);
        } else if let Some(set) = set.filter(|set| sets.get(set).is_none()) {
            let at = scope.pos(spec.place_of("clusterSet"));
            let warning = Diagnostic::warning(
                at,
                format!("there is no ManagedClusterSet `{set}`, so this binding has no effect"),
            );
            scope.report(warning.maybe_hint(did_you_mean(set, sets.names())));
        } else if set.is_some_and(|set| sets.takes_all_others(set)) {
            let at = scope.pos(spec.place_of("clusterSet"));
            let message = format!(
                "every cluster without the label {SET_LABEL} is in `default`: placements of `{}` pick it, also when \
                 the label was forgotten",
                metadata.namespace
            );
            scope.report(Diagnostic::warning(at, message).hint(
                "bind another set, or commit a ManagedClusterSet `default` to confirm that this is intended",
            ));
        }
        spec.finish();
    }
    fields.finish();
    if !scope.has_errors() && sets.get(&metadata.name).is_some() {
        bindings.by_namespace.entry(metadata.namespace).or_default().insert(metadata.name);
    }
}
