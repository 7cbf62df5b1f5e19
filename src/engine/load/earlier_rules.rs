//! The rules of a tree, which come from an earlier commit, so that no change decides which rules judge it:
//! access rules, with the documents that their folders may not write, and policy tests.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assemble::{Assembled, assemble};
use super::config::{FleetConfig, Settings};
use super::documents::FileDocuments;
use super::file_cache::FileCache;
use super::last_good::chunk_of;
use super::tree_objects::{TreeObjects, read_files};
use crate::access::{self, DocumentVerdicts, Facts, Rules, World};
use crate::dialects::{Claim, Dialects, Document, ReadingContexts};
use crate::policy_tests::{self, PolicyTest};
use berth_base::diag::{Diagnostic, Severity};
use berth_base::model::object::{group_of, version_of};
use berth_base::model::{API_VERSION, Key, Shared};
use berth_base::source::{RulesFrom, SourceTree};
use berth_base::yaml::Scope;

type ParsedFiles = Vec<(Arc<str>, Shared<FileDocuments>)>;

/// Returns the rules that apply to a tree.
pub(super) fn world(tree: &SourceTree, dialects: Dialects, cache: &mut FileCache) -> World {
    match &tree.rules_from {
        RulesFrom::Nowhere => World::default(),
        RulesFrom::Own => {
            let files = rule_files(tree, cache);
            let rules = rules(tree, &files, dialects);
            World { next: rules.clone(), rules, before: Facts::default() }
        }
        RulesFrom::Earlier(base) => {
            let files = rule_files(base, cache);
            let rules_before = rules(base, &files, dialects);
            if !rules_before.enforced {
                return World::default();
            }
            let all = read_files(base, &Settings::of(base, dialects, cache).config, cache);
            let before = Facts::of(documents(&all), dialects);
            let files = rule_files(tree, cache);
            World { rules: rules_before, before, next: rules(tree, &files, dialects) }
        }
    }
}

/// Returns the diagnostic about the rules as a whole.
pub(super) fn note(tree: &SourceTree, world: &World) -> Option<Diagnostic> {
    match &tree.rules_from {
        RulesFrom::Own if world.rules.enforced => {
            let text = "there is no earlier commit with access rules, so the rules in these files apply";
            Some(Diagnostic::note(text))
        }
        RulesFrom::Earlier(_) if world.rules.enforced && !world.next.enforced => {
            let text = "no access rule is left: after this change every folder has every right";
            Some(Diagnostic { severity: Severity::Warning, ..Diagnostic::note(text) })
        }
        _ => None,
    }
}

/// Judges the documents of files.
pub(super) fn judge(world: &World, files: &ParsedFiles) -> DocumentVerdicts {
    if world.is_free() {
        return DocumentVerdicts::default();
    }
    world.judge(&documents(files).collect::<Vec<_>>())
}

/// Returns the missing documents that their folders may not remove, with their text in the earlier tree.
pub(super) fn staying(
    tree: &SourceTree,
    judged: &DocumentVerdicts,
    cache: &mut FileCache,
) -> Vec<(Document, Vec<u8>)> {
    let (RulesFrom::Earlier(base), false) = (&tree.rules_from, judged.stays.is_empty()) else {
        return Vec::new();
    };
    let mut found = BTreeMap::new();
    for (path, read) in cache.read_all(base.files.values()) {
        let bytes = base.files.get(&path).map(|file| &*file.bytes).unwrap_or_default();
        for (document, slot) in read.objects.iter().filter(|(one, _)| judged.stays.contains(&one.key)) {
            let text = || chunk_of(bytes, document, slot).into_owned();
            found.entry(document.key.clone()).or_insert_with(|| (document.clone(), text()));
        }
    }
    found.into_values().collect()
}

/// Selects the valid document for each key: one that was not refused, and preferably the one in the file that
/// held it before. `None` without rules: then the first one is valid.
pub(super) fn winners(
    world: &World,
    judged: &DocumentVerdicts,
    files: &ParsedFiles,
) -> Option<BTreeMap<Key, usize>> {
    if world.is_free() {
        return None;
    }
    let rank = |index: usize, document: &Document| {
        let is_as_before = world.before.path(&document.key) == Some(&document.at.file);
        (judged.refused.contains(&index), !is_as_before, index)
    };
    let mut winners: BTreeMap<Key, (bool, bool, usize)> = BTreeMap::new();
    for (index, document) in documents(files).enumerate() {
        let rank = rank(index, document);
        winners.entry(document.key.clone()).and_modify(|best| *best = rank.min(*best)).or_insert(rank);
    }
    Some(winners.into_iter().map(|(key, (_, _, index))| (key, index)).collect())
}

