//! The first stage of a pass: the files of a source are read and loaded, with the last good forms of broken
//! ones; and the cache that one reading of the fleet leaves for the next.

use std::collections::BTreeMap;

use super::copy_reports::CopyReportCache;
use super::error::InputError;
use super::form_search::{FormSearch, GoodForms};
use crate::publish::CurrentState;
use berth_base::source::SourceTree;
use berth_engine::load::{self, FileCache, History, Loaded};
use berth_engine::pipeline;
use berth_engine::state::ObjectIndex;
use berth_git as git;
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

/// Results of earlier readings. Losing them costs time only.
#[derive(Debug, Default)]
pub struct BuildCache {
    pub(super) source: git::SourceCache,
    pub(super) parsed: FileCache,
    pub(super) copies: CopyReportCache,
    /// The rendered objects of the current state, and no other.
    pub built: Option<pipeline::PipelineCache>,
    /// Of the decisions of the last plan.
    pub(super) objects: ObjectIndex,
}

impl BuildCache {
    /// Forgets what the last reading did not use.
    pub(super) fn forget_unused(&mut self) {
        self.source.forget_unused();
        self.parsed.forget_unused();
    }

    /// Returns the number of files parsed since this cache began.
    pub fn parsed(&self) -> usize {
        self.parsed.count()
    }
}
