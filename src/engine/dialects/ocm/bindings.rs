//! ManagedClusterSetBinding → the sets that the placements of a namespace may use.
//!
//! A binding of a missing set is ignored, as in OCM, with a warning.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::open_namespaced;
use super::sets::{SET_LABEL, Sets};
use crate::dialects::Document;
use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::yaml::Scope;

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

pub(super) fn read(scope: &Scope, document: &Document, sets: &Sets, bindings: &mut Bindings) {
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
