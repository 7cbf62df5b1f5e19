//! The JSON Schemas of the kinds that berth reads, for editors.
//!
//! No field is listed here. Each kind's reader reads samples, and its questions ([`berth_base::yaml::questions`]) show
//! the fields and their requirements. So a new field of a reader is also in the schema, and a removed one is not.
//! Only the descriptions are written by hand, and a test checks that each field has one.
//!
//! The kinds are those that users write, with their readers: those of a fleet repository, and those of a member's
//! files.

mod field_discovery;
mod json_schema;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value as Json;

use berth_base::diag::{Diagnostics, Pos, Severity};
use berth_base::model::Key;
use berth_base::model::object::version_of;
use berth_base::yaml::{Node, Questions, Scope};
use berth_engine::dialects::{DIALECTS, Dialect, Input, Lowered, ParsedDocument, ReadKind, ReadingContexts};
use berth_engine::load;
use berth_member::sync::health::custom;
use berth_member::sync::local_overrides;

/// The file with the schema that selects a document's schema by its apiVersion and kind.
pub const ALL: &str = "all.json";

impl Kind {
    /// Returns the kind's JSON Schema.
    pub fn schema(&self) -> Json {
        json_schema::of_kind(&self.kind, &field_discovery::fields(self))
    }

    /// Returns the file of its schema: `cluster.open-cluster-management.io/Placement.json`.
    pub fn file(&self) -> String {
        format!("{}/{}.json", self.kind.group, self.kind.kind)
    }
}

/// Returns the schema that selects among the files of these kinds.
pub fn all(kinds: &[Kind]) -> Json {
    json_schema::choice(kinds.iter().map(|kind| (&kind.kind, kind.file())))
}

/// Reads a single document.
type ReadDocument = Box<dyn Fn(Option<Arc<Questions>>, Node) -> Diagnostics + Send + Sync>;

/// A kind with its reader.
pub struct Kind {
    pub kind: ReadKind,
    pub read: ReadDocument,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind.fmt(f)
    }
}

/// Returns all kinds that berth reads.
pub fn kinds() -> Vec<Kind> {
    let dialects = DIALECTS.iter().copied().chain([&load::DIALECT]);
    let of_fleets =
        dialects.flat_map(|dialect| (dialect.reads)().into_iter().map(|kind| of_dialect(dialect, kind)));
    let of_members = [
        of_member(custom::KIND, custom::check),
        of_member(local_overrides::KIND, |scope, root| drop(local_overrides::from_node(scope, root))),
    ];
    of_fleets.chain(of_members).collect()
}

fn of_dialect(dialect: &'static Dialect, kind: ReadKind) -> Kind {
    let read = move |asked: Option<Arc<Questions>>, root: Node| {
        let text = |node: Option<&Node>| node.and_then(Node::as_str).unwrap_or_default().to_owned();
        let metadata = |key: &str| text(root.get("metadata").and_then(|metadata| metadata.get(key)));
        let key = Key::new(kind.group, kind.kind, &metadata("namespace"), &metadata("name"));
        let version = version_of(&text(root.get("apiVersion"))).to_owned();
        let at = Pos::file("sample.yaml");
        let document =
            ParsedDocument { key, version, at, root: root.pack(), ..ParsedDocument::default() }.into();
        let input = Input {
            documents: vec![&document],
            plain: &[],
            unknown_fields: Severity::Error,
            switched_off: Vec::new(),
            dialects: DIALECTS,
            contexts: &ReadingContexts::default(),
            asked,
        };
        let mut lowered = Lowered::default();
        (dialect.lower)(&input, &mut lowered);
        lowered.diagnostics
    };
    Kind { kind, read: Box::new(read) }
}

fn of_member(kind: &'static str, check: fn(&Scope, &Node)) -> Kind {
    let read = move |asked: Option<Arc<Questions>>, root: Node| {
        let scope = Scope::new("sample.yaml".into(), Severity::Error).asking(asked);
        check(&scope, &root);
        scope.into_diagnostics()
    };
    Kind { kind: ReadKind::new("berth.dev", kind, &["v1alpha1"], false), read: Box::new(read) }
}
