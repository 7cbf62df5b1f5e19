//! Finds the pull request of a CI run in its variables.
//!
//! [`actions`] reads the variables of GitHub, Gitea and Forgejo, this file those of GitLab, and a repository named
//! by flags. A flag's value overrides the found one. This module uses neither the process's own environment nor
//! files nor the network.

mod actions;
mod error;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::token::Token;

pub use error::{EnvironmentError, Field};

/// The variables of a process.
pub type Variables = BTreeMap<String, String>;

/// A kind of forge, by its API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forge {
    GitHub,
    GitLab,
    /// Gitea, or Forgejo, which has the same API.
    Gitea,
}

impl Forge {
    /// Returns the name for flags and messages.
    pub fn name(self) -> &'static str {
        match self {
            Forge::GitHub => "github",
            Forge::GitLab => "gitlab",
            Forge::Gitea => "gitea",
        }
    }

    /// Returns the API's address, if the forge has one public instance.
    fn public_api(self) -> Option<&'static str> {
        match self {
            Forge::GitHub => Some("https://api.github.com"),
            Forge::GitLab => Some("https://gitlab.com/api/v4"),
            Forge::Gitea => None,
        }
    }
}

impl fmt::Display for Forge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Forge {
    type Err = String;

    fn from_str(name: &str) -> Result<Forge, String> {
        match name {
            "github" => Ok(Forge::GitHub),
            "gitlab" => Ok(Forge::GitLab),
            "gitea" | "forgejo" => Ok(Forge::Gitea),
            _ => Err("write `github`, `gitlab`, `gitea` or `forgejo`".to_owned()),
        }
    }
}

/// A pull request (GitLab: merge request), with everything that a review needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    pub forge: Forge,
    /// The address of the forge's API, without a slash at its end: `https://api.github.com`.
    pub api: String,
    /// `owner/name`; of GitLab the project's number or path.
    pub repository: String,
    pub number: u64,
    /// The target branch of the pull request.
    pub base: String,
    /// The tip of the target branch, if the CI run knows it.
    pub base_commit: Option<String>,
    /// The tip of the pull request's own branch. Commit statuses belong to it.
    pub head_commit: String,
    /// The branch of the head, if the CI run knows it.
    pub head_branch: Option<String>,
    /// The merge of head and base, if the forge made it and the CI run checked it out.
    pub merge_commit: Option<String>,
    /// True if the head is in another repository, whose CI runs get no secrets.
    pub is_fork: bool,
    pub links: Links,
}

/// Pages that people can open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    pub pull_request: Option<String>,
    /// The repository's own page.
    pub repository: Option<String>,
    /// The log of the CI run.
    pub run: Option<String>,
}

/// The values of flags. Each one that is set overrides the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub forge: Option<Forge>,
    pub api: Option<String>,
    pub repository: Option<String>,
    pub number: Option<u64>,
    pub base: Option<String>,
    pub base_commit: Option<String>,
    pub head_commit: Option<String>,
    pub merge_commit: Option<String>,
}

/// The values found in an environment.
#[derive(Debug, Default)]
struct Found {
    values: Given,
    head_branch: Option<String>,
    is_fork: bool,
    links: Links,
}

impl PullRequest {
    /// Returns the page with the changes of one branch since it left another.
    pub fn comparison(&self, from: &str, to: &str) -> Option<String> {
        let page = self.links.repository.as_ref().filter(|page| is_address(page))?;
        let between = if self.forge == Forge::GitLab { "/-/compare/" } else { "/compare/" };
        Some(format!("{page}{between}{}...{}", in_address(from), in_address(to)))
    }

    /// Returns the page of the CI run, where the forge shows its log and its files.
    pub fn run_page(&self) -> Option<&str> {
        self.links.run.as_deref().filter(|page| is_address(page))
    }
}

/// Encodes a branch's name for an address.
fn in_address(branch: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    let one = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    branch.bytes().map(one).collect()
}

