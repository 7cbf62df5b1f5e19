//! The reasons why no pull request was found.

use super::Forge;

/// A value that names a part of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Forge,
    Api,
    Repository,
    Number,
    Base,
    BaseCommit,
    HeadCommit,
    MergeCommit,
}

impl Field {
    /// Returns the noun for the value in messages.
    fn noun(self) -> &'static str {
        match self {
            Field::Forge => "kind of forge",
            Field::Api => "address of the forge's API",
            Field::Repository => "repository",
            Field::Number => "number of the pull request",
            Field::Base => "base branch",
            Field::BaseCommit => "base commit",
            Field::HeadCommit => "head commit",
            Field::MergeCommit => "merge commit",
        }
    }

    /// Returns the flag that sets the value.
    pub fn flag(self) -> &'static str {
        match self {
            Field::Forge => "--forge",
            Field::Api => "--api",
            Field::Repository => "--repository",
            Field::Number => "--pull-request",
            Field::Base => "--base",
            Field::BaseCommit => "--base-commit",
            Field::HeadCommit => "--head",
            Field::MergeCommit => "--merge",
        }
    }

    /// Returns the variable with the value in a CI run for a pull request.
    fn variable(self, forge: Forge) -> &'static str {
        match (forge, self) {
            (Forge::GitLab, Field::Forge) => "GITLAB_CI",
            (Forge::GitLab, Field::Api) => "CI_API_V4_URL",
            (Forge::GitLab, Field::Repository) => "CI_MERGE_REQUEST_PROJECT_ID",
            (Forge::GitLab, Field::Number) => "CI_MERGE_REQUEST_IID",
            (Forge::GitLab, Field::Base) => "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
            (Forge::GitLab, Field::BaseCommit) => "CI_MERGE_REQUEST_TARGET_BRANCH_SHA",
            (Forge::GitLab, Field::HeadCommit | Field::MergeCommit) => "CI_COMMIT_SHA",
            (Forge::GitHub, Field::Forge) => "GITHUB_ACTIONS",
            (Forge::Gitea, Field::Forge) => "GITEA_ACTIONS",
            (_, Field::Api) => "GITHUB_API_URL",
            (_, Field::Repository) => "GITHUB_REPOSITORY",
            (_, Field::MergeCommit) => "GITHUB_SHA",
            (_, Field::Number | Field::Base | Field::BaseCommit | Field::HeadCommit) => "GITHUB_EVENT_PATH",
        }
    }

    /// Describes a valid value.
    fn example(self, forge: Forge) -> &'static str {
        match (self, forge) {
            (Field::Api, _) => {
                "an address such as `https://forge.example/api/v1`, without user, query or fragment"
            }
            (Field::Repository, Forge::GitLab) => "the project's number, or its path `group/name`",
            (Field::Repository, _) => "`owner/name`",
            (Field::Base, _) => "the name of a branch",
            (Field::Number, _) => "a number",
            (Field::Forge, _) => "`github`, `gitlab`, `gitea` or `forgejo`",
            (Field::BaseCommit | Field::HeadCommit | Field::MergeCommit, _) => {
                "a whole commit id of 40 or 64 lower-case hexadecimal digits"
            }
        }
    }
}

/// The reason why no pull request was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// There is neither a CI run nor a flag. Callers that do not need a forge continue without one.
    #[error("this is no CI run of GitHub, GitLab, Gitea or Forgejo")]
    Outside,
    #[error("the {} is missing{}", .field.noun(), held_in(*.field, *.forge))]
    Missing { field: Field, forge: Option<Forge> },
    #[error("the {} is `{value}`, not {}", .field.noun(), .field.example(*.forge))]
    Wrong { field: Field, value: String, forge: Forge },
    /// The event's file is not JSON of the documented form.
    #[error("the event in the file of `GITHUB_EVENT_PATH` is invalid: {0}")]
    Event(String),
}

fn held_in(field: Field, forge: Option<Forge>) -> String {
    forge.map(|forge| format!(": `{}` holds none", field.variable(forge))).unwrap_or_default()
}

impl EnvironmentError {
    pub(super) fn missing(field: Field, forge: Option<Forge>) -> EnvironmentError {
        EnvironmentError::Missing { field, forge }
    }

    /// Returns the hint.
    pub fn hint(&self) -> String {
        let on_pull_requests = |forge: Forge| match forge {
            Forge::GitLab => {
                "run the job in merge request pipelines (`if: $CI_PIPELINE_SOURCE == \"merge_request_event\"`)"
            }
            Forge::GitHub | Forge::Gitea => "run the workflow on `pull_request`",
        };
        match self {
            EnvironmentError::Outside => {
                "name the pull request with `--forge`, `--repository`, `--pull-request`, `--base` and `--head`".to_owned()
            }
            EnvironmentError::Missing { field, forge: Some(forge) } => {
                format!("{}, or pass `{}`", on_pull_requests(*forge), field.flag())
            }
            EnvironmentError::Missing { field, forge: None } | EnvironmentError::Wrong { field, .. } => {
                format!("pass `{}`", field.flag())
            }
            EnvironmentError::Event(_) => {
                "run the workflow on `pull_request`, or name the pull request with `--pull-request`, `--base` and `--head`"
                    .to_owned()
            }
        }
    }
}
