//! Member-local overrides: RFC 6902 patches that a member applies last, for values that do not belong in Git.
//!
//! A `LocalOverrides` document selects objects and lists operations for them. A failed override blocks only its
//! object, which keeps its live form. No override may change an object's identity.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::desired::{Desired, DesiredSet};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity};
use berth_base::meta::label_selector;
use berth_base::model::API_VERSION;
use berth_base::model::selector::Labels;
use berth_base::model::status::Problem;
use berth_base::model::{IdParts, ObjectId, Operation, Selector, object};
use berth_base::patch::{self, PatchRules};
use berth_base::yaml::{self, Fields, Limits, Node, Scope};

/// The kind of the documents.
pub const KIND: &str = "LocalOverrides";

/// A member's overrides, in order of application.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalOverrides {
    pub overrides: Vec<LocalOverride>,
}

impl LocalOverrides {
    /// Returns these overrides, followed by the others.
    pub(crate) fn followed_by(&self, others: &LocalOverrides) -> LocalOverrides {
        LocalOverrides { overrides: self.overrides.iter().chain(&others.overrides).cloned().collect() }
    }
}

/// A set of operations, and the selection of their objects.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalOverride {
    pub at: Pos,
    /// True if the override comes from a Secret, so that messages never show its values.
    pub sealed: bool,
    pub kind: String,
    pub group: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub labels: Option<Selector>,
    pub operations: Vec<Operation>,
}

/// Reads a file of overrides. An error makes the whole file invalid: applying a part would change live objects.
pub fn read(file: &str, bytes: &[u8]) -> Result<LocalOverrides, Diagnostics> {
    let read = yaml::read(bytes, &Limits::of_a_part());
    let scope = Scope::new(file.into(), Severity::Error);
    for fault in read.faults {
        let fault_at = scope.pos(fault.at);
        scope.report(Diagnostic::new(fault.severity, fault_at, fault.message).maybe_hint(fault.hint));
    }
    let mut all = LocalOverrides::default();
    for document in &read.documents {
        all.overrides.extend(from_node(&scope, &document.root).overrides);
    }
    if scope.has_errors() { Err(scope.into_diagnostics()) } else { Ok(all) }
}

/// Reads one document, reporting every fault.
pub fn from_node(scope: &Scope, root: &Node) -> LocalOverrides {
    let Some(mut fields) = scope.fields(root, "") else { return LocalOverrides::default() };
    fields.accept(&["metadata"]);
    let (version, kind) = (fields.required_str("apiVersion"), fields.required_str("kind"));
    for (key, found, wanted) in [("apiVersion", version, API_VERSION), ("kind", kind, KIND)] {
        if found.is_some_and(|found| found != wanted) {
            fields.error_at(key, format!("{key} must be {wanted}"));
        }
    }
    let overrides = fields.each("overrides").into_iter().filter_map(one).collect();
    fields.finish();
    LocalOverrides { overrides }
}

fn one(mut fields: Fields<'_>) -> Option<LocalOverride> {
    let scope = fields.scope();
    let at = scope.pos(fields.at());
    let target = fields.required_fields("target").and_then(|mut target| {
        let text = |value: Option<&str>| value.map(str::to_owned);
        let kind = target.required_str("kind").map(str::to_owned);
        let (group, namespace) = (text(target.str("group")), text(target.str("namespace")));
        let name = text(target.str("name"));
        let path = target.path_of("labelSelector");
        let selector = target.node("labelSelector").map(|node| label_selector(scope, node, &path));
        target.finish();
        // A faulty selector selects nothing here; its error makes the whole file invalid anyway.
        let labels = selector.map_or(Some(None), |selector| selector.map(Some));
        Some((kind?, group, namespace, name, labels?))
    });
    let path = fields.path_of("patches");
    if fields.require("patches") && fields.list("patches").is_some_and(<[Node]>::is_empty) {
        fields.error_at("patches", format!("{path} must not be empty"));
    }
    let list = fields.list("patches").unwrap_or_default();
    let operations = patch::operations(scope, list, &path, &PatchRules::RFC_6902);
    fields.finish();
    let (kind, group, namespace, name, labels) = target?;
    Some(LocalOverride { at, sealed: false, kind, group, namespace, name, labels, operations })
}

impl LocalOverride {
    fn words(&self) -> String {
        let hidden = if self.sealed { "; the change is not shown" } else { "" };
        format!("changed by a local override, at {}{hidden}", self.at)
    }

    fn is_for(&self, desired: &Desired) -> bool {
        let IdParts { group, kind, namespace, name } = &*desired.id;
        let fits = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|it| it == found);
        *self.kind == **kind
            && fits(&self.group, group)
            && fits(&self.namespace, namespace)
            && fits(&self.name, name)
            && self.labels.as_ref().is_none_or(|selector| selector.matches(&labels_of(&desired.object())))
    }
}

fn labels_of(object: &Json) -> Labels {
    let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
    let text = |(key, value): (&String, &Json)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.and_then(Json::as_object).into_iter().flatten().filter_map(text).collect()
}

/// Applies the overrides to their objects, and blocks an object whose override fails. Returns the changed objects,
/// each with the override.
pub fn apply(local: &LocalOverrides, cluster: &str, set: &mut DesiredSet) -> Vec<Problem> {
    let mut touched = Vec::new();
    let mut changed: BTreeMap<ObjectId, Result<Desired, String>> = BTreeMap::new();
    for (id, desired) in &set.objects {
        let own: Vec<&LocalOverride> = local.overrides.iter().filter(|local| local.is_for(desired)).collect();
        if own.is_empty() {
            continue;
        }
        let result = patched(&own, cluster, desired);
        if result.is_ok() {
            touched.extend(own.iter().map(|own| Problem::failed(id.clone(), own.words())));
        }
        changed.insert(id.clone(), result);
    }
    for (id, result) in changed {
        match result {
            Ok(desired) => {
                set.objects.insert(id, desired);
            }
            Err(message) => set.block(&id, message),
        }
    }
    touched
}

fn patched(own: &[&LocalOverride], cluster: &str, desired: &Desired) -> Result<Desired, String> {
    let mut object = desired.object();
    let labels = Labels::new();
    for local in own {
        let target = patch::Target { cluster, labels: &labels };
        object = match patch::apply(&object, &local.operations, target) {
            Ok(patched) => patched.object,
            Err(error) => {
                let hidden = local.sealed || desired.id.is_secret();
                let what = if hidden { "<redacted>" } else { &error.message };
                return Err(format!("the local override at {} cannot be applied: {what}", error.at));
            }
        };
        if ObjectId::of(&object).as_ref() != Some(&desired.id) {
            return Err(format!("the local override at {} makes it another object", local.at));
        }
        if let Some(key) = object::list_field(&object) {
            return Err(format!(
                "the local override at {} makes it a list through its field `{key}`",
                local.at
            ));
        }
    }
    let sealed = desired.sealed || own.iter().any(|own| own.sealed);
    Desired::new(&object, sealed).ok_or_else(|| "a local override leaves nothing of it".to_owned())
}
