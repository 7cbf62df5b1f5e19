//! Rendered documents → files of the tree: what Helm does only when it applies them, and what berth refuses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::API_VERSION;
use berth_base::model::object::group_of;
use berth_base::source::wanted;
use berth_base::yaml::{self, Limits, Node, Value, emit, list_kind};
use berth_engine::dialects::object_scopes::{DEFINITION, ObjectScope};
use berth_engine::load::{RenderSource, append};

/// Custom kinds without a namespace, as `kind.group`.
pub(super) type ClusterKinds = BTreeSet<String>;

/// A document as it was rendered.
pub(super) struct RenderedText<'a> {
    /// The path below the chart: `templates/deployment.yaml`.
    pub template: &'a str,
    pub text: &'a str,
}

/// The rules for what a source renders.
pub(super) struct Rules<'a> {
    pub source: &'a RenderSource,
    /// The namespace of objects without one.
    pub namespace: Option<&'a str>,
    /// The kinds that no namespace is added to, besides those of Kubernetes.
    pub cluster_kinds: &'a ClusterKinds,
    pub allows_secrets: bool,
    /// The values of a chart, merged.
    pub values: &'a Json,
}

/// Makes the files of a source from its documents, by path below the source's folder. Returns the first fault of
/// each document that is refused.
pub(super) fn files_of(
    documents: &[RenderedText<'_>],
    rules: &Rules<'_>,
) -> Result<BTreeMap<String, Vec<u8>>, Vec<Diagnostic>> {
    let (mut files, mut faults) = (BTreeMap::<String, Vec<u8>>::new(), Vec::new());
    for document in documents.iter().filter(|document| has_content(document.text)) {
        match rules.checked(document) {
            Ok(text) => append(files.entry(file_name(document.template)).or_default(), &text),
            Err(fault) => faults.push(fault),
        }
    }
    files.values_mut().filter(|text| !text.ends_with(b"\n")).for_each(|text| text.push(b'\n'));
    if faults.is_empty() { Ok(files) } else { Err(faults) }
}

/// Returns the name under which berth reads a template's objects, whatever the name of the template.
fn file_name(template: &str) -> String {
    let name = template.rsplit('/').next().unwrap_or(template);
    let is_marker = ["Chart.yaml", "kustomization.yaml", "kustomization.yml"].contains(&name);
    match wanted(name) && !is_marker {
        true => template.to_owned(),
        false => format!("{template}.yaml"),
    }
}

/// Reports whether a text has more than comments.
fn has_content(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#') && line != "---")
}

impl Rules<'_> {
    /// Returns a document's text, with the namespace if its objects lack one.
    fn checked(&self, document: &RenderedText<'_>) -> Result<Vec<u8>, Diagnostic> {
        let read = yaml::read(document.text.as_bytes(), &Limits::default());
        if let Some(fault) = read.faults.iter().find(|fault| fault.unreadable.is_some()) {
            let message =
                format!("renders text that is not YAML, at line {}: {}", fault.at.line, fault.message);
            let hint = "`helm template` and `kustomize build` show the text";
            return Err(self.fault(document, &message).hint(hint));
        }
        let lacks = |object: &Node| self.lacks_namespace(object);
        let (mut text, mut is_changed) = (Vec::new(), false);
        for one in read.documents {
            let objects = objects(one.root.clone());
            objects.iter().try_for_each(|object| self.check(document, object))?;
            let own = document.text.get(one.bytes).unwrap_or_default();
            match self.namespace {
                Some(namespace) if objects.iter().any(lacks) => {
                    is_changed = true;
                    append(&mut text, with_namespace(own, one.root, namespace, &lacks).as_bytes());
                }
                _ => append(&mut text, own.as_bytes()),
            }
        }
        Ok(if is_changed { text } else { document.text.as_bytes().to_owned() })
    }

    /// Checks one object.
    fn check(&self, document: &RenderedText<'_>, object: &Node) -> Result<(), Diagnostic> {
        let (group, kind) = group_and_kind(object);
        if group == group_of(API_VERSION) {
            let message = format!("renders berth's own kind `{kind}`, which only people may write");
            return Err(self.fault(document, &message));
        }
        let has = |field: &str| match object.get(field).map(|node| &node.value) {
            Some(Value::Map(entries)) => !entries.is_empty(),
            _ => false,
        };
        if !(group.is_empty() && kind == "Secret" && (has("data") || has("stringData")))
            || self.allows_secrets
        {
            return Ok(());
        }
        let name = object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::as_str);
        let message = format!(
            "renders the Secret `{}` with data, which everybody could read on the rendered branch",
            name.unwrap_or_default()
        );
        let mut known = Vec::new();
        collect_values(self.values, "", &mut known);
        known.truncate(MOST_NAMED);
        let advice = match known.as_slice() {
            [] => {
                "look in the chart's values for one such as `existingSecret`, which names a Secret".to_owned()
            }
            known => format!("name a Secret of the cluster in `{}`", known.join("`, `")),
        };
        let hint = format!("{advice}; or write `secrets: allow` into {}", self.source.at);
        Err(self.fault(document, &message).hint(hint))
    }

    /// Reports whether an object needs a namespace and has none. A custom kind is in a namespace unless something says
    /// otherwise, as most are.
    fn lacks_namespace(&self, object: &Node) -> bool {
        let (group, kind) = group_and_kind(object);
        let is_missing = match object.get("metadata").map(|metadata| (metadata, &metadata.value)) {
            None | Some((_, Value::Null)) => true,
            Some((metadata, Value::Map(_))) => metadata
                .get("namespace")
                .is_none_or(|namespace| namespace.is_null() || namespace.as_str() == Some("")),
            // Loading the object reports the fault.
            Some(_) => false,
        };
        let is_in_namespace = || match ObjectScope::of_built_in(&group, &kind) {
            Some(scope) => scope == ObjectScope::Namespaced,
            None => !self.cluster_kinds.contains(&format!("{kind}.{group}")),
        };
        self.namespace.is_some() && !kind.is_empty() && is_missing && is_in_namespace()
    }

    /// Makes the fault of a template.
    fn fault(&self, document: &RenderedText<'_>, message: &str) -> Diagnostic {
        let at = Pos::file(format!("{}/{}", self.source.path, document.template));
        Diagnostic::error(at, format!("{}: the template {message}", self.source.shown()))
    }
}

