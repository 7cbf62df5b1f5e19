//! Gathers the inputs of the pipeline: a source tree with its history, the current state,
//! the members' reports, and the moment.
//!
//! Commands and the daemon read through here, so that `plan` shows what `run` will do.

mod approvals;
mod causes;
mod copy_reports;
pub mod current_state;
mod error;
mod form_search;
pub mod gate;
pub(crate) mod moment;
mod read_source;
mod rendering;
mod rules;
pub(crate) mod silence;
mod unpublished_contents;

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
use berth_engine::load::Loaded;
use berth_engine::pipeline::{Built, Inputs};
use berth_engine::state::{ObjectIndex, State};
use berth_engine::{pipeline, state};
use berth_git as git;
use berth_git::{CommitId, Repo, read_source};
use form_search::GoodForms;
use read_source::{ReadSource, TreePlace};
use rendering::{LastFiles, Origin};
use silence::Silences;

pub use current_state::{LocatedState, Reports, Search};
pub use error::InputError;
pub use form_search::PublishedSource;
pub use read_source::BuildCache;
pub use rendering::{MergedValue, MergedValues, Rendering, ValuesError};
pub use rules::PolicyReport;
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

/// All inputs of one pass, in the order in which they are gathered: the files, the current state, the members' reports.
#[derive(Debug)]
pub struct PassInputs {
    source: ReadSource,
    pub current: State,
    publication: CurrentPublication,
    pub reports: TakenReports,
    pub now: Timestamp,
    /// The path of the repository, if any.
    repo: Option<PathBuf>,
    cache: BuildCache,
}

/// The publication that has the current state. Empty before the first one.
#[derive(Debug, Default)]
struct CurrentPublication {
    /// The state's ref and number, for people.
    words: Option<String>,
    /// Its source commit.
    source: Option<CommitId>,
    /// The moment that it was made for.
    moment: Option<Timestamp>,
    /// The faults of the rendered branch.
    foreign: Diagnostics,
}

/// The reports of the members, as far as they count at this moment.
#[derive(Debug, Default)]
pub struct TakenReports {
    pub statuses: Map<String, Shared<ClusterStatus>>,
    /// Faults of the reports. They are shown but not published: nobody could repeat them later.
    pub odd: Diagnostics,
    /// The verdict on members that are overdue, where somebody listens to them.
    pub(crate) silences: Silences,
}

impl CurrentPublication {
    fn of(current: &CurrentState) -> CurrentPublication {
        let CurrentState { trailers, foreign, .. } = current;
        CurrentPublication {
            words: None,
            source: trailers.source,
            moment: trailers.now,
            foreign: foreign.clone(),
        }
    }
}

fn labels_of(rendered: Option<&CurrentState>) -> LabelKeys {
    rendered.map(|rendered| gate::labels_of(&rendered.trailers)).unwrap_or_default()
}

