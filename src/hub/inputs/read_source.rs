//! The first stage of a pass: the files of a source are read and loaded, with the last good forms of broken
//! ones; and the cache that one reading of the fleet leaves for the next.

use std::collections::BTreeMap;

use super::copy_reports::CopyReportCache;
use super::error::InputError;
use super::form_search::{FormSearch, GoodForms};
use super::rendering::{
    Candidates, LastFiles, MergedValues, Origin, Render, Rendering, RenderingRecord, ValuesError, collapse,
};
use crate::publish::CurrentState;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::source::{Rendered, SourceTree};
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
    /// The origin of the files that are no YAML.
    origin: Origin,
    pub record: RenderingRecord,
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
    pub origin: &'a Origin,
    pub rendering: &'a Rendering,
}

impl ReadSource {
    /// Loads a tree by itself. Broken files have no last good form.
    pub fn alone(
        label: String,
        mut tree: SourceTree,
        (repo, origin): (Option<&Repo>, Origin),
        cache: &mut BuildCache,
    ) -> Result<ReadSource, InputError> {
        let nothing = BTreeMap::new();
        let last = LastFiles { repo, kept: &nothing };
        let render = Render { repo, origin: &origin, last, rendering: &Rendering::Now, is_edited: false };
        let record = render.expand(&mut tree, &mut cache.candidates, &mut cache.parsed)?;
        let loaded = load::load_with_cache(&tree, History::None, &mut cache.parsed);
        Ok(ReadSource { label, tree, forms: GoodForms::None, loaded, origin, record })
    }

    /// Loads a tree with the last good forms of its broken files.
    pub fn with_history(
        label: String,
        mut tree: SourceTree,
        place: TreePlace<'_>,
        cache: &mut BuildCache,
    ) -> Result<ReadSource, InputError> {
        let TreePlace { repo, current, commit, older, origin, rendering } = place;
        let nothing = BTreeMap::new();
        let kept = current.map_or(&nothing, |current| &current.state.kept);
        let last = LastFiles { repo: Some(repo), kept };
        let render = Render { repo: Some(repo), origin, last, rendering, is_edited: false };
        let record = render.expand(&mut tree, &mut cache.candidates, &mut cache.parsed)?;
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
        Ok(ReadSource { label, tree, forms, loaded, origin: origin.clone(), record })
    }

    /// Merges the values of a chart.
    pub fn merged_values(
        &self,
        repo: Option<&Repo>,
        (name, cluster): (&str, Option<&str>),
        cache: &mut BuildCache,
    ) -> Result<MergedValues, ValuesError> {
        let last = LastFiles { repo, kept: &BTreeMap::new() };
        let render = Render { repo, origin: &self.origin, last, rendering: &Rendering::Now, is_edited: true };
        render.merged_values(&self.tree, (&self.loaded.fleet, name, cluster), &mut cache.parsed)
    }

    /// Loads other files in place of the tree's, with the same last good forms.
    pub fn edit_tree(
        &mut self,
        edit: impl FnOnce(&mut SourceTree),
        last: LastFiles<'_>,
        cache: &mut BuildCache,
    ) {
        let before = self.tree.rendered.clone();
        edit(&mut self.tree);
        collapse(&mut self.tree, &before);
        let origin = &self.origin;
        let render = Render { repo: last.repo, origin, last, rendering: &Rendering::Now, is_edited: true };
        match render.expand(&mut self.tree, &mut cache.candidates, &mut cache.parsed) {
            Ok(record) => self.record = record,
            Err(error) => {
                let mut diagnostics = Diagnostics::new();
                diagnostics.push(Diagnostic::note(format!("charts and bases are not rendered: {error}")));
                self.tree.rendered = Rendered { diagnostics, ..Rendered::default() }.into();
            }
        }
        let (tree, parsed) = (&self.tree, &mut cache.parsed);
        self.loaded = self.forms.with(|history| load::load_with_cache(tree, history, parsed));
    }
}

/// Results of earlier readings. Losing them costs time only.
#[derive(Debug, Default)]
pub struct BuildCache {
    pub(super) source: git::SourceCache,
    pub(super) parsed: FileCache,
    candidates: Candidates,
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
