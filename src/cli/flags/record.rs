//! The published record of a repository: the newest state with the step that a pass would make now, and earlier
//! publications by name.

use std::path::Path;

use super::fleet::moment;
use super::repo::RepoArg;
use super::state::{StateArgs, StateRepo};
use crate::output::results::Format;
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::model::Timestamp;
use berth_engine::pipeline::Built;
use berth_engine::rollouts::Sources;
use berth_engine::state::State;
use berth_git::{CommitId, GitContents, Repo};
use berth_hub::inputs::gate_inputs::rules_of;
use berth_hub::inputs::{LocatedState, PassInputs, Search, SourceCommit, current_state};
use berth_hub::publish::{CurrentState, PublishError, Trailers, read_current_at};

/// The record to read
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub repo: RepoArg,
    #[command(flatten)]
    pub state: StateArgs,
    /// Judge reports, waits and silent members at this moment (RFC 3339), in place of now
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub now: Option<Timestamp>,
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Format,
}

/// The place of the record in a repository.
pub(crate) struct Located {
    opened: StateRepo,
    pub state: LocatedState,
    search: Search,
}

/// The record, with the inputs of the step that a pass would make now.
pub(crate) struct Record {
    pub current: State,
    pub built: Built,
    pub now: Timestamp,
}

impl Located {
    pub fn find(args: &RecordArgs, ui: &Ui) -> Result<Located, CommandError> {
        Located::open(&args.repo, &args.state, ui)
    }

    pub fn open(repo: &RepoArg, state: &StateArgs, ui: &Ui) -> Result<Located, CommandError> {
        let opened = state.open(&repo.path)?;
        let search = state.search(&opened.path)?;
        Located::find_in(opened, search, ui)
    }

    /// Finds the record in a repository that was opened, and fetched if the record is at an address.
    pub fn find_in(opened: StateRepo, search: Search, ui: &Ui) -> Result<Located, CommandError> {
        let state = LocatedState::find(&opened.repo, &search)?;
        ui.status(&format!("reading {}", state.words()));
        Ok(Located { opened, state, search })
    }

    pub fn repo(&self) -> &Repo {
        &self.opened.repo
    }

    /// Returns the folder of the repository.
    pub fn path(&self) -> &Path {
        &self.opened.path
    }

    /// Makes the step that a pass would make.
    pub fn build(&self, now: Timestamp, ui: &Ui) -> Result<Built, CommandError> {
        // A source commit without changes makes no publication, but may still pause or pin.
        let processed = self.state.processed.as_ref().map(|processed| processed.source);
        let published = self.state.current.as_ref().and_then(|current| current.trailers.source);
        let mut sources = processed.into_iter().chain(published);
        let Some(source) = sources.find(|source| self.repo().has_commit(*source)) else {
            let error = CommandError::usage("the source of the current state is not in this clone");
            return Err(error.hint("fetch the branch that people edit"));
        };
        let source = source.to_string();
        let inputs = ui.watching("reading the fleet", || {
            PassInputs::revision(&self.opened.path, &source, Some(now), None, &self.search)
        })?;
        ui.diagnostics(&inputs.reports.odd);
        // Copies are compared with the published ones, so that they need Git's ids.
        Ok(inputs.build(&mut GitContents::remembering(self.repo())?)?)
    }
}

impl Record {
    pub fn read(args: &RecordArgs, ui: &Ui) -> Result<Record, CommandError> {
        let located = Located::find(args, ui)?;
        if located.state.current.is_none() {
            let error = CommandError::usage("nothing is published yet");
            return Err(error.hint("publish with `berth run --once`"));
        }
        let now = args.now.unwrap_or_else(Timestamp::now);
        let built = located.build(now, ui)?;
        let current = located.state.current.map(|current| current.state).unwrap_or_default();
        Ok(Record { current, built, now })
    }

    pub fn rollout_sources(&self) -> Sources<'_> {
        Sources { current: &self.current, built: &self.built, now: self.now }
    }
}

/// The longest number that is tried as a sequence before a commit's id.
const LONGEST_NUMBER: usize = 6;

/// Finds a publication by its sequence or any revision.
pub(crate) fn find_publication(repo: &Repo, tip: CommitId, name: &str) -> Result<CommitId, CommandError> {
    let number = name.parse::<u64>().ok().filter(|_| name.len() <= LONGEST_NUMBER);
    if let Some(number) = number {
        for commit in repo.first_parents(tip) {
            let sequence = Trailers::read(&commit.message).map(|trailers| trailers.seq);
            if sequence == Some(number) {
                return Ok(commit.id);
            }
        }
        if repo.resolve(name)?.is_none() {
            let error = CommandError::usage(format!("no publication has the number {number}"));
            return Err(error.hint("`berth verify` lists all publications with their numbers"));
        }
    }
    Ok(repo.require(name)?)
}

/// Finds the publication before another.
pub(crate) fn publication_before(repo: &Repo, commit: CommitId) -> Result<CommitId, CommandError> {
    let parent = repo.commit(commit)?.parents.first().copied().filter(|parent| repo.has_commit(*parent));
    parent.ok_or_else(|| CommandError::usage(format!("nothing was published before {}", commit.short())))
}

/// Reads a publication's state.
pub(crate) fn read_publication(
    repo: &Repo,
    branch: &str,
    commit: CommitId,
) -> Result<CurrentState, CommandError> {
    read_current_at(repo, branch, commit).map_err(|error| match error {
        PublishError::Unowned { .. } => {
            let error = CommandError::usage(format!("commit {} is not a publication", commit.short()));
            error.hint(format!("name one by its number, or a revision of `{}`", current_state::short(branch)))
        }
        error => error.into(),
    })
}

/// Returns the inputs from which a publication was made, starting with another state; `None` if this clone lacks its
/// source.
pub(crate) fn publication_inputs(
    repo: &Repo,
    published: &CurrentState,
    before: &CurrentState,
) -> Option<PassInputs> {
    let source = published.trailers.source.filter(|source| repo.has_commit(*source))?;
    let rules = rules_of(&published.trailers, source);
    let now = published.trailers.now.unwrap_or_default();
    let source = SourceCommit { repo, commit: source, rules, current: Some(before) };
    PassInputs::recorded(source, published.state.facts.clone(), now).ok()
}