/// The values that an advice names.
const MOST_NAMED: usize = 3;

/// Collects the paths of values that name an existing Secret.
fn collect_values(values: &Json, path: &str, found: &mut Vec<String>) {
    let Json::Object(entries) = values else { return };
    for (key, value) in entries {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if key.to_lowercase().contains("existingsecret") && !value.is_object() {
            found.push(path.clone());
        }
        collect_values(value, &path, found);
    }
}

/// Returns the objects of a document: those in a list, or the document itself.
fn objects(root: Node) -> Vec<Node> {
    match list_kind::is_list(&root) {
        true => list_kind::items(root).into_iter().flat_map(objects).collect(),
        false => vec![root],
    }
}

fn group_and_kind(object: &Node) -> (String, String) {
    let text = |key: &str| object.get(key).and_then(Node::as_str).unwrap_or_default();
    (group_of(text("apiVersion")).to_owned(), text("kind").to_owned())
}

/// Returns the kinds without a namespace that the definitions in a text describe.
pub(super) fn defined_kinds(text: &[u8]) -> ClusterKinds {
    let (group, kind) = DEFINITION;
    if !str::from_utf8(text).is_ok_and(|text| text.contains(kind)) {
        return ClusterKinds::new();
    }
    let defined = |object: Node| {
        let spec =
            object.get("spec").filter(|_| group_and_kind(&object) == (group.to_owned(), kind.to_owned()))?;
        let text = |node: &Node, key: &str| Some(node.get(key)?.as_str()?.to_owned());
        let is_in_cluster = ObjectScope::of_word(&text(spec, "scope")?) == ObjectScope::Cluster;
        is_in_cluster.then_some(format!("{}.{}", text(spec.get("names")?, "kind")?, text(spec, "group")?))
    };
    let documents = yaml::read(text, &Limits::default()).documents;
    documents.into_iter().flat_map(|document| objects(document.root)).filter_map(defined).collect()
}

