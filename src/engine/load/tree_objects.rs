//! The objects of a tree's files, each key once, and the broken files.
//!
//! Rivals: documents of which only one can be valid, because they describe one object, or because they
//! contradict each other about one cluster.
//!
//! Rivals count as broken until people remove one of them. The last good form of the described object stays
//! in effect, so an added description never wins over the earlier one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Loaded;
use super::assemble::Assembled;
use super::config::FleetConfig;
use super::documents::{FileDocuments, Slot};
use super::file_cache::FileCache;
use super::last_good::{BrokenFile, History, LastGood, append, chunk_of};
use super::render_sources::named_values;
use crate::access::DocumentVerdicts;
use crate::dialects::{Claim, Document};
use berth_base::diag::{Diagnostic, Severity};
use berth_base::model::{Key, Shared};
use berth_base::source::rendered::is_rendered;
use berth_base::source::{SourceTree, wanted};

/// The tree's objects, each key once, with their places.
#[derive(Debug, Default)]
pub(super) struct TreeObjects {
    pub documents: Vec<Document>,
    pub slots: Vec<Slot>,
    /// Indexes of the documents that access rules refuse.
    pub refused: BTreeSet<usize>,
    /// Files with a refused document.
    refused_in: BTreeSet<Arc<str>>,
    /// The objects with several descriptions.
    pub repeated: Vec<Rivals>,
    /// Missing documents that may not be removed, with their text.
    pub staying: Vec<(Document, Vec<u8>)>,
    /// The file of each document.
    owners: Vec<usize>,
    /// Every file that was read: its path, and whether a part of it is unreadable.
    files: Vec<(Arc<str>, bool)>,
}

impl TreeObjects {
    pub(super) fn countable<'a>(&'a self, faulty: &'a BTreeSet<usize>) -> impl Iterator<Item = usize> + 'a {
        (0..self.documents.len()).filter(|index| !faulty.contains(index))
    }

    /// Reports whether a part of a file is unreadable, or the file was not read at all.
    pub(super) fn is_unreadable(&self, path: &str) -> bool {
        self.files.iter().find(|(name, _)| **name == *path).is_none_or(|(_, broken)| *broken)
    }

    /// Reports whether a part of any file is unreadable.
    pub(super) fn has_unreadable(&self) -> bool {
        self.files.iter().any(|(_, broken)| *broken)
    }

    /// Reports whether access rules refuse a document.
    pub(super) fn has_refused(&self) -> bool {
        !self.refused_in.is_empty()
    }

    /// Returns the keys of refused documents, whose last good form is always known.
    pub(super) fn refused_keys(&self) -> BTreeSet<Key> {
        let refused = self.refused.iter().map(|index| &self.documents[*index]);
        let staying = self.staying.iter().map(|(document, _)| document);
        refused.chain(staying).map(|document| document.key.clone()).collect()
    }

    /// Returns the text of a file's valid documents.
    pub(super) fn countable_text(&self, tree: &SourceTree, path: &str, faulty: &BTreeSet<usize>) -> Vec<u8> {
        let mut form = Vec::new();
        let Some(file) = tree.files.get(path) else { return form };
        for index in self.countable(faulty).filter(|index| *self.documents[*index].at.file == *path) {
            append(&mut form, &chunk_of(&file.bytes, &self.documents[index], &self.slots[index]));
        }
        form
    }

    /// Returns the files with a faulty policy or workload.
    pub(super) fn doubtful_files(&self, first: &Assembled) -> BTreeSet<String> {
        let is_one =
            |index: &&usize| matches!(first.claims.get(**index), Some(Claim::Policy | Claim::Workload));
        first.faulty.iter().filter(is_one).map(|index| self.documents[*index].at.file.to_string()).collect()
    }
}

pub(super) fn read_files(
    tree: &SourceTree,
    config: &FleetConfig,
    cache: &mut FileCache,
) -> Vec<(Arc<str>, Shared<FileDocuments>)> {
    cache.read_all(tree.files.values().filter(|file| !config.excludes(&file.path)))
}

