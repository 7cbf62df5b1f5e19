//! Gathers the inputs of the pipeline: a source tree with its history, the current state,
//! the members' reports, and the moment.
//!
//! Commands and the daemon read through here, so that `plan` shows what `run` will do.

mod access_rules;
mod approvals;
mod build_cache;
mod causes;
mod copy_reports;
pub mod current_state;
mod error;
pub mod gate;
pub mod gate_inputs;
pub(crate) mod hearing;
mod hypothetical;
mod last_good;
pub(crate) mod moment;
mod past_states;
mod policy_tests;
mod silence;
mod unpublished_contents;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::publish::CurrentState;
use berth_base::diag::Diagnostics;
use berth_base::model::{
    ClusterStatus, ContentError, Contents, Decision, Fleet, Key, LabelKeys, Map, Shared, Timestamp,
};
use berth_base::source;
use berth_base::source::{RulesFrom, SourceTree};
use berth_base::yaml::Limits;
use berth_engine::decide::Decided;
use berth_engine::load::{History, Loaded};
use berth_engine::pipeline::{Built, Inputs};
use berth_engine::state::{ObjectIndex, State};
use berth_engine::{load, pipeline, state};
use berth_git as git;
use berth_git::{CommitId, Repo, read_source};
use last_good::{FormSearch, GoodForms};
use silence::Silences;

pub use build_cache::BuildCache;
pub use current_state::{LocatedState, Reports, Search};
pub use error::InputError;
pub use last_good::PublishedSource;
pub use policy_tests::PolicyReport;
pub use unpublished_contents::UnpublishedContents;

/// A commit of the source, and the state to go on from.
#[derive(Clone, Copy, Debug)]
pub struct SourceCommit<'a> {
    pub repo: &'a Repo,
    pub commit: CommitId,
    /// The commit whose access rules hold.
    pub rules: Option<CommitId>,
    pub current: Option<&'a CurrentState>,
}

/// All inputs of one pass.
#[derive(Debug)]
pub struct PassInputs {
    /// A short name of the source that was read.
    pub label: String,
    /// The current state that the source is compared with, in a few words.
    pub upon: Option<String>,
    tree: SourceTree,
    pub current: State,
    pub statuses: Map<String, Shared<ClusterStatus>>,
    pub now: Timestamp,
    /// Faults of the rendered branch.
    pub diagnostics: Diagnostics,
    /// Faults of the reports. They are shown but not published: nobody could repeat them later.
    pub odd_reports: Diagnostics,
    /// The verdict on members that are overdue, where somebody listens to them.
    pub(crate) silences: Silences,
    history: GoodForms,
    /// The source commit of the current state.
    pub(crate) published: Option<CommitId>,
    /// The moment that the current state was made for.
    then: Option<Timestamp>,
    /// The path of the repository, if any.
    repo: Option<PathBuf>,
    cache: BuildCache,
    loaded: Loaded,
}

fn labels_of(rendered: Option<&CurrentState>) -> LabelKeys {
    rendered.map(|rendered| gate_inputs::labels_of(&rendered.trailers)).unwrap_or_default()
}

impl PassInputs {
    /// A folder as it stands, committed or not. The rendered branch counts if the folder is a repository's root.
    /// Access rules are those of the last commit, or of where the change from the revision `against` began.
    pub fn folder(
        path: &Path,
        now: Timestamp,
        against: Option<&str>,
        search: &Search,
    ) -> Result<PassInputs, InputError> {
        let mut tree = source::read_dir(path, &Limits::default())?;
        let label = label_of(path);
        let repo = if path.join(".git").exists() { Some(Repo::open(path)?) } else { None };
        let Some(repo) = repo else { return Ok(PassInputs::without_state(tree, label, now)) };
        let located = LocatedState::find(&repo, search)?;
        let current = located.current.as_ref();
        let head = repo.resolve("HEAD")?;
        let ruling = match against {
            Some(revision) => Some(access_rules::against(&repo, revision, head)?),
            None => access_rules::for_folder(&repo, &located, head)?,
        };
        let kept = |ruling| access_rules::kept_of(&repo, current, ruling);
        tree.rules_from = access_rules::of(&repo, ruling, kept, &tree, &mut git::SourceCache::default())?;
        let mut inputs = PassInputs::with(&repo, current, tree, (None, head), BuildCache::default())?;
        inputs.label = label;
        inputs.now = now;
        inputs.take_reports(&repo, current, located.reports(&repo, &labels_of(current))?, now);
        inputs.upon = Some(located.words());
        Ok(inputs)
    }

