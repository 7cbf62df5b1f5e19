//! `deleteOption` and `manifestConfigs` of a work → the annotations of its objects for the syncer.
//!
//! They name resources by their plural: from a CustomResourceDefinition of the tree, or else by the usual
//! English rule.

use std::collections::BTreeMap;

use crate::dialects::Document;
use berth_base::diag::Diagnostic;
use berth_base::model::ObjectId;
use berth_base::model::annotation::{APPLY, DELETE_OPTIONS, INITIAL, ON_CONFLICT, ORPHAN, TOLERATE};
use berth_base::packed::{Packed, View};
use berth_base::yaml::Fields;

type Annotations = BTreeMap<String, String>;

/// The options that a work gives to its objects.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// For all objects.
    all: Annotations,
    /// For matching objects.
    some: Vec<(Resource, Annotations)>,
}

/// Identifies an object as OCM does.
#[derive(Debug)]
struct Resource {
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

impl Resource {
    fn read(fields: &mut Fields<'_>) -> Option<Resource> {
        let group = fields.str("group").unwrap_or_default().to_owned();
        let namespace = fields.str("namespace").unwrap_or_default().to_owned();
        let (resource, name) = (fields.required_str("resource"), fields.required_str("name"));
        Some(Resource { group, resource: resource?.to_owned(), namespace, name: name?.to_owned() })
    }

    fn fits(&self, id: &ObjectId, plurals: &Plurals) -> bool {
        let word = |text: &str, other: &str| text == "*" || text == other;
        *id.group == self.group
            && *id.namespace == self.namespace
            && word(&self.name, &id.name)
            && plurals.is_called(id, &self.resource)
    }
}

/// The plurals that custom resources define, by group and kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plurals(BTreeMap<(String, String), String>);

impl Plurals {
    /// Collects the plurals that CustomResourceDefinitions among documents define.
    pub(super) fn of(documents: &[&Document]) -> Plurals {
        let definitions =
            documents.iter().filter(|document| &*document.key.kind == "CustomResourceDefinition");
        Plurals(definitions.filter_map(|document| defined(&document.root)).collect())
    }

