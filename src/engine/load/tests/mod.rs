//! Loading with a dialect made for tests, so that each rule is tested alone.

mod hostile;
mod incremental;
mod keeping;
mod packages;
mod render_sources;
mod rivals;
mod rollout_policies;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{History, Loaded};
use crate::dialects::{Claim, Dialect, Document, Input, Lowered};
use berth_base::diag::Severity;
use berth_base::model::PlacementRef;
use berth_base::model::placement::{Follow, Policy, SAYS_NOTHING};
use berth_base::model::{Cluster, Placement, Source, Workload};
use berth_base::source::{SourceFile, SourceTree};
use berth_base::yaml::Scope;

/// Kinds of `test.dev`: Member and Machine are clusters, Rule is a placement, App follows one, Trace is a
/// record.
pub(super) const TEST: Dialect = Dialect {
    name: "test",
    claim,
    groups: &["test.dev"],
    kinds: &["Member", "Machine", "Rule", "App", "Trace"],
    lower,
    ..Dialect::BLANK
};

fn claim(documents: &[Document]) -> Vec<Claim> {
    let one = |document: &Document| match (&*document.key.group, &*document.key.kind) {
        ("test.dev", "Member" | "Machine") => Claim::Inventory,
        ("test.dev", "Rule") => Claim::Policy,
        ("test.dev", "App") => Claim::Workload,
        ("test.dev", "Trace") => Claim::Bookkeeping,
        ("test.dev", _) => Claim::Unknown,
        _ => Claim::Foreign,
    };
    documents.iter().map(one).collect()
}

fn lower(input: &Input<'_>, out: &mut Lowered) {
    for (index, document) in input.documents.iter().enumerate() {
        let scope = Scope::new(document.at.file.clone(), input.unknown_fields);
        let root = document.open();
        let Some(mut fields) = scope.fields(&root, "") else { continue };
        fields.accept(&["apiVersion", "kind", "metadata"]);
        let (key, origin) = (document.key.clone(), document.at.clone());
        match &*document.key.kind {
            "Rule" => {
                let source = Source::Own(Box::new(Policy::BLANK));
                out.placements.push(Placement::new(key, origin, source).into());
            }
            "App" => {
                let rule = fields.str("rule").unwrap_or("all").to_owned();
                let wanted = PlacementRef {
                    kind: "Rule".to_owned(),
                    namespace: String::new(),
                    name: rule,
                    at: scope.pos(fields.place_of("rule")),
                };
                let follow =
                    Follow { placements: vec![wanted], filters: Vec::new(), condition: SAYS_NOTHING };
                let workload = Workload::new(key.clone(), origin.clone(), Vec::new());
                out.workloads.push(workload.into());
                out.placements.push(Placement::new(key, origin, Source::Follows(follow)).into());
            }
            _ => {
                let cluster = Cluster {
                    name: key.name.clone(),
                    origins: vec![origin],
                    labels: fields.string_map("labels").unwrap_or_default(),
                    ..Cluster::default()
                };
                out.clusters.push(cluster.into());
            }
        }
        fields.finish();
        if scope.has_errors() {
            out.faulty.insert(index);
        }
        out.diagnostics.extend(scope.into_diagnostics());
    }
    out.selected =
        (0..input.plain.len()).filter(|index| &*input.plain[*index].key.name == "picked").collect();
}

pub(super) fn tree(files: &[(&str, &str)]) -> SourceTree {
    let file = |(path, text): &(&str, &str)| SourceFile::new(*path, text.as_bytes());
    SourceTree { files: files.iter().map(file).collect(), ..SourceTree::default() }
}

/// Loads with the test dialect alone.
pub(super) fn load_with(tree: &SourceTree, history: History<'_>) -> Loaded {
    super::load_with(tree, history, &[&TEST])
}

pub(super) fn load(files: &[(&str, &str)]) -> Loaded {
    load_with(&tree(files), History::None)
}

/// Loads with these last good forms.
pub(super) fn load_after(before: &[(&str, &str)], files: &SourceTree) -> Loaded {
    let forms: BTreeMap<String, Arc<[u8]>> =
        before.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().into())).collect();
    let last_good = |path: &str| forms.get(path).cloned();
    load_with(files, History::Known(&last_good))
}

/// Returns all diagnostics as printed, each on one line.
pub(super) fn said(loaded: &Loaded) -> Vec<String> {
    loaded.diagnostics.iter().map(|one| one.to_string().replace("\n  hint:", " hint:")).collect()
}

pub(super) fn errors(loaded: &Loaded) -> Vec<String> {
    let errors = loaded.diagnostics.iter().filter(|one| one.severity == Severity::Error);
    errors.map(|one| one.to_string().replace("\n  hint:", " hint:")).collect()
}

pub(super) fn clusters(loaded: &Loaded) -> Vec<&str> {
    loaded.fleet.clusters.keys().map(String::as_str).collect()
}

pub(super) fn workloads(loaded: &Loaded) -> Vec<&str> {
    loaded.fleet.workloads.keys().map(|key| &*key.name).collect()
}

/// Returns a document of the test dialect.
pub(super) fn doc(kind: &str, name: &str, rest: &str) -> String {
    format!("---\napiVersion: test.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n{rest}\n")
}