/// Assembles the documents that were not refused. Refused ones count as faulty.
pub(super) fn assemble_allowed(
    objects: &TreeObjects,
    dialects: Dialects,
    config: &FleetConfig,
    contexts: &ReadingContexts,
) -> Assembled {
    let refused = &objects.refused;
    if refused.is_empty() {
        return assemble(&objects.documents, dialects, config, contexts);
    }
    let places: Vec<usize> = (0..objects.documents.len()).filter(|index| !refused.contains(index)).collect();
    let allowed: Vec<Document> = places.iter().map(|index| objects.documents[*index].clone()).collect();
    let mut done = assemble(&allowed, dialects, config, contexts);
    let mut claims = vec![Claim::Bookkeeping; objects.documents.len()];
    for (place, claim) in places.iter().zip(&done.claims) {
        claims[*place] = *claim;
    }
    done.claims = claims;
    let faulty: BTreeSet<usize> =
        done.faulty.iter().filter_map(|index| places.get(*index)).copied().collect();
    done.faulty = &faulty | refused;
    for rivals in &mut done.rivals {
        rivals.documents = rivals.documents.iter().filter_map(|index| places.get(*index)).copied().collect();
    }
    done
}

fn rule_files(tree: &SourceTree, cache: &mut FileCache) -> ParsedFiles {
    cache.read_all(tree.files.values().filter(|file| file.path.starts_with(access::FOLDER)))
}

fn rules(tree: &SourceTree, files: &ParsedFiles, dialects: Dialects) -> Rules {
    let met = tree.found.errors().filter_map(|one| one.at.as_ref());
    let unreadable = files.iter().any(|(_, file)| file.broken)
        || met.map(|at| Cow::from(&*at.file)).any(|file| file.starts_with(access::FOLDER));
    access::rules(documents(files), unreadable, dialects)
}

fn documents(files: &ParsedFiles) -> impl Iterator<Item = &Document> + Clone {
    files.iter().flat_map(|(_, file)| file.objects.iter().map(|(document, _)| document))
}

/// The policy tests that concern a tree, by name.
#[derive(Clone, Debug, Default)]
pub struct FleetTests {
    /// The tests that judge this tree.
    pub counting: Vec<Arc<PolicyTest>>,
    /// The tree's own tests, which judge the next one.
    pub own: Vec<Arc<PolicyTest>>,
}

pub(super) fn policy_tests(tree: &SourceTree, cache: &mut FileCache) -> FleetTests {
    let own = tests_in(tree, cache);
    let counting = match &tree.rules_from {
        RulesFrom::Nowhere => Vec::new(),
        RulesFrom::Own => own.clone(),
        RulesFrom::Earlier(base) => tests_in(base, cache),
    };
    FleetTests { counting, own }
}

/// Reads the sound tests of a tree. Faulty ones are reported when all documents are read.
fn tests_in(tree: &SourceTree, cache: &mut FileCache) -> Vec<Arc<PolicyTest>> {
    let in_folder = tree.files.values().filter(|file| {
        file.path.starts_with(policy_tests::FOLDER) && !policy_tests::is_of_an_example(&file.path)
    });
    let mut tests: Vec<Arc<PolicyTest>> = Vec::new();
    for (_, file) in cache.read_all(in_folder) {
        for (document, _) in &file.objects {
            let key = &document.key;
            let is_test = *key.kind == *policy_tests::KIND && *key.group == *group_of(API_VERSION);
            if !is_test || document.version != version_of(API_VERSION) {
                continue;
            }
            let scope = Scope::new(document.at.file.clone(), Severity::Error);
            tests.extend(policy_tests::read(&scope, &document.open()).map(Arc::new));
        }
    }
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    // Two tests with one name are an error of the tree, and the first one is used.
    tests.dedup_by(|later, earlier| later.name == earlier.name);
    tests
}
