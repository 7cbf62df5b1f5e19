//! The flags that select the current state of a command.

use std::path::{Path, PathBuf};

use super::remote::RemoteArgs;
use crate::process::exit::CommandError;
use crate::process::files::OwnFolder;
use berth_git::protocol::Refs;
use berth_git::transport::{Transport as _, Want};
use berth_git::{GitError, Repo};
use berth_hub::inputs::Search;
use berth_hub::inputs::current_state::GIVEN;

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
    _own: Option<OwnFolder>,
}

impl StateArgs {
    /// Opens a repository. If it is missing and the state is at an address, makes a temporary one.
    pub fn open(&self, path: &Path) -> Result<StateRepo, CommandError> {
        match Repo::open(path) {
            Err(GitError::NotARepository { .. }) if self.address().is_some() => {
                let own = OwnFolder::make()?;
                let repo = Repo::init(own.path())?;
                Ok(StateRepo { repo, path: own.path().to_owned(), _own: Some(own) })
            }
            repo => Ok(StateRepo { repo: repo?, path: path.to_owned(), _own: None }),
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
}

impl StateArgs {
    /// Fetches the branch that people edit beside the state, if the state is at an address.
    pub fn fetch_source(&self, repo: &Path, branch: &str) -> Result<(), CommandError> {
        let Some(address) = self.address() else { return Ok(()) };
        let wants = [Want::One { there: branch.to_owned(), here: SOURCE_OF_ADDRESS.to_owned() }];
        let transport = RemoteArgs::of_environment()?.reach(address)?;
        Ok(transport.fetch(Repo::open(repo)?.shared_path(), &wants, None)?)
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
