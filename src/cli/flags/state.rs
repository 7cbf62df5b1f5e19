//! The flags that select the current state of a command, and the published record of a repository: the newest state with
//! the step that a pass would make now, and earlier publications by name.

use std::path::{Path, PathBuf};

use super::fleet::{RepoArg, moment};
use super::remote::RemoteArgs;
use crate::output::results::Format;
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use crate::process::files::OwnFolder;
use berth_base::model::Timestamp;
use berth_engine::pipeline::Built;
use berth_engine::rollouts::Sources;
use berth_engine::state::State;
use berth_git::shared_refs::Refs;
use berth_git::transport::{Transport as _, TransportError, Want};
use berth_git::{CommitId, GitContents, GitError, Repo};
use berth_hub::inputs::current_state::{self, GIVEN};
use berth_hub::inputs::gate::rules_of;
use berth_hub::inputs::{LocatedState, PassInputs, Rendering, Search, SourceCommit};
use berth_hub::publish::{CurrentState, PublishError, Trailers, read_current_at};

/// The source branch of a state at an address, where it was fetched.
pub(crate) const SOURCE_OF_ADDRESS: &str = "refs/berth-local/given/source";

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StateArgs {
    /// Go on from this rendered branch, in place of this repository's own or, where it has none, its remote's: a ref,
    /// or a remote's URL to fetch from (with `BERTH_TOKEN` and the other variables of `run --remote`)
    #[arg(long, value_name = "REF|URL", env = "BERTH_RENDERED")]
    pub rendered: Option<String>,
    /// Begin without a state where none is found, because nothing was ever published
    #[arg(long)]
    pub first: bool,
}

/// A repository to read a state from.
pub(crate) struct StateRepo {
    pub repo: Repo,
    pub path: PathBuf,
    /// The folder of a temporary repository for a state at an address.
    own: Option<OwnFolder>,
}

impl StateRepo {
    /// Reports whether the repository was made for this command alone.
    pub fn is_temporary(&self) -> bool {
        self.own.is_some()
    }
}

impl StateArgs {
    /// Opens a repository. If it is missing and the state is at an address, makes a temporary one.
    pub fn open(&self, path: &Path) -> Result<StateRepo, CommandError> {
        match Repo::open(path) {
            Err(GitError::NotARepository { .. }) if self.address().is_some() => {
                let own = OwnFolder::make()?;
                let repo = Repo::init(own.path())?;
                Ok(StateRepo { repo, path: own.path().to_owned(), own: Some(own) })
            }
            repo => Ok(StateRepo { repo: repo?, path: path.to_owned(), own: None }),
        }
    }

    /// Returns the address from which the state is fetched, if any. No ref's name contains a colon.
    pub fn address(&self) -> Option<&str> {
        self.rendered.as_deref().filter(|named| named.contains(':'))
    }

    /// Returns the place of the current state. Fetches the state if an address is given.
    pub fn search(&self, repo: &Path) -> Result<Search, CommandError> {
        match self.address() {
            Some(address) => fetch(repo, address),
            None => Ok(Search { rendered: self.rendered.clone(), first: self.first, refs: None }),
        }
    }

    /// Fetches the branch that people edit beside the state, if the state is at an address.
    pub fn fetch_source(&self, repo: &Path, branch: &str) -> Result<(), CommandError> {
        let Some(address) = self.address() else { return Ok(()) };
        let wants = [Want::One { there: branch.to_owned(), here: SOURCE_OF_ADDRESS.to_owned() }];
        let transport = RemoteArgs::of_environment()?.reach(address)?;
        match transport.fetch(Repo::open(repo)?.shared_path(), &wants, None) {
            // A branch that was renamed or deleted leaves the state without its source.
            Ok(_) | Err(TransportError::NoSuchRef { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Fetches a remote's state next to the repository's own refs.
fn fetch(repo: &Path, address: &str) -> Result<Search, CommandError> {
    let transport = RemoteArgs::of_environment()?.reach(address)?;
    let own = Refs::default();
    let under =
        |name: &str| format!("{GIVEN}{}", name.trim_start_matches("refs/").trim_start_matches("berth/"));
    let refs = Refs {
        rendered: format!("{GIVEN}rendered"),
        clusters: under(&own.clusters),
        status: under(&own.status),
        statuses: under(&own.statuses),
        processed: under(&own.processed),
        report: under(&own.report),
        leader: under(&own.leader),
        cluster_branches: own.cluster_branches,
        preview: own.preview,
        root: under(&own.root),
    };
    let wants = [
        Want::One { there: own.rendered, here: refs.rendered.clone() },
        Want::One { there: "refs/berth/*".to_owned(), here: format!("{GIVEN}*") },
    ];
    transport.fetch(Repo::open(repo)?.shared_path(), &wants, None)?;
    Ok(Search { rendered: Some(refs.rendered.clone()), first: false, refs: Some(refs) })
}

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

    /// Opens a repository in which the record was found, without fetching it again.
    pub fn open_at(path: &Path, state: &StateArgs, found: &LocatedState) -> Result<Located, CommandError> {
        let opened = state.open(path)?;
        let refs = found.refs.clone();
        let search = Search { rendered: Some(refs.rendered.clone()), first: state.first, refs: Some(refs) };
        let state = LocatedState::find(&opened.repo, &search)?;
        Ok(Located { opened, state, search })
    }

    /// Finds the record again. Fetches it if it is at an address.
    pub fn look_again(&mut self, state: &StateArgs) -> Result<(), CommandError> {
        self.search = state.search(&self.opened.path)?;
        self.state = LocatedState::find(&self.opened.repo, &self.search)?;
        Ok(())
    }

    pub fn opened(&self) -> &StateRepo {
        &self.opened
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
        let now = args.now.unwrap_or_else(|| ui.now());
        let built = located.build(now, ui)?;
        let current = located.state.current.map(|current| current.state).unwrap_or_default();
        Ok(Record { current, built, now })
    }

    pub fn rollout_sources(&self) -> Sources<'_> {
        Sources { current: &self.current, built: Some(&self.built), now: self.now }
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
    PassInputs::recorded(source, published.state.facts.clone(), now, &Rendering::Now).ok()
}