/// Returns the text of a document with the namespace in its objects. Adds one line where it can, so that all other
/// lines stay as the template wrote them.
fn with_namespace(text: &str, root: Node, namespace: &str, lacks: &dyn Fn(&Node) -> bool) -> String {
    if !list_kind::is_list(&root)
        && let Some(text) = with_line(text, namespace)
    {
        return text;
    }
    let mut json = root.to_json();
    if list_kind::is_list(&root) {
        let items = list_kind::items(root);
        let all = json.get_mut("items").and_then(Json::as_array_mut);
        for (item, json) in items.iter().zip(all.into_iter().flatten()) {
            if lacks(item) {
                json["metadata"]["namespace"] = json!(namespace);
            }
        }
    } else {
        json["metadata"]["namespace"] = json!(namespace);
    }
    emit(&json)
}

/// Adds a line with the namespace as the first line of a block of metadata. `None` if the text has another form.
fn with_line(text: &str, namespace: &str) -> Option<String> {
    let read = yaml::read(text.as_bytes(), &Limits::default());
    let [document] = read.documents.as_slice() else { return None };
    let Value::Map(entries) = &document.root.get("metadata")?.value else { return None };
    // A namespace that is empty stands there already.
    if entries.iter().any(|entry| entry.key == "namespace") {
        return None;
    }
    let first = entries.first()?.at;
    let line = usize::try_from(first.line).ok()?.checked_sub(1)?;
    let indent = usize::try_from(first.column).ok()?.checked_sub(1)?;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let before = text.get(start..start + indent)?;
    let is_block = before.bytes().all(|byte| byte == b' ') && text[start + indent..].contains(':');
    // A namespace such as `123` is no text without quotes.
    let line = emit(&json!({ "namespace": namespace }));
    is_block.then(|| format!("{}{before}{line}{}", &text[..start], &text[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_one_more_line() {
        let text =
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  # why\n  name: web\n  labels: {a: b}\ndata: {}\n";
        let expected = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  # why\n  namespace: shop\n  name: web\n  labels: {a: b}\ndata: {}\n";
        assert_eq!(with_line(text, "shop").as_deref(), Some(expected));
        for odd in ["123", "on", "null"] {
            let text = with_line(text, odd).expect("a block");
            let root = yaml::read(text.as_bytes(), &Limits::default()).documents.remove(0).root;
            assert_eq!(root.to_json()["metadata"]["namespace"], json!(odd));
        }
    }

    #[test]
    fn metadata_in_another_form_is_written_anew() {
        for text in [
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}\n",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n  namespace:\n",
        ] {
            assert_eq!(with_line(text, "shop"), None, "{text}");
            let root = yaml::read(text.as_bytes(), &Limits::default()).documents.remove(0).root;
            let text = with_namespace(text, root, "shop", &|_| true);
            let root = yaml::read(text.as_bytes(), &Limits::default()).documents.remove(0).root;
            assert_eq!(root.to_json()["metadata"], json!({"name": "web", "namespace": "shop"}));
        }
    }

    #[test]
    fn templates_become_files_that_are_read_as_objects() {
        assert_eq!(file_name("templates/a.yaml"), "templates/a.yaml");
        assert_eq!(file_name("templates/a.txt"), "templates/a.txt.yaml");
        assert_eq!(file_name("templates/kustomization.yaml"), "templates/kustomization.yaml.yaml");
    }

    #[test]
    fn comments_are_no_content() {
        assert!(!has_content("# Source: x\n\n---\n  # more\n"));
        assert!(has_content("# x\nkind: A\n"));
    }
}