impl PassInputs {
    /// A folder as it is, committed or not. The rendered branch counts if the folder is a repository's root.
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
        let origin = Origin::Folder(path.to_owned());
        let Some(repo) = repo else { return PassInputs::without_state(label, tree, (None, origin), now) };
        let located = LocatedState::find(&repo, search)?;
        let current = located.current.as_ref();
        let head = repo.resolve("HEAD")?;
        let ruling = match against {
            Some(revision) => Some(rules::against(&repo, revision, head)?),
            None => rules::for_folder(&repo, &located, head)?,
        };
        let kept = |ruling| rules::kept_of(&repo, current, ruling);
        tree.rules_from = rules::of(&repo, ruling, kept, &tree, &mut git::SourceCache::default())?;
        let rendering = Rendering::Now;
        let place = TreePlace {
            repo: &repo,
            current,
            commit: None,
            older: head,
            origin: &origin,
            rendering: &rendering,
        };
        let mut cache = BuildCache::default();
        let source = ReadSource::with_history(label, tree, place, &mut cache)?;
        let mut inputs = PassInputs::of(source, place, cache);
        inputs.now = now;
        inputs.take_reports(&repo, current, located.reports(&repo, &labels_of(current))?, now);
        inputs.publication.words = Some(located.words());
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
            Some(revision) => Some(rules::against(&repo, revision, Some(commit))?),
            None => rules::for_commit(&repo, &located, commit)?,
        };
        let reports = located.reports(&repo, &labels_of(current))?;
        let source = SourceCommit { repo: &repo, commit, rules, current };
        let mut inputs = PassInputs::commit(source, reports, Timestamp::now(), BuildCache::default())?;
        inputs.publication.words = Some(located.words());
        inputs.now = now.unwrap_or(inputs.now);
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
        let mut inputs = PassInputs::without_reports(source, &Rendering::Now, cache)?;
        inputs.reports.odd.extend(moment::ahead_of(clock, inputs.now));
        let dated = Timestamp::from_second(source.repo.commit(source.commit)?.seconds).ok();
        let reported = reports.statuses.values().filter_map(|status| status.reported);
        let dates = reported.filter(|date| *date <= clock).chain(dated.map(|date| date.min(clock)));
        inputs.now = dates.fold(inputs.now, Timestamp::max);
        inputs.take_reports(source.repo, source.current, reports, clock);
        Ok(inputs)
    }

    /// A commit with what was read of the reports back then: `facts` stand for the statuses, and `now` for the
    /// moment, unless the current state was made for a later one. Charts and bases are rendered like `rendering`.
    pub fn recorded(
        source: SourceCommit<'_>,
        facts: Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
        rendering: &Rendering,
    ) -> Result<PassInputs, InputError> {
        let mut inputs = PassInputs::without_reports(source, rendering, BuildCache::default())?;
        inputs.reports.statuses = facts;
        inputs.now = inputs.now.max(now);
        Ok(inputs)
    }

    /// A folder, or a revision of the repository there, without its current state. Nothing is compared with the
    /// access rules and policy tests in force, and broken files have no last good form.
    pub fn files_alone(
        path: &Path,
        revision: Option<&str>,
        now: Timestamp,
    ) -> Result<PassInputs, InputError> {
        let (tree, label, repo, origin) = match revision {
            Some(revision) => {
                let repo = Repo::open(path)?;
                let commit = repo.require(revision)?;
                let origin = Origin::Commit(repo.commit(commit)?.tree);
                (read_source(&repo, commit)?, format!("commit {commit}"), Some(repo), origin)
            }
            None => {
                let tree = source::read_dir(path, &Limits::default())?;
                (tree, label_of(path), None, Origin::Folder(path.to_owned()))
            }
        };
        let tree = SourceTree { rules_from: RulesFrom::Nowhere, ..tree };
        PassInputs::without_state(label, tree, (repo.as_ref(), origin), now)
    }

    /// A tree without a current state.
    fn without_state(
        label: String,
        tree: SourceTree,
        (repo, origin): (Option<&Repo>, Origin),
        now: Timestamp,
    ) -> Result<PassInputs, InputError> {
        let mut cache = BuildCache::default();
        Ok(PassInputs {
            source: ReadSource::alone(label, tree, (repo, origin), &mut cache)?,
            current: State::default(),
            publication: CurrentPublication::default(),
            reports: TakenReports::default(),
            now,
            repo: repo.map(|repo| repo.path().to_owned()),
            cache,
        })
    }

    /// A commit with its history, for the moment of the current state.
    fn without_reports(
        source: SourceCommit<'_>,
        rendering: &Rendering,
        mut cache: BuildCache,
    ) -> Result<PassInputs, InputError> {
        let SourceCommit { repo, commit, rules, current } = source;
        let info = repo.commit(commit)?;
        let mut tree = git::read_source_with_cache(repo, commit, &mut cache.source)?;
        let kept = |ruling| rules::kept_of(repo, current, ruling);
        tree.rules_from = rules::of(repo, rules, kept, &tree, &mut cache.source)?;
        let label = format!("commit {commit} ({})", info.subject());
        let (older, origin) = (info.parents.first().copied(), Origin::Commit(info.tree));
        let place = TreePlace { repo, current, commit: Some(commit), older, origin: &origin, rendering };
        let source = ReadSource::with_history(label, tree, place, &mut cache)?;
        Ok(PassInputs::of(source, place, cache))
    }

    /// A source and the current state of its repository, for the moment of that state.
    fn of(source: ReadSource, place: TreePlace<'_>, cache: BuildCache) -> PassInputs {
        let TreePlace { repo, current, .. } = place;
        let publication = current.map(CurrentPublication::of).unwrap_or_default();
        PassInputs {
            source,
            current: current.map(|current| current.state.clone()).unwrap_or_default(),
            now: publication.moment.unwrap_or(Timestamp::UNIX_EPOCH),
            publication,
            reports: TakenReports::default(),
            repo: Some(repo.path().to_owned()),
            cache,
        }
    }

    /// Takes the reports over, for the moment that is set or the last at which a member fell silent.
    fn take_reports(
        &mut self,
        repo: &Repo,
        current: Option<&CurrentState>,
        reports: Reports,
        clock: Timestamp,
    ) {
        let fleet = &self.source.loaded.fleet;
        let taken = &mut self.reports;
        taken.statuses = reports.statuses;
        taken.odd.extend(reports.odd);
        if let Some(hearing) = &reports.hearing {
            let then = self.publication.moment;
            taken.silences = Silences::judge(hearing, fleet, &mut taken.statuses, then, clock);
            taken.odd.extend(taken.silences.warning());
            self.now = taken.silences.last.map_or(self.now, |last| last.max(self.now));
        }
        if let Some(current) = current {
            self.cache.copies.add_verdicts(repo, fleet, current, &mut taken.statuses, self.now);
        }
    }

    /// A short name of the source.
    pub fn label(&self) -> &str {
        &self.source.label
    }

    /// The current state that the source is compared with, in a few words.
    pub fn compared_with(&self) -> Option<&str> {
        self.publication.words.as_deref()
    }

    /// The faults of the rendered branch.
    pub fn foreign(&self) -> &Diagnostics {
        &self.publication.foreign
    }

    /// Takes a commit for the source of the current state, where the state names none.
    pub(crate) fn assume_published_source(&mut self, commit: Option<CommitId>) {
        self.publication.source = self.publication.source.or(commit);
    }

    /// Reports whether the source of the current state is needed but missing.
    pub(crate) fn lacks_history(&self) -> bool {
        matches!(self.source.forms, GoodForms::Unavailable)
    }

    /// The fleet that the files describe.
    pub fn fleet(&self) -> Shared<Fleet> {
        self.source.loaded.fleet.clone()
    }

    /// The files that were read.
    pub fn tree(&self) -> &SourceTree {
        &self.source.tree
    }

    /// Reads other files in their place, against the same state.
    pub fn edit_tree(&mut self, edit: impl FnOnce(&mut SourceTree)) {
        let repo = self.repo.as_deref().and_then(|path| Repo::open(path).ok());
        let last = LastFiles { repo: repo.as_ref(), kept: &self.current.kept };
        self.source.edit_tree(edit, last, &mut self.cache);
    }

    /// Merges the values that a HelmSource has in a cluster or, without one, where no variant counts.
    pub fn merged_values(&mut self, name: &str, cluster: Option<&str>) -> Result<MergedValues, ValuesError> {
        let repo = self.repo.as_deref().and_then(|path| Repo::open(path).ok());
        self.source.merged_values(repo.as_ref(), (name, cluster), &mut self.cache)
    }

    /// The part of the rendering of charts and bases that a publication records, as trailers.
    pub(crate) fn rendering_trailers(&self) -> impl Iterator<Item = (String, String)> {
        self.source.record.trailers()
    }

    /// Reports whether a fault of the renderer left charts or bases as they are.
    pub(crate) fn has_unrendered(&self) -> bool {
        !self.source.record.failed.is_empty()
    }

    /// Frees the parsed files on another thread. Only for inputs that read nothing again.
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

    /// Takes printed decisions from a file for the current ones, in place of the rendered branch.
    pub fn take_current(&mut self, printed: Map<Key, Decision>, file: &Path) {
        let decisions = state::adopt(printed, self.source.loaded.fleet.placements.keys());
        self.current = State { decisions, ..State::default() };
        self.publication.words = Some(file.display().to_string());
    }

    /// Decides without rendering.
    pub fn decide(&self) -> (Loaded, Decided, Diagnostics) {
        self.inputs(|inputs| pipeline::decide_loaded(self.source.loaded.clone(), inputs))
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
        self.inputs(|inputs| pipeline::build_loaded(self.source.loaded.clone(), inputs, before, contents))
    }

    fn inputs<T>(&self, run: impl FnOnce(Inputs<'_>) -> T) -> T {
        let PassInputs { source: ReadSource { tree, forms, .. }, current, now, .. } = self;
        let statuses = &self.reports.statuses;
        forms.with(|history| run(Inputs { tree, history, current, statuses, now: *now }))
    }
}

/// The name of a working tree for people.
fn label_of(path: &Path) -> String {
    format!("the working tree at {}", path.display())
}