/// Returns the forge on which this process runs in CI.
pub fn forge_of(variables: &Variables) -> Option<Forge> {
    let is_true = |name: &str| value(variables, name).is_some_and(|value| value == "true");
    if is_true("GITLAB_CI") {
        Some(Forge::GitLab)
    } else if is_true("GITEA_ACTIONS") || is_true("FORGEJO_ACTIONS") {
        // Gitea and Forgejo also set GitHub's variables.
        Some(Forge::Gitea)
    } else if is_true("GITHUB_ACTIONS") {
        Some(Forge::GitHub)
    } else {
        None
    }
}

/// Returns the path of the file that describes the event; the caller passes its text to [`read`]. GitLab has none.
pub fn event_file(variables: &Variables) -> Option<&str> {
    forge_of(variables).filter(|forge| *forge != Forge::GitLab)?;
    value(variables, actions::EVENT_FILE)
}

/// Returns the environment's token for a forge: berth's own, else the forge's usual one. An empty variable counts as
/// unset, as in a fork's run.
pub fn token(variables: &Variables, forge: Forge) -> Option<Token> {
    let usual: &[&str] = match forge {
        Forge::GitHub => &["GITHUB_TOKEN", "GH_TOKEN"],
        Forge::GitLab => &["GITLAB_TOKEN"],
        Forge::Gitea => &["GITEA_TOKEN", "FORGEJO_TOKEN", "GITHUB_TOKEN"],
    };
    let named = ["BERTH_FORGE_TOKEN"].into_iter().chain(usual.iter().copied());
    let token = named.filter_map(|name| value(variables, name)).map(Token::new).next();
    let of_job = || value(variables, "CI_JOB_TOKEN").filter(|_| forge == Forge::GitLab).map(Token::of_job);
    token.or_else(of_job)
}

/// Finds the pull request of a CI run, or the one that flags name.
///
/// `event` is the text of [`event_file`]. Without a CI run and without flags, fails with
/// [`EnvironmentError::Outside`].
pub fn read(
    variables: &Variables,
    event: Option<&str>,
    given: &Given,
) -> Result<PullRequest, EnvironmentError> {
    let running_on = forge_of(variables);
    if running_on.is_none() && *given == Given::default() {
        return Err(EnvironmentError::Outside);
    }
    // A run on one forge knows nothing about a pull request on another.
    let found = match running_on.filter(|forge| given.forge.is_none_or(|given| given == *forge)) {
        Some(Forge::GitLab) => find(variables),
        Some(forge) => actions::find(forge, variables, event)?,
        None => Found::default(),
    };
    let Found { values, head_branch, is_fork, links } = found;
    let forge = given.forge.or(values.forge).ok_or(EnvironmentError::missing(Field::Forge, None))?;
    let or = |given: &Option<String>, found: Option<String>| given.clone().or(found);
    let need =
        |field: Field, value: Option<String>| value.ok_or(EnvironmentError::missing(field, values.forge));
    let api = or(&given.api, values.api).or(forge.public_api().map(str::to_owned));
    let pull_request = PullRequest {
        forge,
        api: need(Field::Api, api)?.trim_end_matches('/').to_owned(),
        repository: need(Field::Repository, or(&given.repository, values.repository))?,
        number: given
            .number
            .or(values.number)
            .ok_or(EnvironmentError::missing(Field::Number, values.forge))?,
        base: need(Field::Base, or(&given.base, values.base))?,
        base_commit: or(&given.base_commit, values.base_commit),
        head_commit: need(Field::HeadCommit, or(&given.head_commit, values.head_commit))?,
        head_branch,
        merge_commit: or(&given.merge_commit, values.merge_commit),
        is_fork,
        links,
    };
    check(&pull_request)?;
    Ok(pull_request)
}

