//! Member-local overrides: RFC 6902 patches that a member applies last, for values that do not belong in Git.
//!
//! A `LocalOverrides` document selects objects and lists operations for them. A failed override blocks only
//! its object, which keeps its live form. No override may change an object's identity.
//!
//! Documents come from a file or from a cluster's objects, whose faults are reported. An unreadable object
//! blocks nothing: its last good form stays in effect while the process runs. For a Secret, only the place of
//! a fault is shown.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::Value as Json;

use super::desired::{Desired, DesiredSet};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity};
use berth_base::meta::label_selector;
use berth_base::model::selector::Labels;
use berth_base::model::status::Problem;
use berth_base::model::{API_VERSION, IdParts, ObjectId, Operation, Selector, object};
use berth_base::patch::{self, PatchRules};
use berth_base::text::base64;
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

/// The selection of objects in berth's namespace with overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideObjects {
    pub secret: bool,
    pub which: ObjectChoice,
}

/// The selection among the objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectChoice {
    Named(String),
    /// All objects with a label, in the order of their names.
    Labelled(String),
}

/// The local overrides stored in a backend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendOverrides {
    pub overrides: LocalOverrides,
    pub problems: Vec<Problem>,
}

/// The last good form of each object, by its source.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastGoodOverrides(BTreeMap<(String, ObjectId), LocalOverrides>);

impl OverrideObjects {
    pub fn plural(&self) -> &'static str {
        if self.secret { "secrets" } else { "configmaps" }
    }

    pub fn kind(&self) -> &'static str {
        if self.secret { "Secret" } else { "ConfigMap" }
    }

    pub fn name(&self) -> Option<&str> {
        match &self.which {
            ObjectChoice::Named(name) => Some(name),
            ObjectChoice::Labelled(_) => None,
        }
    }

    /// Returns the identity of one of the objects.
    pub fn object(&self, namespace: &str, name: &str) -> ObjectId {
        ObjectId::new("", self.kind(), namespace, name)
    }
}

impl FromStr for OverrideObjects {
    type Err = String;

    fn from_str(text: &str) -> Result<OverrideObjects, String> {
        const FORMS: &str =
            "write it as `configmap/NAME`, `secret/NAME`, `configmaps/LABEL=VALUE` or `secrets/LABEL=VALUE`";
        let (kind, rest) = text.split_once('/').ok_or(FORMS)?;
        let (secret, several) = match kind {
            "configmap" => (false, false),
            "secret" => (true, false),
            "configmaps" => (false, true),
            "secrets" => (true, true),
            _ => return Err(FORMS.to_owned()),
        };
        let fits = if several {
            rest.split_once('=').is_some_and(|(key, value)| {
                berth_base::meta::names::is_label_key(key) && berth_base::meta::names::is_label_value(value)
            })
        } else {
            berth_base::meta::names::is_dns_subdomain(rest)
        };
        if !fits {
            return Err(FORMS.to_owned());
        }
        let which = if several {
            ObjectChoice::Labelled(rest.to_owned())
        } else {
            ObjectChoice::Named(rest.to_owned())
        };
        Ok(OverrideObjects { secret, which })
    }
}

impl fmt::Display for OverrideObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.which, self.secret) {
            (ObjectChoice::Named(name), false) => write!(f, "configmap/{name}"),
            (ObjectChoice::Named(name), true) => write!(f, "secret/{name}"),
            (ObjectChoice::Labelled(label), _) => write!(f, "{}/{label}", self.plural()),
        }
    }
}

impl LastGoodOverrides {
    /// Reads an object as it is now, or falls back to its last good form and reports the reason.
    pub(crate) fn take_object(
        &mut self,
        from: &OverrideObjects,
        id: &ObjectId,
        found: Result<&Json, String>,
        into: &mut BackendOverrides,
    ) {
        let key = (from.to_string(), id.clone());
        match found.and_then(|object| read_content(id, object)) {
            Ok(overrides) => {
                into.overrides = into.overrides.followed_by(&overrides);
                self.0.insert(key, overrides);
            }
            Err(message) => {
                let last = self.0.get(&key);
                let rest = match last {
                    Some(_) => "its last good overrides stay in effect",
                    None => "none of its overrides is in effect",
                };
                into.problems.push(Problem::failed(id.clone(), format!("{message}; {rest}")));
                if let Some(last) = last {
                    into.overrides = into.overrides.followed_by(last);
                }
            }
        }
    }

