//! Failures of a forge's API.

use std::time::Duration;

use berth_http::Retry;

use crate::environment::Forge;

/// A failed request. Quoted texts of the forge are one harmless line, without the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForgeError {
    /// The token lacks the right, as in a pull request from a fork. The caller then prints the text instead.
    #[error("the token has no right to {action}: {reason}")]
    NoRight { action: &'static str, reason: String },
    #[error("{forge} does not accept the token: {reason}")]
    BadToken { forge: Forge, reason: String },
    /// Forges also answer so if the token may not see the thing.
    #[error("{forge} knows no `{path}`, or hides it from this token")]
    NotFound { forge: Forge, path: String },
    #[error("{forge} is busy, after several tries: {reason}")]
    Busy { forge: Forge, reason: String, retry_after: Option<Duration> },
    #[error("`{api}` cannot be reached: {reason}")]
    Unreachable { api: String, reason: String },
    /// Redirects are not followed, because the token would be sent along.
    #[error("{forge} redirects to `{to}`: the repository has another name, or the API another address")]
    Moved { forge: Forge, to: String },
    #[error("the comment has {characters} characters, and forges take {most}")]
    TooLong { characters: usize, most: usize },
    #[error("the pull request has more than {most} comments")]
    TooManyComments { most: usize },
    #[error("unexpected answer from {forge}: {reason}")]
    Unexpected { forge: Forge, reason: String },
}

impl ForgeError {
    /// Returns the hint.
    pub fn hint(&self) -> &'static str {
        match self {
            ForgeError::NoRight { .. } => {
                "give the CI run's token the right to write comments and commit statuses; runs for forks have none"
            }
            ForgeError::BadToken { .. } => "put a token that is still valid into the CI run's secrets",
            ForgeError::NotFound { .. } => "check the repository, the number and the token's rights",
            ForgeError::Busy { .. } | ForgeError::Unreachable { .. } => "run it again later",
            ForgeError::Moved { .. } => {
                "pass the new name with `--repository`, or the new address with `--api`"
            }
            ForgeError::TooLong { .. } => "shorten the comment",
            ForgeError::TooManyComments { .. } => "open a new pull request",
            ForgeError::Unexpected { .. } => "check that `--api` is the address of the forge's API",
        }
    }

    /// Returns the next step after the failure.
    pub(super) fn retry(&self) -> Retry {
        match self {
            ForgeError::Busy { retry_after, .. } => Retry::of_busy(*retry_after),
            ForgeError::Unreachable { .. } => Retry::Soon,
            _ => Retry::Never,
        }
    }
}