    fn is_called(&self, id: &ObjectId, resource: &str) -> bool {
        if let Some(own) = self.0.get(&(id.group.to_string(), id.kind.to_string())) {
            return own == resource;
        }
        // The names of some kinds are already plurals.
        let word = id.kind.to_lowercase();
        resource == plural(&id.kind) || (word.ends_with('s') && resource == word)
    }
}

fn defined(definition: &Packed) -> Option<((String, String), String)> {
    let text = |path: &str| definition.pointer(path).and_then(View::as_str).map(str::to_owned);
    Some(((text("/spec/group")?, text("/spec/names/kind")?), text("/spec/names/plural")?))
}

impl Options {
    pub(super) fn of(&self, id: &ObjectId, plurals: &Plurals) -> Annotations {
        let fitting = self.some.iter().filter(|(resource, _)| resource.fits(id, plurals));
        let mut all = self.all.clone();
        all.extend(fitting.flat_map(|(_, annotations)| annotations.clone()));
        all
    }
}

/// Reads both fields of a work's spec. `objects` are those of the work. An option that matches none of them
/// is reported, and is an error if an object would be deleted or written against the author's intent.
pub(super) fn read(template: &mut Fields<'_>, objects: &[ObjectId], plurals: &Plurals) -> Options {
    let mut options = Options::default();
    let fits_any = |resource: &Resource| objects.iter().any(|id| resource.fits(id, plurals));
    if let Some(fields) = template.fields("deleteOption") {
        delete_option(fields, &fits_any, &mut options);
    }
    for mut config in template.each("manifestConfigs") {
        let at = config.at();
        let resource = config.required_fields("resourceIdentifier").and_then(|mut fields| {
            let resource = Resource::read(&mut fields);
            fields.finish();
            resource
        });
        let annotations = config.fields("updateStrategy").map(update_strategy).unwrap_or_default();
        config.accept(&["feedbackScrapeType"]);
        for (rules, why) in WITHOUT_EFFECT {
            if config.node(rules).is_some() {
                let message = format!("{} has no effect: {why}", config.path_of(rules));
                config.scope().warning(config.place_of(rules), message);
            }
        }
        if let Some(resource) = resource {
            if !fits_any(&resource) {
                let message =
                    format!("{} matches no object of this work", config.path_of("resourceIdentifier"));
                let scope = config.scope();
                match annotations.contains_key(APPLY) {
                    true => scope.report(Diagnostic::error(scope.pos(at), message).hint(NAMING)),
                    false => scope.warning(at, message),
                }
            }
            options.some.push((resource, annotations));
        }
        config.finish();
    }
    options
}

/// Rules for a hub's agents that members do not follow, each with the members' behaviour.
const WITHOUT_EFFECT: [(&str, &str); 2] = [
    ("feedbackRules", "members report the health of objects, and never values of their fields"),
    ("conditionRules", "the member's health rules decide when an object is healthy"),
];

/// The hint for a resource that matches no object.
const NAMING: &str = "use the object's group, resource (the plural), namespace and name; until then the \
                      work stays unchanged";

fn delete_option(mut fields: Fields<'_>, fits_any: &dyn Fn(&Resource) -> bool, options: &mut Options) {
    let policy = fields.choice("propagationPolicy", &["Foreground", "Orphan", "SelectivelyOrphan"]);
    let orphan = || Annotations::from([(ORPHAN.to_owned(), "true".to_owned())]);
    match policy {
        Some("Foreground") => {
            let foreground = r#"{"propagationPolicy":"Foreground"}"#;
            options.all.insert(DELETE_OPTIONS.to_owned(), foreground.to_owned());
        }
        Some("Orphan") => options.all = orphan(),
        _ => {}
    }
    let selective = policy == Some("SelectivelyOrphan");
    match fields.fields("selectivelyOrphans") {
        Some(mut selected) if selective => {
            for mut rule in selected.each("orphaningRules") {
                let at = rule.at();
                if let Some(resource) = Resource::read(&mut rule) {
                    if !fits_any(&resource) {
                        let message = format!("{} matches no object of this work", rule.path());
                        let scope = rule.scope();
                        scope.report(Diagnostic::error(scope.pos(at), message).hint(NAMING));
                    }
                    options.some.push((resource, orphan()));
                }
                rule.finish();
            }
            selected.finish();
        }
        Some(_) => {
            let message = format!("{} needs SelectivelyOrphan", fields.path_of("selectivelyOrphans"));
            fields.error_at("selectivelyOrphans", message);
        }
        None if selective => fields.error_at(
            "selectivelyOrphans",
            format!("{} is required with SelectivelyOrphan", fields.path_of("selectivelyOrphans")),
        ),
        None => {}
    }
    if fields.int_in("ttlSecondsAfterFinished", 0..=i64::MAX).is_some() {
        let message = format!(
            "{} has no effect: finished objects stay until the work is removed",
            fields.path_of("ttlSecondsAfterFinished")
        );
        fields.scope().warning(fields.place_of("ttlSecondsAfterFinished"), message);
    }
    fields.finish();
}

fn update_strategy(mut fields: Fields<'_>) -> Annotations {
    let mut annotations = Annotations::new();
    let mut set = |name: &str, value: &str| annotations.insert(name.to_owned(), value.to_owned());
    let kind = fields.choice("type", &["Update", "CreateOnly", "ServerSideApply", "ReadOnly"]);
    match kind {
        Some("Update") => set(ON_CONFLICT, "force"),
        Some("CreateOnly") => set(APPLY, "create-only"),
        Some("ReadOnly") => set(APPLY, "read-only"),
        _ => None,
    };
    if let Some(mut apply) = fields.fields("serverSideApply") {
        let server_side = kind == Some("ServerSideApply");
        if apply.bool("force") == Some(true) && server_side {
            set(ON_CONFLICT, "force");
        }
        if let Some(manager) = apply.str("fieldManager") {
            let at = apply.place_of("fieldManager");
            let path = apply.path_of("fieldManager");
            if !manager.starts_with("work-agent") {
                apply.scope().error(at, format!("{path} is `{manager}`, but must start with `work-agent`"));
            } else if manager != "work-agent" {
                let message = format!("{path} has no effect: members apply as `berth/<fleet>`");
                apply.scope().warning(at, message);
            }
        }
        let (mut initial, mut tolerated) = (Vec::new(), Vec::new());
        for mut ignored in apply.each("ignoreFields") {
            let change =
                ignored.choice("condition", &["OnSpokePresent", "OnSpokeChange"]) == Some("OnSpokeChange");
            let into = if change { &mut tolerated } else { &mut initial };
            into.extend(paths(&mut ignored));
            ignored.finish();
        }
        if server_side && !initial.is_empty() {
            set(INITIAL, &initial.join(","));
        }
        if server_side && !tolerated.is_empty() {
            set(TOLERATE, &tolerated.join(","));
        }
        apply.finish();
    }
    fields.finish();
    annotations
}

/// Returns the ignored fields, as JSON pointers with `*` for every item of a list.
fn paths(ignored: &mut Fields<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for key in ["jsonPointers", "jsonPaths", "jqPathExpressions"] {
        for text in ignored.strings(key).unwrap_or_default() {
            let pointer = match key {
                "jsonPointers" => {
                    Some(text.to_owned()).filter(|text| text.starts_with('/') && !text.contains(','))
                }
                _ => plain_path(text),
            };
            match pointer {
                Some(pointer) => found.push(pointer),
                None => {
                    let path = ignored.path_of(key);
                    let message = format!("{path}: `{text}` is not a plain path, so it is not ignored");
                    ignored.scope().warning(ignored.place_of(key), message);
                }
            }
        }
    }
    found
}

/// Converts `.spec.ports[*].nodePort` into `/spec/ports/*/nodePort`. `None` for conditions and computations.
fn plain_path(text: &str) -> Option<String> {
    let text = text.replace("[*]", ".*").replace("[]", ".*");
    let parts = text.strip_prefix('$').unwrap_or(&text).strip_prefix('.')?.split('.');
    let mut pointer = String::new();
    for part in parts {
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
        if part.is_empty() || !(part == "*" || part.chars().all(plain)) {
            return None;
        }
        pointer.push('/');
        pointer.push_str(part);
    }
    Some(pointer)
}

/// Returns a kind's resource.
fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    if word == "endpoints" {
        return word;
    }
    if ["s", "x", "ch", "sh", "z"].iter().any(|end| word.ends_with(end)) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialects::ParsedDocument;
    use berth_base::model::Key;