    /// Returns the objects of a source that have a last good form.
    pub fn of(&self, from: &OverrideObjects) -> Vec<ObjectId> {
        let from = from.to_string();
        self.0.keys().filter(|(source, _)| *source == from).map(|(_, id)| id.clone()).collect()
    }

    /// Forgets the objects of a source that no longer exist in it.
    pub fn keep(&mut self, from: &OverrideObjects, there: &[ObjectId]) {
        let from = from.to_string();
        self.0.retain(|(source, id), _| *source != from || there.contains(id));
    }
}

/// Reads the documents under each key that ends in `.yaml`, in the order of the keys.
fn read_content(id: &ObjectId, object: &Json) -> Result<LocalOverrides, String> {
    let secret = id.is_secret();
    let data = object.get("data").and_then(Json::as_object);
    let texts = data.into_iter().flatten().filter(|(key, _)| key.ends_with(".yaml"));
    let texts: BTreeMap<&String, &str> =
        texts.map(|(key, value)| (key, value.as_str().unwrap_or_default())).collect();
    if texts.is_empty() {
        return Err("it has no key that ends in `.yaml`, with a LocalOverrides document".to_owned());
    }
    let mut all = LocalOverrides::default();
    for (key, text) in texts {
        let decoded = if secret { base64::decode(text) } else { Some(text.as_bytes().to_vec()) };
        let bytes = decoded.ok_or_else(|| format!("its key `{key}` is not base64"))?;
        let file = format!("{id}/{key}");
        let mut one = read(&file, &bytes).map_err(|found| {
            let faults = found.iter().filter(|fault| fault.severity == Severity::Error);
            let words = faults.map(|fault| match (&fault.at, secret) {
                (Some(at), true) => format!("`{key}` has a fault at {}:{}", at.line, at.column),
                (None, true) => format!("`{key}` has a fault"),
                (_, false) => fault.to_string().lines().next().unwrap_or_default().to_owned(),
            });
            format!("it cannot be used: {}", words.collect::<Vec<_>>().join("; "))
        })?;
        one.overrides.iter_mut().for_each(|one| one.sealed = secret);
        all = all.followed_by(&one);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GOOD: &str = "apiVersion: berth.dev/v1alpha1\nkind: LocalOverrides\noverrides:\n- target: {kind: Deployment}\n  patches:\n  - {op: replace, path: /spec/replicas, value: 1}\n";

    #[test]
    fn sources_are_written_as_they_are_read_and_others_are_refused() {
        for text in ["configmap/a", "secret/a.b", "configmaps/berth.dev/overrides=true", "secrets/a=b"] {
            assert_eq!(text.parse::<OverrideObjects>().unwrap().to_string(), text);
        }
        for text in ["a", "configmap/", "configmap/A", "secrets/a", "pods/a", "configmap/a/b"] {
            assert!(text.parse::<OverrideObjects>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_good_form_stays_in_force_and_the_fault_is_said() {
        let id = ObjectId::new("", "ConfigMap", "berth-system", "local");
        let source: OverrideObjects = "configmap/local".parse().unwrap();
        let mut last = LastGoodOverrides::default();
        let mut take_object = |object: Json| {
            let mut into = BackendOverrides::default();
            last.take_object(&source, &id, Ok(&object), &mut into);
            (
                into.overrides.overrides.len(),
                into.problems.iter().map(|it| it.message.clone()).collect::<String>(),
            )
        };
        let (count, problem) =
            take_object(json!({"data": {"a.yaml": "kind: LocalOverrides\noverrides: 1\n"}}));
        assert!(count == 0 && problem.contains("none of its overrides is in effect"), "{problem}");
        assert_eq!(
            take_object(json!({"data": {"a.yaml": GOOD, "b.yaml": GOOD, "note": "x"}})),
            (2, String::new())
        );
        let (count, problem) = take_object(json!({"data": {"note": "x"}}));
        assert!(count == 2 && problem.contains("its last good overrides stay in effect"), "{problem}");
    }

    #[test]
    fn a_secrets_fault_is_told_by_its_place_alone() {
        let id = ObjectId::new("", "Secret", "berth-system", "local");
        let source: OverrideObjects = "secret/local".parse().unwrap();
        // `kind: hunter2`
        let object = json!({"data": {"a.yaml": "a2luZDogaHVudGVyMgo="}});
        let mut into = BackendOverrides::default();
        LastGoodOverrides::default().take_object(&source, &id, Ok(&object), &mut into);
        let message = &into.problems[0].message;
        assert!(message.contains("`a.yaml` has a fault at 1:") && !message.contains("hunter2"), "{message}");
    }
}
