//! A file's documents → objects with their keys: documents with an apiVersion and a kind.
//!
//! Lists are split into their items. Other documents are skipped; a document that is almost an object is an
//! error.

use std::ops::Range;
use std::sync::Arc;

use super::config::CONFIG_KIND;
use crate::dialects::{Document, ParsedDocument, Readings};
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::meta::names::{fault_of_name, is_dns_label};
use berth_base::model::API_VERSION;
use berth_base::model::object::{group_of, version_of};
use berth_base::model::{ContentId, Key};
use berth_base::source::budget::{MOST_DOCUMENTS, MOST_VALUES, TOO_LARGE_HINT};
use berth_base::yaml::{self, HONEST_REPEATS, Limits, Mark, Node, Value, list_kind};

/// The key of a file: its bytes, and its path, which places contain.
pub(super) type FileKey = (ContentId, Arc<str>);

/// The place of an object's text in its file.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub bytes: Range<usize>,
    /// The lines of that text, without the end.
    pub lines: Range<u32>,
    /// The text holds several objects, including this one.
    pub listed: bool,
}

/// The content of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileDocuments {
    pub objects: Vec<(Document, Slot)>,
    pub passed_over: usize,
    /// A part of the file is unreadable.
    pub broken: bool,
    pub diagnostics: Diagnostics,
    /// The work that the file's aliases took.
    pub repeats: usize,
    pub size: FileSize,
}

/// The number of documents, and of the values in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileSize {
    pub documents: usize,
    pub values: usize,
}

impl FileSize {
    pub(super) fn plus(self, other: FileSize) -> FileSize {
        FileSize {
            documents: self.documents.saturating_add(other.documents),
            values: self.values.saturating_add(other.values),
        }
    }

    pub(super) fn minus(self, other: FileSize) -> FileSize {
        FileSize {
            documents: self.documents.saturating_sub(other.documents),
            values: self.values.saturating_sub(other.values),
        }
    }

    /// Reports whether this size is within the limit `most` of a tree.
    pub(super) fn is_within(self, most: FileSize) -> bool {
        self.documents <= most.documents && self.values <= most.values
    }
}

/// The limit of documents and values in a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room(pub FileSize);

impl Default for Room {
    fn default() -> Room {
        Room(FileSize { documents: MOST_DOCUMENTS, values: MOST_VALUES })
    }
}

impl FileDocuments {
    /// Returns the placeholder of a file that exceeds the tree's limit.
    pub(super) fn left_out(path: &Arc<str>, repeats: usize) -> FileDocuments {
        let message = format!(
            "with this file the fleet has more than {MOST_DOCUMENTS} documents or {MOST_VALUES} values; it is not read"
        );
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(Diagnostic::error(Pos::file(path.clone()), message).hint(TOO_LARGE_HINT));
        FileDocuments { diagnostics, broken: true, repeats, ..FileDocuments::default() }
    }

    /// Reports whether the file's aliases take more work than the share of each file.
    pub(super) fn has_heavy_aliases(&self) -> bool {
        self.repeats > HONEST_REPEATS
    }

    /// Lets the documents cache their readings.
    pub(super) fn remember(&mut self) {
        for (document, _) in &mut self.objects {
            document.readings = Some(Readings::default());
        }
    }
}

/// Reads a file.
pub(super) fn read(path: &Arc<str>, bytes: &[u8], limits: &Limits) -> FileDocuments {
    let mut file = FileDocuments::default();
    if bytes.starts_with(b"version https://git-lfs.github.com/spec/") {
        let fault = Diagnostic::error(Pos::file(path.clone()), "a Git LFS pointer, not the file itself");
        file.diagnostics.push(fault.hint("keep YAML files out of LFS"));
        file.broken = true;
        return file;
    }
    let read = yaml::read(bytes, limits);
    file.repeats = read.repeats;
    file.size = FileSize { documents: read.documents.len(), values: read.values };
    for fault in read.faults {
        file.broken |= fault.unreadable.is_some();
        let at = place(path, fault.at);
        let diagnostic = Diagnostic::new(fault.severity, at, fault.message);
        file.diagnostics.push(diagnostic.maybe_hint(fault.hint));
    }
    for document in read.documents {
        let n_lines = yaml::split::last_line(bytes.get(document.bytes.clone()).unwrap_or_default());
        let lines = document.line..document.line.saturating_add(n_lines);
        let slot = Slot { bytes: document.bytes, lines, listed: false };
        take(&mut file, path, document.root, slot);
    }
    file.size.documents = file.size.documents.max(file.objects.len());
    // The cache keeps the list, so spare capacity would waste memory.
    file.objects.shrink_to_fit();
    file
}

