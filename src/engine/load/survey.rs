//! The good and the broken documents of a tree, without last good forms: the input of the search for those.

use std::collections::{BTreeMap, BTreeSet};

use super::file_cache::FileCache;
use super::last_good::chunk_of;
use super::tree_objects::find_broken;
use super::{History, ReadTree, documents, first, found_in};
use crate::dialects::Claim;
use berth_base::diag::Severity;
use berth_base::model::Key;
use berth_base::source::SourceTree;
use berth_base::yaml::Limits;

/// A tree's good documents and broken files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Every valid object, with its file and text.
    pub good: BTreeMap<Key, Text>,
    /// Files with a document that is not valid.
    pub broken: BTreeMap<String, Faults>,
}

/// An object's own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub path: String,
    pub bytes: Vec<u8>,
    /// The index among all documents, in the order of files and of the documents in each.
    pub place: usize,
}

/// The faults of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A part of the file is unreadable, so it may contain any object.
    pub unreadable: bool,
    /// Readable objects with a fault.
    pub objects: BTreeSet<Key>,
}

/// Surveys a published tree. Of its rivals, the first ones were used.
pub fn survey(tree: &SourceTree) -> Survey {
    survey_with_cache(tree, &mut FileCache::default())
}

/// Surveys a published tree like [`survey`], reusing cached files.
pub fn survey_with_cache(tree: &SourceTree, cache: &mut FileCache) -> Survey {
    let first = first(tree, cache);
    first.survey_beside(tree, &first.own_faults)
}

impl ReadTree {
    /// Reports whether every file of the tree is valid, so that no last good form is needed.
    pub fn is_whole(&self, tree: &SourceTree) -> bool {
        !tree.found.iter().any(|found| found.at.is_some() && found.severity != Severity::Note)
            && self.assembled.faulty.is_empty()
            && !self.objects.has_refused()
            && !self.objects.has_unreadable()
    }

    /// Returns the first of these files whose folder may contain all documents of a text, by the current
    /// access rules.
    pub fn home_for<'p>(&self, paths: &[&'p String], text: &[u8]) -> Option<&'p String> {
        let may_hold = |path: &&&String| {
            let file = documents::read(&path.as_str().into(), text, &Limits::of_a_part());
            file.objects.iter().all(|(document, _)| self.world.may_hold(document))
        };
        paths.iter().find(may_hold).copied()
    }

    /// Returns the first of these files for each set of access rights.
    pub fn apart_by_rights<'p>(&self, paths: impl Iterator<Item = &'p String>) -> Vec<&'p String> {
        let mut met = BTreeSet::new();
        let rights = |path: &&String| self.world.rules.numbers_of(path);
        paths.filter(|path| met.insert(rights(path))).collect()
    }

    /// Sorts the tree's documents into good and broken ones. All rivals count as broken.
    pub fn survey(&self, tree: &SourceTree) -> Survey {
        self.survey_beside(tree, &self.assembled.faulty)
    }

    /// Surveys like [`ReadTree::survey`], with these documents as the broken ones.
    fn survey_beside(&self, tree: &SourceTree, bad: &BTreeSet<usize>) -> Survey {
        let ReadTree { objects, assembled, loaded, .. } = self;
        let mut survey = Survey::default();
        for index in objects.countable(bad) {
            let (document, slot) = (&objects.documents[index], &objects.slots[index]);
            let path = document.at.file.to_string();
            let text = tree.files.get(&*path).map(|file| &*file.bytes).unwrap_or_default();
            let bytes = chunk_of(text, document, slot).into_owned();
            survey.good.insert(document.key.clone(), Text { path, bytes, place: index });
        }
        let found = found_in(tree, &loaded.config);
        for file in find_broken(tree, &found, objects, &assembled.faulty, History::None) {
            let unreadable = objects.is_unreadable(file.path);
            survey.broken.insert(file.path.to_owned(), Faults { unreadable, objects: BTreeSet::new() });
        }
        for index in &assembled.faulty {
            let document = &objects.documents[*index];
            if let Some(faults) = survey.broken.get_mut(&*document.at.file) {
                // An unknown kind may mean any kind.
                faults.unreadable |= assembled.claims.get(*index) == Some(&Claim::Unknown);
                faults.objects.insert(document.key.clone());
            }
        }
        for rivals in &objects.repeated {
            let keys = rivals.documents.iter().map(|index| &objects.documents[*index].key);
            for (key, file) in keys.flat_map(|key| rivals.others.iter().map(move |file| (key, file))) {
                survey.broken.entry(file.to_string()).or_default().objects.insert(key.clone());
            }
        }
        survey
    }
}