/// Collects the objects of files, each key once. `winners` overrides which of several documents is valid; the
/// default is the first.
pub(super) fn tree_objects(
    files: &[(Arc<str>, Shared<FileDocuments>)],
    judged: &DocumentVerdicts,
    winners: Option<&BTreeMap<Key, usize>>,
    loaded: &mut Loaded,
) -> TreeObjects {
    let mut objects = TreeObjects::default();
    let all = files.iter().flat_map(|(_, file)| &file.objects).map(|(document, _)| document).enumerate();
    let counts = |number: usize, document: &Document| {
        winners.is_none_or(|winners| winners.get(&document.key) == Some(&number))
    };
    let by_key = by_key(all.filter(|(number, document)| counts(*number, document)).collect());
    let repeated = repeated(&by_key);
    let values = named_values(files.iter().flat_map(|(_, file)| &file.objects).map(|(document, _)| document));
    let (mut losers, mut others) = (Vec::new(), Vec::new());
    let mut count = 0;
    for (owner, (path, file)) in files.iter().enumerate() {
        if !values.contains(&**path) {
            loaded.passed_over += file.passed_over;
        }
        loaded.diagnostics.extend(file.diagnostics.iter().cloned());
        objects.files.push((path.clone(), file.broken));
        for (document, slot) in &file.objects {
            let (number, is_refused) = (count, judged.refused.contains(&count));
            count += 1;
            if is_refused {
                objects.refused_in.insert(document.at.file.clone());
            }
            if !counts(number, document) {
                losers.extend((!is_refused).then_some(document));
                continue;
            }
            if let Some(first) = repeated.get(&number) {
                loaded.diagnostics.push(twice(document, first));
                others.push(document);
                continue;
            }
            if is_refused {
                objects.refused.insert(objects.documents.len());
            }
            objects.documents.push(document.clone());
            objects.slots.push(slot.clone());
            objects.owners.push(owner);
        }
    }
    for loser in losers {
        let winner = by_key.binary_search_by(|(_, one)| one.key.cmp(&loser.key)).ok();
        loaded.diagnostics.extend(winner.map(|at| twice(loser, by_key[at].1)));
        others.push(loser);
    }
    objects.repeated = rivals(&objects.documents, &others);
    if loaded.passed_over > 0 {
        let message = match loaded.passed_over {
            1 => "skipped one document that is not a Kubernetes object".to_owned(),
            count => format!("skipped {count} documents that are not Kubernetes objects"),
        };
        loaded.diagnostics.push(Diagnostic::note(message));
    }
    objects
}

/// Sorts numbered documents by key. Most files list them in this order already, which makes the sort cheap.
fn by_key(mut documents: Vec<(usize, &Document)>) -> Vec<(usize, &Document)> {
    documents.sort_by(|(_, a), (_, b)| a.key.cmp(&b.key));
    documents
}

/// Returns the documents whose key an earlier document has, by number, each with the first one of that key.
fn repeated<'d>(by_key: &[(usize, &'d Document)]) -> BTreeMap<usize, &'d Document> {
    let of_a_key = by_key.chunk_by(|(_, a), (_, b)| a.key == b.key);
    let others = of_a_key.filter_map(|same| same.split_first());
    others.flat_map(|((_, first), rest)| rest.iter().map(|(number, _)| (*number, *first))).collect()
}

/// Returns the objects that `others` describe again, after the first document.
fn rivals(documents: &[Document], others: &[&Document]) -> Vec<Rivals> {
    let mut by_key: BTreeMap<&Key, BTreeSet<Arc<str>>> = BTreeMap::new();
    for other in others {
        by_key.entry(&other.key).or_default().insert(other.at.file.clone());
    }
    if by_key.is_empty() {
        return Vec::new();
    }
    let numbered = documents.iter().enumerate();
    let first = |(index, document): (usize, &Document)| {
        let others = by_key.remove(&document.key)?;
        Some(Rivals { documents: [index].into(), others })
    };
    numbered.filter_map(first).collect()
}

fn twice(document: &Document, first: &Document) -> Diagnostic {
    let message = format!("{} is described twice, first at {}", document.key, first.at);
    Diagnostic::error(document.at.clone(), message).hint("remove one of the two")
}

