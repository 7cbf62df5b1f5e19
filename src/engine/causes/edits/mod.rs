//! The edits between two source trees, each of which can be taken back.
//!
//! Documents are matched by kind, namespace and name, wherever they are, and then compared field by field. A
//! file with an unreadable part is one edit. A change of comments or layout alone is none.

mod source_edits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::taking_back::{self, Piece};
use crate::causes::difference::{Difference, compare};
use crate::causes::words::{self, Secrecy};
use crate::causes::{InputChange, InputKind};
use crate::load::is_source;
use berth_base::diag::{Diagnostic, Pos, harmless_line};
use berth_base::model::Key;
use berth_base::source::{SourceFile, SourceTree};
use berth_base::yaml::{Mark, Node};

/// The edits between two trees.
#[derive(Debug, Default)]
pub struct Edits {
    pub inputs: Vec<InputChange>,
    /// The numbers of the inputs, by document or file.
    pub documents: Vec<Vec<usize>>,
    pub(in crate::causes) files: BTreeMap<Arc<str>, EditedFile>,
    pub(in crate::causes) changed: Vec<ChangedDocument>,
    /// The files that each input affects.
    pub(in crate::causes) concerned: Vec<BTreeSet<Arc<str>>>,
    /// The documents that only the old tree or only the new tree has.
    pub gone: Vec<Key>,
    pub came: Vec<Key>,
}

/// A file that differs between the trees.
#[derive(Debug)]
pub(in crate::causes) struct EditedFile {
    pub before: Option<SourceFile>,
    pub after: Option<SourceFile>,
    /// The source's findings in place of the file: a link, or an oversized file.
    pub found: [Vec<Diagnostic>; 2],
    /// The number of the edit, if the file counts as a whole.
    pub whole: Option<usize>,
    /// The documents of the new file.
    pub pieces: Vec<Piece>,
}

/// A document whose content or file differs between the trees.
#[derive(Debug)]
pub(in crate::causes) struct ChangedDocument {
    pub before: Option<Spot>,
    pub after: Option<Spot>,
    /// The number of the edit that adds, removes or moves the document.
    pub whole: Option<usize>,
    /// The difference of a document that both trees have.
    pub fields: Option<Difference>,
}

/// The place of a document.
#[derive(Clone, Debug)]
pub(in crate::causes) struct Spot {
    pub file: Arc<str>,
    /// The piece of the file, and the object in it.
    pub piece: usize,
    pub object: usize,
    pub root: Arc<Node>,
}

impl Spot {
    fn at(&self, mark: Mark) -> Pos {
        Pos { file: self.file.clone(), line: mark.line, column: mark.column }
    }
}

impl Edits {
    /// Compares two trees, without `excluded` files.
    pub fn between(before: &SourceTree, after: &SourceTree, excluded: impl Fn(&str) -> bool) -> Edits {
        let mut edits = Edits::default();
        let mut sides: [BTreeMap<Key, Vec<Spot>>; 2] = Default::default();
        for (path, mut file) in changed_files(before, after) {
            if excluded(&path) {
                continue;
            }
            let pieces = [&file.before, &file.after].map(|side| match side {
                Some(file) => taking_back::read_pieces(file),
                None => Some(Vec::new()),
            });
            match pieces {
                [Some(old), Some(new)] if file.found[0] == file.found[1] => {
                    for (side, pieces) in sides.iter_mut().zip([&old, &new]) {
                        add_spots(side, &path, pieces);
                    }
                    file.pieces = new;
                }
                [old, new] => {
                    let is_readable = [old.is_some(), new.is_some() && file.found[1].is_empty()];
                    file.whole = Some(edits.of_file(&path, &file, is_readable));
                }
            }
            edits.files.insert(path, file);
        }
        let [mut old, mut new] = sides;
        let keys: BTreeSet<Key> = old.keys().chain(new.keys()).cloned().collect();
        // The edits of a source show in the files that it renders.
        for key in keys.into_iter().filter(|key| !is_source(&key.group, &key.kind)) {
            let [old, new] = [&mut old, &mut new].map(|side| side.remove(&key).unwrap_or_default());
            for (before, after) in matched(old, new) {
                edits.of_document(&key, before, after);
            }
        }
        source_edits::name_in(&mut edits, before, after);
        edits
    }

    /// Adds an edit of a document or file that affects some files.
    fn add(&mut self, at: Pos, words: String, concerned: impl IntoIterator<Item = Arc<str>>) -> usize {
        let alike = words.clone();
        self.inputs.push(InputChange { at: Some(at), words, alike, kind: InputKind::Edit });
        self.concerned.push(concerned.into_iter().collect());
        self.inputs.len() - 1
    }