fn take(file: &mut FileDocuments, path: &Arc<str>, root: Node, slot: Slot) {
    let mut fault = |at: Mark, message: &str, hint: Option<&str>| {
        let diagnostic = Diagnostic::error(place(path, at), message);
        file.diagnostics.push(diagnostic.maybe_hint(hint.map(str::to_owned)));
        file.broken = true;
    };
    let (api_version, kind) = match (field(&root, "apiVersion"), field(&root, "kind")) {
        (Field::Absent, Field::Absent) => {
            if slot.listed {
                fault(root.at, "an item of a List must have an apiVersion and a kind", None);
            } else {
                file.passed_over += 1;
            }
            return;
        }
        (Field::Text(api_version), Field::Text(kind)) => (api_version.to_owned(), kind.to_owned()),
        (api_version, kind) => {
            let hint = "write both, or leave the file out with `exclude` in berth.yaml";
            for (name, field) in [("apiVersion", api_version), ("kind", kind)] {
                match field {
                    Field::Absent => fault(root.at, &format!("{name} is required"), Some(hint)),
                    Field::Wrong(at) => fault(at, &format!("{name} must be text that is not empty"), None),
                    Field::Text(_) => {}
                }
            }
            return;
        }
    };
    if list_kind::is_list(&root) {
        match root.get("items").map(|items| (items.at, &items.value)) {
            None | Some((_, Value::Null)) => {}
            Some((at, value)) if !matches!(value, Value::List(_)) => fault(at, "items must be a list", None),
            Some(_) => {
                for item in list_kind::items(root) {
                    take(file, path, item, Slot { listed: true, ..slot.clone() });
                }
            }
        }
        return;
    }
    let group = group_of(&api_version);
    // Settings of a tool that never reach a cluster; they have no name.
    if group == "kustomize.config.k8s.io" {
        file.passed_over += 1;
        return;
    }
    let key = if api_version == API_VERSION && kind == CONFIG_KIND {
        Some(Key::new(group, &kind, "", ""))
    } else {
        key(&root, group, &kind, &mut fault)
    };
    if let Some(key) = key {
        let at = place(path, root.at);
        let version = version_of(&api_version).to_owned();
        let document = ParsedDocument { key, version, at, root: root.pack(), ..ParsedDocument::default() };
        file.objects.push((document.into(), slot));
    }
}

type ReportFault<'a> = dyn FnMut(Mark, &str, Option<&str>) + 'a;

/// Returns the object's key, if its metadata is valid.
fn key(root: &Node, group: &str, kind: &str, fault: &mut ReportFault<'_>) -> Option<Key> {
    let Some(metadata) = root.get("metadata").filter(|node| !node.is_null()) else {
        fault(root.at, "metadata.name is required", None);
        return None;
    };
    if !matches!(metadata.value, Value::Map(_)) {
        fault(metadata.at, &format!("metadata must be a mapping, not {}", metadata.what()), None);
        return None;
    }
    let name = match field(metadata, "name") {
        Field::Text(name) => match fault_of_name(name) {
            None => Some(name),
            Some(reason) => {
                let at = metadata.get("name").map_or(metadata.at, |node| node.at);
                fault(at, &format!("metadata.name {reason}"), None);
                None
            }
        },
        Field::Wrong(at) => {
            fault(at, "metadata.name must be text that is not empty", Some("put it in quotes"));
            None
        }
        Field::Absent => {
            let generated = metadata.get("generateName").is_some_and(|node| !node.is_null());
            let hint = generated.then_some(
                "write a name: generateName would make a new object in every \
                pass",
            );
            fault(metadata.at, "metadata.name is required", hint);
            None
        }
    };
    let namespace = match metadata.get("namespace").map(|node| (node.at, &node.value)) {
        None | Some((_, Value::Null)) => Some(""),
        Some((_, Value::String(namespace))) if namespace.is_empty() || is_dns_label(namespace) => {
            Some(namespace.as_str())
        }
        Some((at, Value::String(_))) => {
            let hint = "use lower-case letters, digits and dashes, at most 63";
            fault(at, "metadata.namespace is not a namespace's name", Some(hint));
            None
        }
        Some((at, _)) => {
            fault(at, "metadata.namespace must be text", Some("put it in quotes"));
            None
        }
    };
    Some(Key::new(group, kind, namespace?, name?))
}

enum Field<'a> {
    Absent,
    Wrong(Mark),
    Text(&'a str),
}

fn field<'a>(node: &'a Node, key: &str) -> Field<'a> {
    match node.get(key).map(|node| (node.at, &node.value)) {
        None | Some((_, Value::Null)) => Field::Absent,
        Some((_, Value::String(text))) if !text.is_empty() => Field::Text(text),
        Some((at, _)) => Field::Wrong(at),
    }
}

fn place(path: &Arc<str>, at: Mark) -> Pos {
    Pos { file: path.clone(), line: at.line, column: at.column }
}
