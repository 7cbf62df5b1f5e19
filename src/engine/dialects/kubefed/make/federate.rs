//! Plain objects → Federated objects, and the type configs that they need.
//!
//! A pure function of objects and options, whatever the source of the objects. A fault affects only its
//! own object. A generated document is read again: berth never generates a document that its own reader
//! would refuse.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::template;
use super::types::{ApiResource, FederatedKind, KnownTypes, Resources, federated_names, type_config};
use crate::dialects::kubefed::placement::Namespaces;
use crate::dialects::kubefed::{FederatedContext, federated, types};
use crate::dialects::{Document, Lowered, ParsedDocument};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity};
use berth_base::meta::names::{fault_of_name, is_dns_label};
use berth_base::model::Key;
use berth_base::model::object::{group_of, version_of};
use berth_base::yaml::{Limits, Scope, emit, read};

/// An object to federate, with its source.
#[derive(Clone, Debug)]
pub struct FederateSubject {
    pub object: Json,
    pub at: Pos,
}

/// The result of federating objects.
#[derive(Clone, Debug, Default)]
pub struct Federated {
    /// Type configs first, then namespaces, then the rest in the order of the input.
    pub documents: Vec<GeneratedDocument>,
    pub diagnostics: Diagnostics,
}

/// A generated document.
#[derive(Clone, Debug)]
pub struct GeneratedDocument {
    pub key: Key,
    /// The kind of the wrapped object; for a type config, its own kind.
    pub of_kind: String,
    pub document: Json,
}

/// Federates objects.
pub fn federate(subjects: &[FederateSubject], options: &FederateOptions) -> Federated {
    let mut work = FederateWork::new(options);
    let wanted = work.wanted(subjects);
    for subject in &wanted {
        work.take(subject);
    }
    work.finish()
}

struct FederateWork<'a> {
    options: &'a FederateOptions,
    types: KnownTypes,
    configs: BTreeMap<String, Json>,
    namespaces: Vec<GeneratedDocument>,
    others: Vec<GeneratedDocument>,
    /// The place of the object that took each key.
    taken: BTreeMap<Key, Pos>,
    secrets: usize,
    found: Diagnostics,
}

