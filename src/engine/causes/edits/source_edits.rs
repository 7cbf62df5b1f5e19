//! The edits of a source's document, values and chart, which are behind the edits of the files that it renders.

use std::collections::BTreeMap;

use super::Edits;
use crate::causes::difference::{NodeChange, compare};
use crate::causes::taking_back::{FileObject, read_pieces};
use crate::causes::words;
use crate::load::{RenderSource, is_source, read_source};
use berth_base::diag::{Severity, harmless_line};
use berth_base::source::{SourceFile, SourceTree, rendered};
use berth_base::text::some_of;
use berth_base::yaml::{self, Limits, Node, Scope};

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
    let mut found = Vec::new();
    if let (Some((old, _)), Some((new, _)), Some(file)) = (&old, &new, rendered::document_file(folder)) {
        found.extend(fields(file, &old.root, &new.root));
    }
    let Some((_, sources)) = new.or(old) else { return found };
    for change in before.files.changes_by(&after.files, |old, new| old.id == new.id) {
        if !sources.iter().any(|source| source.reads(change.key)) {
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

/// Returns the document of a source, with the source and the variant that render a folder. An overlay reads its base.
fn source_of(folder: &str, tree: &SourceTree) -> Option<(FileObject, [RenderSource; 2])> {
    let path = rendered::document_file(folder)?;
    let pieces = read_pieces(tree.files.get(path)?)?;
    let objects = pieces.into_iter().flat_map(|piece| piece.objects);
    let mut sources = objects.filter(|object| is_source(&object.key.group, &object.key.kind));
    sources.find_map(|object| {
        let scope = Scope::new(path.into(), Severity::Error);
        let document = read_source(&scope, &object.root, &object.key.kind)?;
        let own = document.all().find(|source| source.folder() == folder)?.clone();
        Some((object, [document.source, own]))
    })
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