    /// A revision, straight from Git. Access rules as for a folder.
    pub fn revision(
        path: &Path,
        revision: &str,
        now: Option<Timestamp>,
        against: Option<&str>,
        search: &Search,
    ) -> Result<PassInputs, InputError> {
        let repo = Repo::open(path)?;
        let commit = repo.require(revision)?;
        let located = LocatedState::find(&repo, search)?;
        let current = located.current.as_ref();
        let rules = match against {
            Some(revision) => Some(access_rules::against(&repo, revision, Some(commit))?),
            None => access_rules::for_commit(&repo, &located, commit)?,
        };
        let reports = located.reports(&repo, &labels_of(current))?;
        let source = SourceCommit { repo: &repo, commit, rules, current };
        let mut inputs = PassInputs::commit(source, reports, Timestamp::now(), BuildCache::default())?;
        inputs.upon = Some(located.words());
        if let Some(now) = now {
            inputs.now = now;
        }
        Ok(inputs)
    }

    /// A commit with what earlier readings found, for the earliest moment that a daemon would decide it for: the latest
    /// of the commit's date, the members' reports, and the moment of the current state. No date from after `clock`
    /// counts, whether of a commit or of a report.
    pub fn commit(
        source: SourceCommit<'_>,
        reports: Reports,
        clock: Timestamp,
        cache: BuildCache,
    ) -> Result<PassInputs, InputError> {
        moment::check_date(source.repo, source.commit, clock)?;
        let mut inputs = PassInputs::source(source, cache)?;
        inputs.odd_reports.extend(moment::ahead_of(clock, inputs.now));
        let dated = Timestamp::from_second(source.repo.commit(source.commit)?.seconds).ok();
        let reported = reports.statuses.values().filter_map(|status| status.reported);
        let dates = reported.filter(|date| *date <= clock).chain(dated.map(|date| date.min(clock)));
        inputs.now = dates.fold(inputs.now, Timestamp::max);
        inputs.take_reports(source.repo, source.current, reports, clock);
        Ok(inputs)
    }

    /// A commit with what was read of the reports back then: `facts` stand for the statuses, and `now` for the
    /// moment, unless the current state was made for a later one.
    pub fn recorded(
        source: SourceCommit<'_>,
        facts: Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
    ) -> Result<PassInputs, InputError> {
        let inputs = PassInputs::source(source, BuildCache::default())?;
        Ok(PassInputs { statuses: facts, now: inputs.now.max(now), ..inputs })
    }

    /// Reports whether the source of the current state is needed but missing.
    pub(crate) fn lacks_history(&self) -> bool {
        matches!(self.history, GoodForms::Unavailable)
    }

    /// A commit with its history, without any report.
    fn source(source: SourceCommit<'_>, mut cache: BuildCache) -> Result<PassInputs, InputError> {
        let SourceCommit { repo, commit, rules, current } = source;
        let info = repo.commit(commit)?;
        let mut tree = git::read_source_with_cache(repo, commit, &mut cache.source)?;
        let kept = |ruling| access_rules::kept_of(repo, current, ruling);
        tree.rules_from = access_rules::of(repo, rules, kept, &tree, &mut cache.source)?;
        let line = (Some(commit), info.parents.first().copied());
        let mut inputs = PassInputs::with(repo, current, tree, line, cache)?;
        inputs.label = format!("commit {commit} ({})", info.subject());
        inputs.now = inputs.then.unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(inputs)
    }

    /// Takes the reports over, for the moment that is set or the last at which a member fell silent.
    fn take_reports(
        &mut self,
        repo: &Repo,
        current: Option<&CurrentState>,
        reports: Reports,
        clock: Timestamp,
    ) {
        self.statuses = reports.statuses;
        self.odd_reports.extend(reports.odd);
        if let Some(hearing) = &reports.hearing {
            let (fleet, statuses) = (&self.loaded.fleet, &mut self.statuses);
            self.silences = Silences::judge(hearing, fleet, statuses, self.then, clock);
            self.odd_reports.extend(self.silences.warning());
            self.now = self.silences.last.map_or(self.now, |last| last.max(self.now));
        }
        if let Some(current) = current {
            let fleet = &self.loaded.fleet;
            self.cache.copies.add_verdicts(repo, fleet, current, &mut self.statuses, self.now);
        }
    }

    /// A tree with the last good forms of its files; `commit` is its own, if any, and `older` the one before it.
    fn with(
        repo: &Repo,
        current: Option<&CurrentState>,
        mut tree: SourceTree,
        (commit, older): (Option<CommitId>, Option<CommitId>),
        mut cache: BuildCache,
    ) -> Result<PassInputs, InputError> {
        let parsed = &mut cache.parsed;
        let (history, loaded) = match (load::again(&tree, parsed), current) {
            (Some(loaded), Some(_)) => (GoodForms::Found(BTreeMap::new()), loaded),
            (Some(loaded), None) => (GoodForms::None, loaded),
            (None, _) => {
                let first = load::first(&tree, parsed);
                let history = match current {
                    Some(current) => {
                        FormSearch { repo, current, commit, older }.find(&mut tree, &first, parsed)?
                    }
                    None => GoodForms::None,
                };
                let loaded = history.with(|history| load::finish(&tree, first, history, parsed));
                (history, loaded)
            }
        };
        Ok(PassInputs {
            label: String::new(),
            upon: None,
            tree,
            current: current.map(|current| current.state.clone()).unwrap_or_default(),
            statuses: Map::new(),
            now: Timestamp::UNIX_EPOCH,
            diagnostics: current.map(|current| current.foreign.clone()).unwrap_or_default(),
            odd_reports: Diagnostics::new(),
            silences: Silences::default(),
            history,
            published: current.and_then(|current| current.trailers.source),
            then: current.and_then(|current| current.trailers.now),
            repo: Some(repo.path().to_owned()),
            cache,
            loaded,
        })
    }