    fn of_file(&mut self, path: &Arc<str>, file: &EditedFile, is_readable: [bool; 2]) -> usize {
        let words = match (is_readable, &file.before, &file.after) {
            (_, _, None) if file.found[1].is_empty() => "unreadable file removed",
            ([_, true], None, _) => "file added",
            ([_, true], ..) => "can be read again",
            ([true, false], Some(_), _) => "can no longer be read",
            ([true, false], None, _) => "unreadable file added",
            ([false, false], ..) => "changed, but still unreadable",
        };
        let number = self.add(Pos::file(path.clone()), words.to_owned(), [path.clone()]);
        self.documents.push(vec![number]);
        number
    }

    fn of_document(&mut self, key: &Key, before: Option<Spot>, after: Option<Spot>) {
        let first = self.inputs.len();
        let name = harmless_line(&key.to_string()).into_owned();
        let concerned: Vec<Arc<str>> = before.iter().chain(&after).map(|spot| spot.file.clone()).collect();
        let (mut whole, mut fields) = (None, None);
        match (&before, &after) {
            (None, Some(new)) => {
                self.came.push(key.clone());
                let words = format!("document added: {name}");
                whole = Some(self.add(new.at(new.root.at), words, concerned));
            }
            (Some(old), None) => {
                self.gone.push(key.clone());
                let words = format!("document removed: {name}");
                whole = Some(self.add(old.at(old.root.at), words, concerned));
            }
            (Some(old), Some(new)) => {
                if old.file != new.file {
                    let [from, to] = [old, new].map(|spot| harmless_line(&spot.file).into_owned());
                    let words = format!("document moved from {from} to {to}: {name}");
                    whole = Some(self.add(new.at(new.root.at), words, concerned));
                }
                fields = Some(self.of_fields(old, new));
            }
            (None, None) => {}
        }
        if let Some(input) = whole.and_then(|whole| self.inputs.get_mut(whole)) {
            let verb = match (&before, &after) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "moved",
            };
            input.alike = format!("document {verb}: {}", harmless_line(&key.kind));
        }
        if self.inputs.len() > first {
            self.documents.push((first..self.inputs.len()).collect());
            self.changed.push(ChangedDocument { before, after, whole, fields });
        }
    }

    fn of_fields(&mut self, old: &Spot, new: &Spot) -> Difference {
        let (difference, changes) = compare(&old.root, &new.root, self.inputs.len());
        let secrecy = match [&old.root, &new.root].map(|root| words::secrecy(root)) {
            [Secrecy::Open, Secrecy::Open] => Secrecy::Open,
            _ => Secrecy::Secret,
        };
        for change in changes {
            let words = words::of(&change, words::is_hidden(secrecy, &change.path));
            let spot = if change.before.is_some() && change.after.is_none() { old } else { new };
            self.add(spot.at(change.at), words, [new.file.clone()]);
        }
        difference
    }
}

/// Returns the files that differ between two trees.
fn changed_files(before: &SourceTree, after: &SourceTree) -> BTreeMap<Arc<str>, EditedFile> {
    let mut found: BTreeMap<&Arc<str>, [Vec<Diagnostic>; 2]> = BTreeMap::new();
    for (side, tree) in [before, after].into_iter().enumerate() {
        for one in tree.found.iter() {
            if let Some(at) = &one.at {
                found.entry(&at.file).or_default()[side].push(one.clone());
            }
        }
    }
    let files = before.files.changes_by(&after.files, |old, new| old.id == new.id).map(|change| change.key);
    let said = found.iter().filter(|(_, [before, after])| before != after).map(|(path, _)| *path);
    let paths: BTreeSet<&Arc<str>> = files.chain(said).collect();
    let changed = |path: &Arc<str>| {
        let [before, after] = [before, after].map(|tree| tree.files.get(path).cloned());
        let found = found.get(path).cloned().unwrap_or_default();
        (path.clone(), EditedFile { before, after, found, whole: None, pieces: Vec::new() })
    };
    paths.into_iter().map(changed).collect()
}

fn add_spots(spots: &mut BTreeMap<Key, Vec<Spot>>, path: &Arc<str>, pieces: &[Piece]) {
    for (piece, objects) in pieces.iter().map(|piece| &piece.objects).enumerate() {
        for (object, found) in objects.iter().enumerate() {
            let spot = Spot { file: path.clone(), piece, object, root: found.root.clone() };
            spots.entry(found.key.clone()).or_default().push(spot);
        }
    }
}

/// Matches documents of the same name: first those of the same file.
fn matched(mut old: Vec<Spot>, new: Vec<Spot>) -> Vec<(Option<Spot>, Option<Spot>)> {
    let (mut pairs, mut moved) = (Vec::new(), Vec::new());
    for after in new {
        match old.iter().position(|before| before.file == after.file) {
            Some(place) => pairs.push((Some(old.remove(place)), Some(after))),
            None => moved.push(after),
        }
    }
    let mut old = old.into_iter();
    pairs.extend(moved.into_iter().map(|after| (old.next(), Some(after))));
    pairs.extend(old.map(|before| (Some(before), None)));
    pairs
}

#[cfg(test)]
mod tests;
