//! The first stage of a pass: the files of a source are read and loaded, with the last good forms of broken ones.

use std::collections::BTreeMap;

use super::build_cache::BuildCache;
use super::error::InputError;
use super::form_search::{FormSearch, GoodForms};
use crate::publish::CurrentState;
use berth_base::source::SourceTree;
use berth_engine::load::{self, History, Loaded};
use berth_git::{CommitId, Repo};

/// The files of a source, read and loaded.
#[derive(Debug)]
pub(super) struct ReadSource {
    /// A short name for people.
    pub label: String,
    pub tree: SourceTree,
    pub forms: GoodForms,
    pub loaded: Loaded,
}

/// The place of a tree in the history of its repository.
#[derive(Clone, Copy)]
pub(super) struct TreePlace<'a> {
    pub repo: &'a Repo,
    pub current: Option<&'a CurrentState>,
    /// The tree's own commit, if it is a commit's.
    pub commit: Option<CommitId>,
    /// The commit before the tree.
    pub older: Option<CommitId>,
}

impl ReadSource {
    /// Loads a tree by itself. Broken files have no last good form.
    pub fn alone(label: String, tree: SourceTree, cache: &mut BuildCache) -> ReadSource {
        let loaded = load::load_with_cache(&tree, History::None, &mut cache.parsed);
        ReadSource { label, tree, forms: GoodForms::None, loaded }
    }

    /// Loads a tree with the last good forms of its broken files.
    pub fn with_history(
        label: String,
        mut tree: SourceTree,
        place: TreePlace<'_>,
        cache: &mut BuildCache,
    ) -> Result<ReadSource, InputError> {
        let TreePlace { repo, current, commit, older } = place;
        let parsed = &mut cache.parsed;
        let (forms, loaded) = match (load::again(&tree, parsed), current) {
            (Some(loaded), Some(_)) => (GoodForms::Found(BTreeMap::new()), loaded),
            (Some(loaded), None) => (GoodForms::None, loaded),
            (None, _) => {
                let first = load::first(&tree, parsed);
                let forms = match current {
                    Some(current) => {
                        FormSearch { repo, current, commit, older }.find(&mut tree, &first, parsed)?
                    }
                    None => GoodForms::None,
                };
                let loaded = forms.with(|history| load::finish(&tree, first, history, parsed));
                (forms, loaded)
            }
        };
        Ok(ReadSource { label, tree, forms, loaded })
    }

    /// Loads other files in place of the tree's, with the same last good forms.
    pub fn edit_tree(&mut self, edit: impl FnOnce(&mut SourceTree), cache: &mut BuildCache) {
        edit(&mut self.tree);
        let (tree, parsed) = (&self.tree, &mut cache.parsed);
        self.loaded = self.forms.with(|history| load::load_with_cache(tree, history, parsed));
    }
}