    #[test]
    fn plain_paths_become_pointers() {
        for (text, pointer) in [
            (".spec.replicas", Some("/spec/replicas")),
            ("$.spec.ports[*].nodePort", Some("/spec/ports/*/nodePort")),
            (".spec.containers[].image", Some("/spec/containers/*/image")),
            (".spec.containers[?(@.name==\"a\")].image", None),
            (".spec | keys", None),
            ("spec", None),
        ] {
            assert_eq!(plain_path(text).as_deref(), pointer, "{text}");
        }
    }

    #[test]
    fn kinds_have_their_resources() {
        for (kind, resource) in [
            ("Deployment", "deployments"),
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("Gateway", "gateways"),
            ("Endpoints", "endpoints"),
        ] {
            assert_eq!(plural(kind), resource);
        }
    }

    #[test]
    fn a_kind_may_be_its_own_plural_or_have_one_that_its_definition_gives() {
        let id = |group: &str, kind: &str| {
            ObjectId::of(
                &json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "a"}}),
            )
            .expect("an object")
        };
        let none = Plurals::default();
        let scc = id("security.openshift.io", "SecurityContextConstraints");
        assert!(none.is_called(&scc, "securitycontextconstraints"));
        assert!(!none.is_called(&id("apps", "Deployment"), "deployment"));
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "indices.search.io"},
            "spec": {"group": "search.io", "names": {"kind": "Index", "plural": "indices"}},
        });
        let definition: Document = ParsedDocument {
            key: Key::new("apiextensions.k8s.io", "CustomResourceDefinition", "", "indices.search.io"),
            root: Packed::of(&definition),
            ..ParsedDocument::default()
        }
        .into();
        let plurals = Plurals::of(&[&definition]);
        assert!(plurals.is_called(&id("search.io", "Index"), "indices"));
        assert!(!plurals.is_called(&id("search.io", "Index"), "indexes"));
        assert!(plurals.is_called(&id("other.io", "Index"), "indexes"));
    }
}
