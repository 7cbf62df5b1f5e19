//! Fleets from YAML text, for tests: the loader's input for this dialect, and its result.

use super::{DIALECT, UNWRAP_CONFIG_MAPS};
use crate::dialects::{Claim, DIALECTS, Document, Input, Lowered, ParsedDocument};
use berth_base::diag::{Pos, Severity};
use berth_base::model::object::{group_of, version_of};
use berth_base::model::placement::Source;
use berth_base::model::{Key, Policy, Workload};
use berth_base::yaml::{Limits, read};

/// Reads and lowers files given as path and text. The files themselves must be sound YAML.
pub fn lower(files: &[(&str, &str)]) -> Lowered {
    lower_with(files, false)
}

/// Lowers files like [`lower`]; optionally replaces ConfigMaps marked as envelopes by their contents.
pub(crate) fn lower_with(files: &[(&str, &str)], unwrap_config_maps: bool) -> Lowered {
    let documents: Vec<Document> = files.iter().flat_map(|(path, text)| documents(path, text)).collect();
    let claims = (DIALECT.claim)(&documents);
    let claimed = documents.iter().zip(&claims);
    let read = claimed.clone().filter(|(_, claim)| !matches!(claim, Claim::Foreign | Claim::Bookkeeping));
    let foreign = claimed.filter(|(_, claim)| **claim == Claim::Foreign);
    let plain: Vec<&Document> = foreign.map(|(document, _)| document).collect();
    let documents = read.map(|(document, _)| document).collect();
    let mut lowered = Lowered::default();
    (DIALECT.lower)(
        &Input {
            documents,
            plain: &plain,
            unknown_fields: Severity::Error,
            switched_off: if unwrap_config_maps { vec![] } else { vec![UNWRAP_CONFIG_MAPS] },
            dialects: DIALECTS,
            contexts: &crate::dialects::ReadingContexts::default(),
            asked: None,
        },
        &mut lowered,
    );
    lowered.diagnostics.sort();
    lowered
}

/// Runs [`lower`] on one file.
pub(crate) fn lower_text(text: &str) -> Lowered {
    lower(&[("fleet.yaml", text)])
}

fn documents(path: &str, text: &str) -> Vec<Document> {
    let found = read(text.as_bytes(), &Limits::default());
    assert!(found.faults.iter().all(|fault| fault.severity != Severity::Error), "{path}: {:?}", found.faults);
    let document = |one: berth_base::yaml::ReadDocument| {
        let root = one.root;
        let text = |key: &str| root.get(key).and_then(|node| node.as_str()).unwrap_or_default().to_owned();
        let named = |key: &str| {
            let metadata = root.get("metadata").and_then(|metadata| metadata.get(key));
            metadata.and_then(|node| node.as_str()).unwrap_or_default().to_owned()
        };
        let api_version = text("apiVersion");
        ParsedDocument {
            key: Key::new(group_of(&api_version), &text("kind"), &named("namespace"), &named("name")),
            version: version_of(&api_version).to_owned(),
            at: Pos::new(path, root.at.line, root.at.column),
            root: root.pack(),
            ..ParsedDocument::default()
        }
        .into()
    };
    found.documents.into_iter().map(document).collect()
}

/// Returns the messages with their severities, in order of place.
pub fn messages(lowered: &Lowered) -> Vec<String> {
    let line = |one: &berth_base::diag::Diagnostic| format!("{}: {}", one.severity.word(), one.message);
    lowered.diagnostics.iter().map(line).collect()
}

/// Returns the policy of the placement with this name.
pub fn policy<'a>(lowered: &'a Lowered, name: &str) -> &'a Policy {
    let placement = lowered.placements.iter().find(|placement| &*placement.key.name == name);
    match &placement.expect("the placement is there").source {
        Source::Own(policy) => policy,
        Source::Follows(_) => panic!("{name} follows others"),
    }
}

pub fn workload<'a>(lowered: &'a Lowered, name: &str) -> &'a Workload {
    lowered.workloads.iter().find(|one| &*one.key.name == name).expect("the workload is there")
}

/// Returns the identities of a workload's objects, as text.
pub fn objects(lowered: &Lowered, name: &str) -> Vec<String> {
    workload(lowered, name).templates.iter().map(|template| template.object.id.to_string()).collect()
}
