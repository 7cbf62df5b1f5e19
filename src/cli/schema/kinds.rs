//! The kinds that users write, with their readers: those of a fleet repository, and those of a member's files.

use std::sync::Arc;

use berth_base::diag::{Diagnostics, Pos, Severity};
use berth_base::model::Key;
use berth_base::model::object::version_of;
use berth_base::yaml::{Asked, Node, Scope};
use berth_engine::dialects::{DIALECTS, Dialect, Input, Lowered, ParsedDocument, ReadKind, ReadingContexts};
use berth_engine::load;
use berth_member::sync::{health::custom, local_overrides};

/// Reads a single document.
type Read = Box<dyn Fn(Option<Arc<Asked>>, Node) -> Diagnostics + Send + Sync>;

/// A kind with its reader.
pub struct Kind {
    pub kind: ReadKind,
    pub read: Read,
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
    let read = move |asked: Option<Arc<Asked>>, root: Node| {
        let text = |node: Option<&Node>| node.and_then(Node::as_str).unwrap_or_default().to_owned();
        let metadata = |key: &str| text(root.get("metadata").and_then(|metadata| metadata.get(key)));
        let key = Key::new(kind.group, kind.kind, &metadata("namespace"), &metadata("name"));
        let version = version_of(&text(root.get("apiVersion"))).to_owned();
        let at = Pos::file("sample.yaml");
        let document = ParsedDocument { readings: None, key, version, at, root: root.pack() }.into();
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
    let read = move |asked: Option<Arc<Asked>>, root: Node| {
        let scope = Scope::new("sample.yaml".into(), Severity::Error).asking(asked);
        check(&scope, &root);
        scope.into_diagnostics()
    };
    Kind { kind: ReadKind::new("berth.dev", kind, &["v1alpha1"], false), read: Box::new(read) }
}
