//! A client that maintains one comment on a pull request, and sets commit statuses.
//!
//! - [`api`]: the forges' requests, and the relevant parts of their answers; a commit's status. [`http`]: one request,
//!   within limits, and its failures. [`protection`]: the rules for a branch. This file: the comment, and the line
//!   that identifies it.
//!
//! Every step can be repeated: after a temporary failure the whole step runs again, and finds a comment that an
//! earlier attempt may have written.

mod api;
mod http;
mod protection;

use std::fmt::Write as _;

use crate::ci_run::{PullRequest, Repository};
use crate::token::Token;
use api::{Api, Comment};
use berth_base::backoff::Backoff;
use berth_http::{PAUSES, with_retries};

pub use api::{State, Status};
pub use http::ForgeError;
pub use protection::{Protection, Pushers};

/// GitHub's limit, used for all forges.
const MOST_CHARACTERS: usize = 65_536;

/// The API of a forge. It blocks its caller.
#[derive(Debug)]
pub struct Client {
    api: Api,
    pauses: Backoff,
}

/// The comment written by [`Client::put_comment`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutComment {
    pub written: Written,
    /// The address of the comment.
    pub url: Option<String>,
}

/// The change that the comment needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Created,
    Updated,
    Unchanged,
}

impl Client {
    /// Makes a client for a pull request, without connecting.
    pub fn new(pull_request: &PullRequest, token: Token) -> Client {
        let PullRequest { forge, api, repository, .. } = pull_request;
        let place = Repository { forge: *forge, api: api.clone(), name: repository.clone() };
        Client { api: Api::new(&place, Some(pull_request), token), pauses: PAUSES }
    }

    /// Makes a client for commit statuses only.
    pub fn of_repository(place: &Repository, token: Token) -> Client {
        Client { api: Api::new(place, None, token), pauses: PAUSES }
    }

    /// Returns the present tip of the pull request's branch. A run that began earlier may not know it.
    pub fn head_commit(&self) -> Result<String, ForgeError> {
        self.with_retries(|| self.api.head_commit())
    }

    /// Shows this Markdown in the pull request's comment with this marker.
    ///
    /// The comment must begin with the marker's line and belong to the token's user: a foreign comment that quotes
    /// the marker stays unchanged. If two simultaneous runs left several comments, the oldest is kept. Without the
    /// right to comment, fails with [`ForgeError::NoRight`].
    pub fn put_comment(&self, marker: &Marker, markdown: &str) -> Result<PutComment, ForgeError> {
        let body = marker.mark(markdown);
        let characters = body.chars().count();
        if characters > MOST_CHARACTERS {
            return Err(ForgeError::TooLong { characters, most: MOST_CHARACTERS });
        }
        self.with_retries(|| self.put(marker, &body))
    }

    fn put(&self, marker: &Marker, body: &str) -> Result<PutComment, ForgeError> {
        let marked = self.api.comments()?.into_iter().filter(|comment| marker.is_in(&comment.body));
        let marked: Vec<Comment> = marked.collect();
        // The user is only needed to judge existing comments.
        let user = if marked.is_empty() { None } else { Some(self.api.user()?) };
        let is_own =
            |comment: &Comment| user.as_ref().is_some_and(|user| user.eq_ignore_ascii_case(&comment.author));
        let mut own = marked.into_iter().filter(is_own);
        let Some(oldest) = own.next() else {
            let url = self.api.create_comment(body)?;
            return Ok(PutComment { written: Written::Created, url });
        };
        for duplicate in own {
            self.api.delete_comment(duplicate.id)?;
        }
        let written = if is_same(&oldest.body, body) {
            Written::Unchanged
        } else {
            self.api.update_comment(oldest.id, body)?;
            Written::Updated
        };
        Ok(PutComment { written, url: oldest.url })
    }

    /// Sets the status of a commit. It replaces the status of the same context. Without the right to do so, fails
    /// with [`ForgeError::NoRight`].
    pub fn set_status(&self, commit: &str, status: &Status) -> Result<(), ForgeError> {
        self.with_retries(|| self.api.set_status(commit, status))
    }

    /// Returns the rules for a branch, or `None` if it has none. Without the right to read them, fails with
    /// [`ForgeError::NoRight`] or [`ForgeError::NotFound`], as for a missing branch.
    pub fn protection(&self, branch: &str) -> Result<Option<Protection>, ForgeError> {
        self.with_retries(|| self.api.protection(branch))
    }

    fn with_retries<T>(&self, attempt: impl Fn() -> Result<T, ForgeError>) -> Result<T, ForgeError> {
        with_retries(self.pauses, attempt, ForgeError::retry)
    }
}

/// Compares two bodies. Forges change line endings and drop white space at the end.
fn is_same(one: &str, other: &str) -> bool {
    let lines = |text: &str| text.trim_end().replace("\r\n", "\n");
    lines(one) == lines(other)
}

/// A hidden first line of a comment. Its key distinguishes the comments of several fleets in one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// Makes a marker for a key, such as a fleet's path. The key may be any text, even an empty one.
    pub fn new(key: &str) -> Marker {
        let mut line = "<!-- berth review".to_owned();
        if !key.is_empty() {
            line.push(' ');
        }
        for byte in key.bytes() {
            // Escapes characters that could end the HTML comment or its line.
            if byte.is_ascii_alphanumeric() || b"-._/".contains(&byte) {
                line.push(char::from(byte));
            } else {
                let _ = write!(line, "%{byte:02X}");
            }
        }
        Marker(line + " -->")
    }

    /// Puts the marker's line before a text.
    fn mark(&self, markdown: &str) -> String {
        format!("{}\n{}", self.0, markdown)
    }

    /// Reports whether a comment begins with the marker's line.
    fn is_in(&self, body: &str) -> bool {
        body.lines().next().is_some_and(|line| line.trim_end() == self.0)
    }
}

#[cfg(test)]
mod tests;