/// Checks the values that become parts of addresses and revisions.
fn check(pull_request: &PullRequest) -> Result<(), EnvironmentError> {
    let forge = pull_request.forge;
    let commits = [
        (Field::HeadCommit, Some(&pull_request.head_commit)),
        (Field::BaseCommit, pull_request.base_commit.as_ref()),
        (Field::MergeCommit, pull_request.merge_commit.as_ref()),
    ];
    let commits =
        commits.into_iter().filter_map(|(field, commit)| Some((field, commit?, is_commit(commit?))));
    let base = (Field::Base, &pull_request.base, is_branch(&pull_request.base));
    Repository::new(forge, Some(&pull_request.api), &pull_request.repository)?;
    match [base].into_iter().chain(commits).find(|(.., is_right)| !is_right) {
        Some((field, value, _)) => Err(wrong(field, value, forge)),
        None => Ok(()),
    }
}

/// Makes the error for an invalid value. An address may contain a password, which is never printed.
fn wrong(field: Field, value: &str, forge: Forge) -> EnvironmentError {
    let value = value.rsplit('@').next().unwrap_or_default().to_owned();
    EnvironmentError::Wrong { field, value, forge }
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
        !rest.is_empty() && !rest.starts_with('/') && rest.chars().all(is_plain)
    })
}

fn is_repository(forge: Forge, text: &str) -> bool {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        !matches!(name, "" | "." | "..") && name.chars().all(is_plain)
    };
    let names: Vec<&str> = text.split('/').collect();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    names.iter().all(|name| is_name(name))
        && match forge {
            Forge::GitLab => names.len() >= 2 || is_number,
            Forge::GitHub | Forge::Gitea => names.len() == 2,
        }
}

fn is_branch(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns a variable's value. CI systems set variables without a value to the empty text.
fn value<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

fn find(variables: &Variables) -> Found {
    let owned = |name: &str| value(variables, name).map(str::to_owned);
    let number = value(variables, "CI_MERGE_REQUEST_IID");
    // Set only in pipelines of merged results, where `CI_COMMIT_SHA` is the merge. Otherwise `CI_COMMIT_SHA` is the
    // head.
    let source = owned("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA");
    let checked_out = owned("CI_COMMIT_SHA").filter(|_| number.is_some());
    let project_page = value(variables, "CI_MERGE_REQUEST_PROJECT_URL");
    let page =
        project_page.zip(number).map(|(project, number)| format!("{project}/-/merge_requests/{number}"));
    let target_project = value(variables, "CI_MERGE_REQUEST_PROJECT_ID");
    Found {
        values: Given {
            forge: Some(Forge::GitLab),
            api: owned("CI_API_V4_URL"),
            repository: target_project.map(str::to_owned),
            number: number.and_then(|number| number.parse().ok()),
            base: owned("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"),
            // Not `CI_MERGE_REQUEST_DIFF_BASE_SHA`, which is the merge base.
            base_commit: owned("CI_MERGE_REQUEST_TARGET_BRANCH_SHA"),
            merge_commit: source.as_ref().and(checked_out.clone()),
            head_commit: source.or(checked_out),
        },
        head_branch: owned("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
        is_fork: value(variables, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != target_project,
        links: Links {
            pull_request: page,
            repository: project_page.map(str::to_owned),
            run: owned("CI_JOB_URL"),
        },
    }
}

/// A repository on a forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    pub forge: Forge,
    /// The address of the forge's API, without a slash at its end.
    pub api: String,
    /// `owner/name`; of GitLab the project's number or path.
    pub name: String,
}

impl Repository {
    /// Checks the parts of addresses. Without an API address, uses the forge's public one.
    pub fn new(forge: Forge, api: Option<&str>, name: &str) -> Result<Repository, EnvironmentError> {
        let api = api.or(forge.public_api()).ok_or(EnvironmentError::missing(Field::Api, None))?;
        let (api, name) = (api.trim_end_matches('/').to_owned(), name.to_owned());
        if !is_address(&api) {
            return Err(wrong(Field::Api, &api, forge));
        }
        if !is_repository(forge, &name) {
            return Err(wrong(Field::Repository, &name, forge));
        }
        Ok(Repository { forge, api, name })
    }
}

#[cfg(test)]
mod tests;
