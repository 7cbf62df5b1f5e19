//! The policy tests of a tree, and the ones that judge it. Like access rules, these come from an earlier
//! commit, so that no change decides which tests judge it.

use std::sync::Arc;

use super::file_cache::FileCache;
use crate::policy_tests::{self, PolicyTest};
use berth_base::diag::Severity;
use berth_base::model::API_VERSION;
use berth_base::model::object::{group_of, version_of};
use berth_base::source::{RulesFrom, SourceTree};
use berth_base::yaml::Scope;

/// The policy tests that concern a tree, by name.
#[derive(Clone, Debug, Default)]
pub struct FleetTests {
    /// The tests that judge this tree.
    pub counting: Vec<Arc<PolicyTest>>,
    /// The tree's own tests, which judge the next one.
    pub own: Vec<Arc<PolicyTest>>,
}

pub(super) fn of(tree: &SourceTree, cache: &mut FileCache) -> FleetTests {
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