impl<'a> FederateWork<'a> {
    fn new(options: &'a FederateOptions) -> FederateWork<'a> {
        FederateWork {
            options,
            types: options.types.clone(),
            configs: BTreeMap::new(),
            namespaces: Vec::new(),
            others: Vec::new(),
            taken: BTreeMap::new(),
            secrets: 0,
            found: Diagnostics::new(),
        }
    }

    /// Returns the objects to federate: all, or with `contents` the namespaces and their objects.
    fn wanted(&mut self, subjects: &[FederateSubject]) -> Vec<FederateSubject> {
        if !self.options.contents {
            return subjects.to_vec();
        }
        let given = |subject: &&FederateSubject| {
            subject.object["apiVersion"] == "v1" && subject.object["kind"] == "Namespace"
        };
        let name = |subject: &FederateSubject| {
            subject.object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
        };
        let mut meant: BTreeSet<String> = subjects.iter().filter(given).map(name).collect();
        let mut made = Vec::new();
        if let Some(only) = &self.options.namespace {
            if !meant.contains(only) {
                let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": only}});
                self.found.push(Diagnostic::note(format!(
                    "the objects hold no Namespace `{only}`, so its FederatedNamespace has an empty \
                     template"
                )));
                made.push(FederateSubject { object, at: Pos::file(format!("Namespace {only}")) });
            }
            meant = [only.clone()].into();
        }
        let is_meant = |subject: &&FederateSubject| match given(subject) {
            true => meant.contains(&name(subject)),
            false => self.namespace_of(&subject.object).is_some_and(|namespace| meant.contains(namespace)),
        };
        let before = made.len();
        made.extend(subjects.iter().filter(is_meant).cloned());
        let passed_over = subjects.len() - (made.len() - before);
        if meant.is_empty() {
            let message = "--contents needs a Namespace, and the objects hold none";
            let fault = Diagnostic { at: None, ..Diagnostic::error(Pos::file(""), message) };
            self.found.push(fault.hint("add the Namespace's file, or name it with --namespace"));
        } else if passed_over > 0 {
            self.found
                .push(Diagnostic::note(format!("skipped objects outside the namespace: {passed_over}")));
        }
        made
    }

    /// Returns the namespace of an object, or its default.
    fn namespace_of<'o>(&'o self, object: &'o Json) -> Option<&'o str> {
        let own = object["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        let group = group_of(object["apiVersion"].as_str().unwrap_or_default());
        let kind = object["kind"].as_str().unwrap_or_default();
        let cluster_scoped =
            self.options.resources.of_kind(group, kind).is_some_and(|resource| !resource.namespaced);
        own.or(self.options.namespace.as_deref()).filter(|_| !cluster_scoped)
    }

    fn take(&mut self, subject: &FederateSubject) {
        let FederateSubject { object, at } = subject;
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (name, given) = (text(&object["metadata"]["name"]), text(&object["metadata"]["namespace"]));
        if name.is_empty() {
            return self
                .found
                .push(Diagnostic::error(at.clone(), format!("{kind}: metadata.name is required")));
        }
        let resource = self.resource(&api_version, &kind, !given.is_empty());
        let described = Key::new(&resource.group, &kind, &given, &name);
        if let Some(reason) = template::skip_reason(object, &resource, self.options) {
            let message = format!("{described} is not federated: {reason}");
            return self.found.push(Diagnostic::new(Severity::Note, at.clone(), message));
        }
        if let Some(fault) = fault_of_name(&name) {
            let message = format!("{described}: metadata.name {fault}");
            return self.found.push(Diagnostic::error(at.clone(), message));
        }
        let Some(federated) = self.federated(&resource, &described, at) else { return };
        let Some(namespace) = self.namespace(&federated, object, &described, at) else { return };
        let key = Key::new(&federated.group, &federated.kind, &namespace, &name);
        let mut document = json!({
            "apiVersion": federated.api_version(),
            "kind": federated.kind,
            "metadata": {"name": name},
            "spec": {
                "template": template::template(object, &federated),
                "placement": self.options.placement.placement(),
            },
        });
        if !namespace.is_empty() {
            document["metadata"]["namespace"] = namespace.into();
        }
        let faults = faults_of_object(&document, &federated);
        if !faults.is_empty() {
            return self.report_faults(&described, at, &faults);
        }
        if let Some(first) = self.taken.insert(key.clone(), at.clone()) {
            let message = format!("{described} is given twice, first at {first}");
            return self.found.push(Diagnostic::error(at.clone(), message).hint("remove one of the two"));
        }
        self.secrets += usize::from(resource.group.is_empty() && kind == "Secret");
        let made = GeneratedDocument { key, of_kind: kind, document };
        if federated.is_of_namespaces() { self.namespaces.push(made) } else { self.others.push(made) }
    }

    /// Returns the object's type; for an unknown type, a guess from the object.
    fn resource(&self, api_version: &str, kind: &str, namespaced: bool) -> ApiResource {
        let (group, version) = (group_of(api_version), version_of(api_version));
        let listed = self.options.resources.of_kind(group, kind).cloned();
        listed.unwrap_or_else(|| ApiResource::guessed(group, version, kind, namespaced))
    }

    fn federated(&mut self, resource: &ApiResource, described: &Key, at: &Pos) -> Option<FederatedKind> {
        if let Some(known) = self.types.of_target(&resource.group, &resource.kind) {
            return Some(known.clone());
        }
        if !self.options.enable_types {
            let message = format!("{described}: no Federated kind has the target {}", resource.full_name());
            let hint = format!(
                "add --enable-type, or run `berth enable {name}` first; --skip-api-resources {name} leaves it out",
                name = resource.full_name()
            );
            self.found.push(Diagnostic::error(at.clone(), message).hint(hint));
            return None;
        }
        let made = federated_names(resource, None, None);
        if let Some(other) = self.types.of_federated(&made.group, &made.kind) {
            let message = format!(
                "{described}: {}.{} already has the target {}",
                made.kind,
                made.group,
                other.target.full_name()
            );
            let hint = format!(
                "run `berth enable {} --federated-group GROUP` with a group of your own",
                resource.full_name()
            );
            self.found.push(Diagnostic::error(at.clone(), message).hint(hint));
            return None;
        }
        let config = type_config(&made);
        let faults = faults_of_config(&config);
        if !faults.is_empty() {
            self.report_faults(described, at, &faults);
            return None;
        }
        self.types.learn(&config);
        self.configs.insert(resource.full_name(), config);
        Some(made)
    }

    /// Reports the faults that the reader would find in an object; such an object is left out.
    fn report_faults(&mut self, described: &Key, at: &Pos, faults: &[String]) {
        for fault in faults {
            let message = format!("{described} cannot be federated: {fault}");
            self.found.push(Diagnostic::error(at.clone(), message));
        }
    }

    /// Returns the namespace of the Federated object; empty if it has none.
    fn namespace(
        &mut self,
        federated: &FederatedKind,
        object: &Json,
        described: &Key,
        at: &Pos,
    ) -> Option<String> {
        if federated.is_of_namespaces() {
            if is_dns_label(&described.name) {
                return Some(described.name.to_string());
            }
            let message = format!("{described}: `{}` is not a namespace's name", described.name);
            self.found.push(Diagnostic::error(at.clone(), message));
            return None;
        }
        if !federated.target.namespaced {
            return Some(String::new());
        }
        let own = object["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        let Some(namespace) = own.or(self.options.namespace.as_deref()) else {
            let message = format!("{described}: metadata.namespace is required");
            self.found.push(Diagnostic::error(at.clone(), message).hint("write it, or give --namespace"));
            return None;
        };
        if !is_dns_label(namespace) {
            let message = format!("{described}: `{namespace}` is not a namespace's name");
            self.found.push(Diagnostic::error(at.clone(), message));
            return None;
        }
        Some(namespace.to_owned())
    }

    fn finish(mut self) -> Federated {
        let mut named: BTreeSet<&str> =
            self.options.federated_namespaces.iter().map(String::as_str).collect();
        named.extend(self.namespaces.iter().map(|made| &*made.key.name));
        let used: BTreeSet<&str> =
            self.others.iter().map(|made| &*made.key.namespace).filter(|one| !one.is_empty()).collect();
        for namespace in used.difference(&named) {
            let message = format!(
                "namespace `{namespace}` is not federated, so its objects are placed \
                                   nowhere"
            );
            let warning = Diagnostic { at: None, ..Diagnostic::warning(Pos::file(""), message) };
            self.found.push(warning.hint("federate the Namespace as well"));
        }
        if self.secrets > 0 {
            let message = format!("Federated objects now hold the data of these Secrets: {}", self.secrets);
            let warning = Diagnostic { at: None, ..Diagnostic::warning(Pos::file(""), message) };
            self.found
                .push(warning.hint("do not commit them: place External Secrets or Sealed Secrets instead"));
        }
        let config = |(name, document): (String, Json)| GeneratedDocument {
            key: Key::new(super::TYPE_CONFIG_GROUP, super::TYPE_CONFIG_KIND, super::SYSTEM_NAMESPACE, &name),
            of_kind: super::TYPE_CONFIG_KIND.to_owned(),
            document,
        };
        let documents =
            self.configs.into_iter().map(config).chain(self.namespaces).chain(self.others).collect();
        Federated { documents, diagnostics: self.found }
    }
}

/// The placement of Federated objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Where {
    /// To every cluster, as with KubeFed's own command.
    #[default]
    Everywhere,
    Clusters(Vec<String>),
    /// A label selector in its JSON form.
    Selector(Json),
}

impl Where {
    pub fn placement(&self) -> Json {
        match self {
            Where::Everywhere => json!({"clusterSelector": {"matchLabels": {}}}),
            Where::Clusters(names) => {
                json!({"clusters": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
            }
            Where::Selector(selector) => json!({"clusterSelector": selector}),
        }
    }
}

/// The options of `federate`.
#[derive(Clone, Debug, Default)]
pub struct FederateOptions {
    pub placement: Where,
    /// The namespace of namespaced objects that name none; with `contents`, the namespace to federate.
    pub namespace: Option<String>,
    /// Only the namespaces and their objects.
    pub contents: bool,
    /// Types to skip: by short name, kind, plural, plural with group, or whole group.
    pub skip_api_resources: BTreeSet<String>,
    /// Make type configs for types without a Federated kind.
    pub enable_types: bool,
    pub types: KnownTypes,
    pub resources: Resources,
    /// Namespaces that are already federated elsewhere.
    pub federated_namespaces: BTreeSet<String>,
}

/// Returns the faults of a generated type config.
fn faults_of_config(config: &Json) -> Vec<String> {
    let mut found = types::Types::default();
    faults(config, |scope, document| types::read(scope, document, &mut found))
}

/// Returns the faults of a generated Federated object.
fn faults_of_object(object: &Json, federated: &FederatedKind) -> Vec<String> {
    let mut context = FederatedContext::default();
    let mut all = faults(&type_config(federated), |scope, document| {
        types::read(scope, document, &mut context.types);
    });
    all.extend(faults(object, |scope, document| {
        federated::read(scope, document, &context, &mut Namespaces::default(), &mut Lowered::default());
    }));
    all
}

fn faults(document: &Json, look: impl FnOnce(&Scope, &Document)) -> Vec<String> {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&document["apiVersion"]), text(&document["kind"]));
    let metadata = &document["metadata"];
    let key =
        Key::new(group_of(&api_version), &kind, &text(&metadata["namespace"]), &text(&metadata["name"]));
    let written = read(emit(document).as_bytes(), &Limits::default());
    let mut all: Vec<String> = written
        .faults
        .into_iter()
        .filter(|fault| fault.severity == Severity::Error)
        .map(|fault| fault.message.to_string())
        .collect();
    let Some(root) = written.documents.into_iter().next().map(|one| one.root) else { return all };
    let at = Pos { file: "".into(), line: root.at.line, column: root.at.column };
    let scope = Scope::new(at.file.clone(), Severity::Warning);
    let version = version_of(&api_version).to_owned();
    look(&scope, &ParsedDocument { key, version, at, root: root.pack(), ..ParsedDocument::default() }.into());
    all.extend(scope.into_diagnostics().errors().map(|one| one.message.clone()));
    all
}