    /// The fleet that the files describe.
    pub fn fleet(&self) -> Shared<Fleet> {
        self.loaded.fleet.clone()
    }

    /// The files that were read.
    pub fn tree(&self) -> &SourceTree {
        &self.tree
    }

    /// Reads other files in their place, against the same state.
    pub fn edit_tree(&mut self, edit: impl FnOnce(&mut SourceTree)) {
        edit(&mut self.tree);
        let parsed = &mut self.cache.parsed;
        self.loaded = self.history.with(|history| load::load_with_cache(&self.tree, history, parsed));
    }

    /// Forgets the files as they were parsed, for whoever builds once and reads nothing again. Another thread takes them
    /// apart.
    pub fn forget_files(&mut self) {
        let files = std::mem::take(&mut self.cache.parsed);
        std::thread::spawn(move || drop(files));
    }

    /// Takes the index of the last pass.
    pub(crate) fn take_object_index(&mut self) -> ObjectIndex {
        std::mem::take(&mut self.cache.objects)
    }

    /// Keeps an index for the next pass.
    pub(crate) fn keep_object_index(&mut self, index: ObjectIndex) {
        self.cache.objects = index;
    }

    /// Returns the cache for the next pass.
    pub(crate) fn into_cache(mut self) -> BuildCache {
        self.cache.forget_unused();
        self.cache
    }

    /// Takes printed decisions for the current ones, in place of the rendered branch.
    pub fn take_current(&mut self, printed: Map<Key, Decision>) {
        let decisions = state::adopt(printed, self.loaded.fleet.placements.keys());
        self.current = State { decisions, ..State::default() };
    }

    /// Decides without rendering.
    pub fn decide(&self) -> (Loaded, Decided, Diagnostics) {
        self.inputs(|inputs| pipeline::decide_loaded(self.loaded.clone(), inputs))
    }

    /// Builds for the moment that is set.
    pub(crate) fn build_with_cache(&mut self, contents: &mut dyn Contents) -> Result<Built, ContentError> {
        let (built, cache) = self.build_after(contents)?;
        self.cache.built = Some(cache);
        Ok(built)
    }

    /// Decides and renders.
    pub fn build(&self, contents: &mut dyn Contents) -> Result<Built, ContentError> {
        Ok(self.build_after(contents)?.0)
    }

    fn build_after(
        &self,
        contents: &mut dyn Contents,
    ) -> Result<(Built, pipeline::PipelineCache), ContentError> {
        let before = self.cache.built.as_ref();
        self.inputs(|inputs| pipeline::build_loaded(self.loaded.clone(), inputs, before, contents))
    }

    fn inputs<T>(&self, run: impl FnOnce(Inputs<'_>) -> T) -> T {
        let PassInputs { tree, current, statuses, .. } = self;
        let PassInputs { now, .. } = *self;
        self.history.with(|history| run(Inputs { tree, history, current, statuses, now }))
    }
}

impl PassInputs {
    /// Reads a folder, or a revision of the repository there, without its current state. Nothing is compared with the
    /// access rules and policy tests in force, and broken files have no last good form.
    pub fn files_alone(
        path: &Path,
        revision: Option<&str>,
        now: Timestamp,
    ) -> Result<PassInputs, InputError> {
        let (tree, label) = match revision {
            Some(revision) => {
                let repo = Repo::open(path)?;
                let commit = repo.require(revision)?;
                (read_source(&repo, commit)?, format!("commit {commit}"))
            }
            None => (source::read_dir(path, &Limits::default())?, label_of(path)),
        };
        Ok(PassInputs::without_state(SourceTree { rules_from: RulesFrom::Nowhere, ..tree }, label, now))
    }

    /// The inputs that a tree gives by itself.
    fn without_state(tree: SourceTree, label: String, now: Timestamp) -> PassInputs {
        let mut cache = BuildCache::default();
        let loaded = load::load_with_cache(&tree, History::None, &mut cache.parsed);
        PassInputs {
            label,
            upon: None,
            tree,
            current: State::default(),
            statuses: Map::new(),
            now,
            diagnostics: Diagnostics::new(),
            odd_reports: Diagnostics::new(),
            silences: Silences::default(),
            history: GoodForms::None,
            published: None,
            then: None,
            repo: None,
            cache,
            loaded,
        }
    }
}

/// The name of a working tree for people.
fn label_of(path: &Path) -> String {
    format!("the working tree at {}", path.display())
}
