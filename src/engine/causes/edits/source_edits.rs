//! The edits of a source's document, values and chart, which are behind the edits of the files that it renders.

use std::collections::BTreeMap;

use super::Edits;
use crate::causes::difference::{NodeChange, compare};
use crate::causes::taking_back::{FileObject, read_pieces};
use crate::causes::words;
use crate::load::{HELM_KIND, is_source};
use berth_base::diag::harmless_line;
use berth_base::source::{SourceFile, SourceTree, rendered};
use berth_base::text::some_of;
use berth_base::yaml::{self, Limits, Node, Value};

/// The edits that are named after one of a rendered file.
const NAMED: usize = 2;

/// Names the edits behind each edit of a rendered file, such as `values/prod.yaml:3:1 replicas`. Their values are not
/// shown: they may be those of Secrets.
pub(super) fn name_in(edits: &mut Edits, before: &SourceTree, after: &SourceTree) {
    let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for input in &mut edits.inputs {
        let folder = input.at.as_ref().and_then(|at| rendered::folder_of(&at.file));
        let Some(folder) = folder.map(str::to_owned) else { continue };
        let behind = known.entry(folder).or_insert_with_key(|folder| edits_behind(folder, before, after));
        if !behind.is_empty() {
            let by = format!(" (by {})", some_of(behind.iter(), NAMED));
            input.words.push_str(&by);
            input.alike.push_str(&by);
        }
    }
}

/// Returns the edits of a source, each with its place.
fn edits_behind(folder: &str, before: &SourceTree, after: &SourceTree) -> Vec<String> {
    let [old, new] = [before, after].map(|tree| source_of(folder, tree));
    let Some(source) = new.as_ref().or(old.as_ref()) else { return Vec::new() };
    let mut found = Vec::new();
    if let (Some(old), Some(new), Some(file)) = (&old, &new, rendered::document_file(folder)) {
        found.extend(fields(file, &old.root, &new.root));
    }
    let inputs = Inputs::of(&source.root, rendered::variant_of(folder).map(|(_, variant)| variant));
    for change in before.files.changes_by(&after.files, |old, new| old.id == new.id) {
        if !inputs.has(change.key) {
            continue;
        }
        let [old, new] = [change.before, change.after].map(|file| file.and_then(values));
        match (old, new) {
            (Some(old), Some(new)) => found.extend(fields(change.key, &old, &new)),
            _ => found.push(harmless_line(change.key).into_owned()),
        }
    }
    found
}

/// Returns the document of a source.
fn source_of(folder: &str, tree: &SourceTree) -> Option<FileObject> {
    let path = rendered::document_file(folder)?;
    let pieces = read_pieces(tree.files.get(path)?)?;
    let is_wanted = |object: &FileObject| {
        let key = &object.key;
        let program = if *key.kind == *HELM_KIND { rendered::HELM } else { rendered::KUSTOMIZE };
        is_source(&key.group, &key.kind)
            && rendered::folder(path, program, &key.name) == rendered::source_folder(folder)
    };
    pieces.into_iter().flat_map(|piece| piece.objects).find(is_wanted)
}

/// The paths that a source or its variant reads.
struct Inputs<'n> {
    /// The folders of the chart or base.
    folders: Vec<&'n str>,
    values_files: Vec<&'n str>,
}

impl<'n> Inputs<'n> {
    fn of(root: &'n Node, variant: Option<&str>) -> Inputs<'n> {
        let spec = root.get("spec");
        let is_read =
            |node: &&Node| variant.is_some_and(|name| node.get("name").and_then(Node::as_str) == Some(name));
        let own = spec.into_iter().flat_map(|spec| list(spec, "variants")).find(is_read);
        let parts: Vec<&Node> = spec.into_iter().chain(own).collect();
        let text = |node: &'n Node| node.as_str().map(plain).filter(|path| !path.is_empty());
        Inputs {
            folders: parts.iter().filter_map(|part| part.get("path")).filter_map(text).collect(),
            values_files: parts.iter().flat_map(|part| list(part, "valuesFiles")).filter_map(text).collect(),
        }
    }

    fn has(&self, path: &str) -> bool {
        let is_below = |folder: &&str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.values_files.contains(&path) || self.folders.iter().any(is_below)
    }
}

/// Returns the items of a list.
fn list<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    match node.get(key).map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

/// Returns a path as the tree has it.
fn plain(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path).trim_end_matches('/')
}

/// Returns the values in a file. `None` for a template, and for a file with several documents.
fn values(file: &SourceFile) -> Option<Node> {
    let mut read = yaml::read(&file.bytes, &Limits::default());
    let is_whole = read.faults.is_empty() && read.documents.len() == 1;
    is_whole.then(|| read.documents.remove(0).root)
}

/// Names the fields that differ between two values, each with its place.
fn fields(file: &str, old: &Node, new: &Node) -> Vec<String> {
    let (_, changes) = compare(old, new, 0);
    let file = harmless_line(file);
    let name = |change: &NodeChange<'_>| {
        format!("{file}:{}:{} {}", change.at.line, change.at.column, words::path(&change.path))
    };
    changes.iter().map(name).collect()
}