/// Returns the files with a document that is not valid, each with its valid documents.
pub(super) fn find_broken<'a>(
    tree: &'a SourceTree,
    found: &[&'a Diagnostic],
    objects: &'a TreeObjects,
    faulty: &BTreeSet<usize>,
    history: History<'_>,
) -> Vec<BrokenFile<'a>> {
    let mut broken: BTreeMap<&str, BrokenFile<'a>> = BTreeMap::new();
    let at_fault: BTreeSet<usize> = faulty.iter().map(|index| objects.owners[*index]).collect();
    let repeated: BTreeSet<&Arc<str>> = objects.repeated.iter().flat_map(|rivals| &rivals.others).collect();
    for (index, (path, is_broken)) in objects.files.iter().enumerate() {
        let refused = objects.refused_in.contains(path);
        if *is_broken || refused || at_fault.contains(&index) || repeated.contains(path) {
            let text = tree.files.get(path).map(|file| &*file.bytes).unwrap_or_default();
            broken.insert(path, BrokenFile { path, text, good: Vec::new(), refused });
        }
    }
    for index in objects.countable(faulty) {
        if let Some(file) = broken.get_mut(&*objects.files[objects.owners[index]].0) {
            file.good.push((&objects.documents[index], &objects.slots[index]));
        }
    }
    // A file or folder that the source could not read is broken, like a file that cannot be parsed. A mere
    // warning (a link) counts only if the file existed before.
    let had = |path: &str| matches!(history, History::Known(last_good) if last_good(path).is_some());
    for (severity, at) in found.iter().filter_map(|one| Some((one.severity, one.at.as_ref()?))) {
        let path: &'a str = &at.file;
        if !tree.files.contains_key(path)
            && (severity == Severity::Error || (wanted(path) || is_rendered(path)) && had(path))
        {
            broken.insert(path, BrokenFile { path, text: &[], good: Vec::new(), refused: false });
        }
    }
    // A source that cannot be rendered may have any object, like an unreadable file.
    for path in tree.rendered.failed.iter().filter(|path| !tree.files.contains_key(*path)) {
        broken.insert(path, BrokenFile { path, text: &[], good: Vec::new(), refused: false });
    }
    broken.into_values().collect()
}

/// Documents of which only one can be valid.
#[derive(Clone, Debug, Default)]
pub(super) struct Rivals {
    /// The first document that describes an object, or all that describe a cluster.
    pub documents: BTreeSet<usize>,
    /// The files of further descriptions of the same object, which are otherwise ignored.
    pub others: BTreeSet<Arc<str>>,
}

impl Rivals {
    /// Returns the files of all documents.
    fn files<'o>(&'o self, objects: &'o TreeObjects) -> impl Iterator<Item = &'o Arc<str>> {
        let own = self.documents.iter().map(|index| &objects.documents[*index].at.file);
        own.chain(&self.others)
    }
}

/// Adds the last good forms of rivals to those of broken files. Returns the rivals that these forms replace.
/// `own_faults` are the documents with their own faults.
pub(super) fn settle_rivals(
    objects: &TreeObjects,
    first: &Assembled,
    own_faults: &BTreeSet<usize>,
    (tree, history): (&SourceTree, History<'_>),
    kept: &mut LastGood,
) -> BTreeSet<usize> {
    let mut dropped = BTreeSet::new();
    for rivals in &first.rivals {
        let known: BTreeSet<&Key> = kept.documents.iter().map(|document| &document.key).collect();
        let (has_form, has_none): (Vec<usize>, Vec<usize>) =
            rivals.documents.iter().partition(|index| known.contains(&objects.documents[**index].key));
        match history {
            History::Unavailable => {
                // As with an unreadable file, current objects stay. A cluster must not be missing.
                let is_cluster = |index: &usize| first.claims.get(*index) == Some(&Claim::Inventory);
                dropped.extend(has_none.into_iter().filter(|index| !is_cluster(index)));
                continue;
            }
            // No earlier form exists: the first description becomes the last good form.
            History::None | History::Known(_) if has_form.is_empty() => {
                for index in has_none.into_iter().filter(|index| !own_faults.contains(index)) {
                    let (document, slot) = (&objects.documents[index], &objects.slots[index]);
                    let text =
                        tree.files.get(&*document.at.file).map(|file| &*file.bytes).unwrap_or_default();
                    let rest = || objects.countable_text(tree, &document.at.file, &first.faulty);
                    kept.add(document, &chunk_of(text, document, slot), rest);
                }
            }
            History::None | History::Known(_) => dropped.extend(has_none),
        }
        // A later pass must not find a second description in the last good forms.
        for file in rivals.files(objects) {
            let rest = || objects.countable_text(tree, file, &first.faulty);
            kept.files.entry(file.to_string()).or_insert_with(rest);
        }
    }
    dropped
}
