//! A generated document → the faults that its own reader would report, so that berth never generates a
//! document that it would refuse.

use serde_json::Value as Json;

use super::types::{FederatedKind, type_config};
use crate::dialects::kubefed::namespaces::Namespaces;
use crate::dialects::kubefed::{Context, federated, types};
use crate::dialects::{Document, Lowered, ParsedDocument};
use berth_base::diag::Pos;
use berth_base::diag::Severity;
use berth_base::model::Key;
use berth_base::model::object::{group_of, version_of};
use berth_base::yaml::{Limits, Scope, emit, read};

/// Returns the faults of a generated type config.
pub(super) fn faults_of_config(config: &Json) -> Vec<String> {
    let mut found = types::Types::default();
    faults(config, |scope, document| types::read(scope, document, &mut found))
}

/// Returns the faults of a generated Federated object.
pub(super) fn faults_of_object(object: &Json, federated: &FederatedKind) -> Vec<String> {
    let mut context = Context::default();
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
    look(&scope, &ParsedDocument { readings: None, key, version, at, root: root.pack() }.into());
    all.extend(scope.into_diagnostics().errors().map(|one| one.message.clone()));
    all
}
