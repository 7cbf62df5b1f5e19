//! Finds the pull request, its forge's token and the revisions to plan, from flags and the environment of a CI run.

use std::path::{Path, PathBuf};

use crate::planning::planned::Revisions;
use crate::planning::rehearsal::{Revision, source_tip};
use crate::process::exit::CommandError;
use crate::process::shell::Environment;
use berth_forge::environment::{self, Variables};
use berth_forge::{Forge, Given, PullRequest, Token};
use berth_git::Repo;
use berth_hub::inputs::{LocatedState, current_state};

/// The flags that name a pull request. Each replaces what the environment says.
#[derive(Debug, clap::Args)]
pub(crate) struct ForgeArgs {
    /// Revision to merge into, whose state comes before the change; default: the pull request's base branch
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Revision to review; default: the pull request's head, or HEAD
    #[arg(long, value_name = "REV")]
    head: Option<String>,
    /// The forge's kind: github, gitlab, gitea or forgejo
    #[arg(long, value_name = "KIND")]
    forge: Option<Forge>,
    /// Address of the forge's API, such as `https://git.example.com/api/v1`
    #[arg(long, value_name = "URL")]
    api: Option<String>,
    /// The repository at the forge: `owner/name`, or GitLab's number of the project
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Number of the pull request
    #[arg(long, value_name = "NUMBER")]
    pull_request: Option<u64>,
    /// File with the token for the forge's API; or set BERTH_FORGE_TOKEN, or the forge's usual variable
    #[arg(long, value_name = "FILE", env = "BERTH_FORGE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// The values from flags and environment.
#[derive(Debug)]
pub(super) struct Found {
    pub variables: Variables,
    /// The pull request of this CI run, or the one that flags name.
    pub pull_request: Option<PullRequest>,
    pub token: Option<Token>,
}

impl ForgeArgs {
    pub fn find(&self, folder: &Path, environment: &Environment) -> Result<Found, CommandError> {
        let variables: Variables = environment.texts();
        let is_named = self.forge.is_some() || self.repository.is_some() || self.pull_request.is_some();
        if environment::forge_of(&variables).is_none() && !is_named {
            return Ok(Found { variables, pull_request: None, token: None });
        }
        let event = environment::event_file(&variables).map(|path| {
            std::fs::read_to_string(path).map_err(|error| CommandError::io(format!("reading {path}"), &error))
        });
        let pull_request =
            environment::read(&variables, event.transpose()?.as_deref(), &self.given(folder)?)?;
        let token = match &self.token_file {
            Some(file) => {
                let token = std::fs::read_to_string(file);
                let token =
                    token.map_err(|error| CommandError::io(format!("reading {}", file.display()), &error))?;
                Some(token).filter(|token| !token.trim().is_empty()).map(|token| Token::new(&token))
            }
            None => environment::token(&variables, pull_request.forge),
        };
        Ok(Found { variables, pull_request: Some(pull_request), token })
    }

    fn given(&self, folder: &Path) -> Result<Given, CommandError> {
        let commit = |name: &String| Repo::open(folder)?.require(name);
        Ok(Given {
            forge: self.forge,
            api: self.api.clone(),
            repository: self.repository.clone(),
            number: self.pull_request,
            base: self.base.clone(),
            head_commit: self.head.as_ref().map(commit).transpose()?.map(|id| id.to_string()),
            ..Given::default()
        })
    }

    /// Finds both sides of the pull request in the clone.
    pub fn revisions(
        &self,
        found: &Found,
        repo: &Repo,
        located: &LocatedState,
    ) -> Result<Revisions<'static>, CommandError> {
        let named = |name: &str| {
            Ok::<_, CommandError>(Revision { name: name.to_owned(), commit: repo.require(name)? })
        };
        let base = match (&self.base, &found.pull_request) {
            (Some(base), _) => Some(named(base)?),
            (None, Some(pull_request)) => Some(branch(repo, located, &pull_request.base)?),
            (None, None) => source_tip(repo, located, None)?,
        };
        let head = match (&self.head, &found.pull_request) {
            (None, Some(pull_request)) => head(repo, located, pull_request)?,
            (head, _) => named(head.as_deref().unwrap_or("HEAD"))?,
        };
        Ok(Revisions { base, head, source: None, is_merged: true })
    }
}

/// Returns the base branch, as fetched from the clone's remote.
fn branch(repo: &Repo, located: &LocatedState, branch: &str) -> Result<Revision, CommandError> {
    let usual = repo.remote_for(repo.head_branch()?.as_deref())?;
    let remote = located.remote.clone().or(usual);
    let full = format!("refs/heads/{branch}");
    let tracking = remote.as_ref().map(|remote| repo.tracking_ref(remote, &full)).transpose()?;
    for place in tracking.into_iter().chain([full]) {
        if let Some(commit) = repo.read_ref(&place)? {
            return Ok(Revision { name: current_state::short(&place).to_owned(), commit });
        }
    }
    Err(current_state::cut_off(repo, remote.as_deref(), branch)?.into())
}

/// Returns the pull request's head. Its files are read from Git and never checked out.
fn head(repo: &Repo, located: &LocatedState, pull_request: &PullRequest) -> Result<Revision, CommandError> {
    let sign = if pull_request.forge == Forge::GitLab { '!' } else { '#' };
    let name = format!("{sign}{}", pull_request.number);
    match repo.resolve(&pull_request.head_commit)? {
        Some(commit) => Ok(Revision { name, commit }),
        None => Err(current_state::cut_off(repo, located.remote.as_deref(), &name)?.into()),
    }
}
