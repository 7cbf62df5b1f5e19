//! Templates and override lists in separate files. A Federated object of the same namespace names them in
//! `spec.templateRef` and `spec.overridesRef`: berth's extension, so that different teams can own them. While
//! a named file is missing or faulty, members keep the last good form of the workload.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::kinds::{OVERRIDE_LIST, TEMPLATE};
use super::{federated, overrides};
use crate::dialects::{Document, Lowered};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, did_you_mean};
use berth_base::meta::open;
use berth_base::model::Override;
use berth_base::yaml::{Fields, Scope};

/// The files' contents by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Files {
    templates: ByObjectName<federated::WrittenTemplate>,
    overrides: ByObjectName<Vec<Override>>,
}

type ByObjectName<T> = BTreeMap<(String, String), File<T>>;

#[derive(Debug)]
struct File<T> {
    /// `None` if the file has a fault.
    content: Option<T>,
    at: Pos,
    named: AtomicBool,
}

/// The content of a Federated object: its own, and that of the named files.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) template: federated::WrittenTemplate,
    pub(super) overrides: Vec<Override>,
    /// A part of the content is not available now.
    pub(super) incomplete: bool,
}

impl Files {
    /// Warns of files that no Federated object names.
    pub(super) fn report_unnamed(&self, found: &mut Diagnostics) {
        let templates = self.templates.values().filter(|file| !file.named.load(Ordering::Relaxed));
        let overrides = self.overrides.values().filter(|file| !file.named.load(Ordering::Relaxed));
        let unnamed = templates.map(|file| (&file.at, TEMPLATE_REF));
        for (at, Reference { kind, field, .. }) in
            unnamed.chain(overrides.map(|file| (&file.at, OVERRIDES_REF)))
        {
            let message = format!("no Federated object of its namespace names this {kind}");
            found.push(
                Diagnostic::warning(at.clone(), message)
                    .hint(format!("name it in `spec.{field}: {{name: …}}`, or remove it")),
            );
        }
    }
}

pub(super) fn read(scope: &Scope, document: &Document, files: &mut Files) {
    let at = document.at.clone();
    let root = document.open();
    let Some((mut fields, metadata)) = open(scope, &root) else { return };
    let place = (metadata.namespace, metadata.name);
    let sound = || !scope.has_errors();
    if *document.key.kind == *TEMPLATE {
        fields.require("template");
        let content = federated::read_template(&mut fields);
        fields.finish();
        let content = content.filter(|_| sound());
        files.templates.insert(place, File { content, at, named: AtomicBool::new(false) });
    } else {
        fields.require("overrides");
        let content = overrides::read(&mut fields, document);
        fields.finish();
        let content = sound().then_some(content);
        files.overrides.insert(place, File { content, at, named: AtomicBool::new(false) });
    }
}

/// Reports whether a Federated object names a file.
pub(super) fn names_any(document: &Document) -> bool {
    let spec = document.root.get("spec");
    spec.is_some_and(|spec| spec.get("templateRef").is_some() || spec.get("overridesRef").is_some())
}

/// Returns the template and overrides of a Federated object, its own or named ones. `None` if it has a fault.
pub(super) fn content(
    spec: &mut Fields<'_>,
    document: &Document,
    files: &Files,
    lowered: &mut Lowered,
) -> Option<Content> {
    let own = federated::read_template(spec);
    let own_overrides = overrides::read(spec, document);
    let namespace = &*document.key.namespace;
    let template = TEMPLATE_REF.named(spec, namespace, &files.templates, lowered);
    let listed = OVERRIDES_REF.named(spec, namespace, &files.overrides, lowered);
    let incomplete = matches!(template, Found::Lacking) || matches!(listed, Found::Lacking);
    let template = match template {
        Found::Content(template) => Some(template),
        Found::NotNamed | Found::Lacking => own,
    };
    let overrides = match listed {
        Found::Content(overrides) => overrides,
        Found::NotNamed | Found::Lacking => own_overrides,
    };
    Some(Content { template: template?, overrides, incomplete })
}

enum Found<T> {
    NotNamed,
    Content(T),
    Lacking,
}

/// A field that names a file, the field with the same content inline, and the file's kind.
struct Reference {
    field: &'static str,
    own: &'static str,
    kind: &'static str,
}

const TEMPLATE_REF: Reference = Reference { field: "templateRef", own: "template", kind: TEMPLATE };
const OVERRIDES_REF: Reference = Reference { field: "overridesRef", own: "overrides", kind: OVERRIDE_LIST };

impl Reference {
    /// Returns the content of the file that an object names.
    fn named<T: Clone>(
        &self,
        spec: &mut Fields<'_>,
        namespace: &str,
        files: &ByObjectName<T>,
        lowered: &mut Lowered,
    ) -> Found<T> {
        let Reference { field, own, kind } = *self;
        let path = spec.path_of(field);
        let Some(mut fields) = spec.fields(field) else { return Found::NotNamed };
        let name = fields.required_str("name");
        let at = fields.scope().pos(fields.place_of("name"));
        fields.finish();
        if spec.node(own).is_some() {
            let message = format!("{path} and {} exclude each other", spec.path_of(own));
            spec.error_at(field, message);
        }
        let Some(name) = name else { return Found::NotNamed };
        match files.get(&(namespace.to_owned(), name.to_owned())) {
            Some(file) => {
                file.named.store(true, Ordering::Relaxed);
                // The reader of a faulty file has reported it.
                file.content.clone().map_or(Found::Lacking, Found::Content)
            }
            None => {
                let siblings = files.keys().filter(|(of, _)| of == namespace).map(|(_, name)| name.as_str());
                let hint = did_you_mean(name, siblings).or_else(|| {
                    let elsewhere = files.keys().find(|(_, other)| other == name)?;
                    Some(format!(
                        "there is one in the namespace `{}`, but it must be in the same namespace",
                        elsewhere.0
                    ))
                });
                let message = format!("{path}: there is no {kind} `{name}` in the namespace `{namespace}`");
                // The object is not at fault: its file may have been lost.
                lowered.diagnostics.push(Diagnostic::error(at, message).maybe_hint(hint));
                Found::Lacking
            }
        }
    }
}
