//! `spec.overrides` → overrides, in their order. Each cluster has one entry, and no override may change an
//! object's name. Unlike in KubeFed, a path may occur twice, and all operations of RFC 6902 are supported.
//!
//! berth's extension: `clusterSelector` in place of `clusterName`, for all clusters with these labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::dialects::Document;
use berth_base::diag::Diagnostic;
use berth_base::meta::label_selector;
use berth_base::model::{Action, Applies, Override, Pointer, Term, Verb};
use berth_base::patch::{self, PatchRules};
use berth_base::text::SharedValues;
use berth_base::yaml::{Fields, Mark, Scope};

/// An operation that is missing is `replace`, which may add.
const PATCH_RULES: PatchRules =
    PatchRules { default_verb: Some(Verb::Replace), replace_may_add: true, ..PatchRules::RFC_6902 };

const FIXED: [&[&str]; 4] =
    [&["kind"], &["metadata", "generateName"], &["metadata", "name"], &["metadata", "namespace"]];

pub(super) fn read(fields: &mut Fields<'_>, document: &Document) -> Vec<Override> {
    let scope = fields.scope();
    let path_of_list = fields.path_of("overrides");
    let mut named = BTreeMap::new();
    let by = Arc::new(document.key.clone());
    // Most overrides of an object change the same fields.
    let mut paths = SharedValues::default();
    let mut overrides = Vec::new();
    for mut entry in fields.each("overrides") {
        let clusters = read_clusters(scope, &mut entry, &path_of_list, &mut named);
        let path = entry.path_of("clusterOverrides");
        let list = entry.list("clusterOverrides").unwrap_or_default();
        let mut operations = patch::operations(scope, list, &path, &PATCH_RULES);
        let is_fixed = |path: &Pointer| FIXED.iter().any(|fixed| path.parts() == *fixed);
        for operation in operations.iter().filter(|operation| is_fixed(&operation.path)) {
            let message = format!("{path}: `{}` cannot be overridden", operation.path);
            scope.report(Diagnostic::error(operation.at.clone(), message));
        }
        operations.iter_mut().for_each(|operation| paths.share(&mut operation.path));
        let at = entry.at();
        entry.finish();
        if let (Some(clusters), false) = (clusters, operations.is_empty()) {
            overrides.push(Override {
                by: by.clone(),
                origin: scope.pos(at),
                clusters,
                objects: None,
                action: Action::Patch(operations.into()),
            });
        }
    }
    overrides.shrink_to_fit();
    overrides
}

fn read_clusters<'a>(
    scope: &Scope,
    entry: &mut Fields<'a>,
    list: &str,
    named: &mut BTreeMap<&'a str, Mark>,
) -> Option<Applies> {
    if let Some(selector) = entry.node("clusterSelector") {
        if entry.node("clusterName").is_some() {
            entry.error_at(
                "clusterName",
                format!("{} and clusterSelector exclude each other", entry.path_of("clusterName")),
            );
            return None;
        }
        let labels = label_selector(scope, selector, &entry.path_of("clusterSelector"))?;
        return Some(Applies::AnyOf(vec![Term { labels, ..Term::default() }]));
    }
    let name = entry.required_str("clusterName")?;
    let at = entry.place_of("clusterName");
    if let Some(first) = named.insert(name, at) {
        let message = format!("{}: `{name}` already has an entry in {list}", entry.path_of("clusterName"));
        let hint = format!("move the operations to the entry at line {}", first.line);
        scope.report(Diagnostic::error(scope.pos(at), message).hint(hint));
        named.insert(name, first);
    }
    Some(Applies::To(name.to_owned()))
}
