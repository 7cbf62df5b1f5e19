//! One request to a forge and its answer, within limits of time and size, or the failure of its API.
//! Redirects are not followed.

use std::time::Duration;

use serde_json::Value as Json;

use crate::ci_run::Forge;
use crate::token::Token;
use berth_http::Retry;
use berth_http::client::{
    self, Body, Client, ClientError, HeaderMap, PATIENCE, Request, Response, Roots, StatusCode, header,
    retry_after, short_line,
};

const LONGEST_ANSWER: u64 = 16 << 20;
/// The characters of a forge's message that are shown.
const LONGEST_MESSAGE: usize = 200;

pub(super) struct Http {
    client: Client,
    forge: Forge,
    api: String,
    headers: Vec<(&'static str, String)>,
    token: Token,
}

/// A request's method, with its body if it has one.
pub(super) enum Method<'a> {
    Get,
    Delete,
    Post(&'a Json),
    Patch(&'a Json),
    Put(&'a Json),
}

/// A successful answer.
pub(super) struct Answer {
    pub json: Json,
    /// Reports whether the forge has another page.
    pub has_next: bool,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("api", &self.api).finish_non_exhaustive()
    }
}

impl Http {
    pub fn new(forge: Forge, api: &str, token: Token) -> Http {
        let headers = headers(forge, &token);
        let client = Client::new(api, &Roots::default());
        Http { client, forge, api: api.to_owned(), headers, token }
    }

    /// Sends a request to a path below the API's address. `action` completes the message "no right to ...".
    pub fn send(&self, method: &Method<'_>, path: &str, action: &'static str) -> Result<Answer, ForgeError> {
        self.send_to(method, &format!("{}/{path}", self.api), action)
    }

    /// Sends a request to an address of the same forge.
    pub fn send_to(
        &self,
        method: &Method<'_>,
        url: &str,
        action: &'static str,
    ) -> Result<Answer, ForgeError> {
        let (name, body) = match method {
            Method::Get => ("GET", None),
            Method::Delete => ("DELETE", None),
            Method::Post(body) => ("POST", Some(body)),
            Method::Patch(body) => ("PATCH", Some(body)),
            Method::Put(body) => ("PUT", Some(body)),
        };
        let mut request = Request::builder().method(name).uri(url);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map(|body| body.to_string());
        let answer = self.client.send(request, body.as_deref().map(str::as_bytes), PATIENCE);
        self.read(answer.map_err(|error| self.failed(&error))?, url, action)
    }

    fn read(&self, answer: Response<Body>, url: &str, action: &'static str) -> Result<Answer, ForgeError> {
        let (parts, body) = answer.into_parts();
        let body = client::read(body, LONGEST_ANSWER).map_err(|error| self.failed(&error))?;
        let (status, headers) = (parts.status, &parts.headers);
        if status.is_success() {
            let json = if body.is_empty() { Ok(Json::Null) } else { serde_json::from_slice(&body) };
            let json = json.map_err(|error| self.unexpected(&format!("invalid JSON: {error}")))?;
            return Ok(Answer { json, has_next: has_next(headers) });
        }
        Err(self.refusal(status, headers, &body, url, action))
    }

    fn refusal(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        url: &str,
        action: &'static str,
    ) -> ForgeError {
        let forge = self.forge;
        let reason = self.reason(status, body);
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let retry_after = retry_after(headers);
        // GitHub answers 403 to a client that asks too often, with one of these headers.
        let is_limited = retry_after.is_some() || text("x-ratelimit-remaining") == Some("0");
        match status.as_u16() {
            403 if is_limited => ForgeError::Busy { forge, reason, retry_after },
            429 | 500 | 502..=504 => ForgeError::Busy { forge, reason, retry_after },
            403 => ForgeError::NoRight { action, reason },
            // GitLab uses any of these codes to refuse a job's token.
            401 | 404 if self.token.is_of_job => ForgeError::NoRight { action, reason },
            401 => ForgeError::BadToken { forge, reason },
            404 => {
                let path = url.strip_prefix(&self.api).unwrap_or(url).trim_start_matches('/');
                ForgeError::NotFound { forge, path: path.to_owned() }
            }
            301..=308 => ForgeError::Moved { forge, to: self.harmless(text("location").unwrap_or_default()) },
            _ => self.unexpected(&reason),
        }
    }

    /// Returns the status and the forge's own message.
    fn reason(&self, status: StatusCode, body: &[u8]) -> String {
        let json: Json = serde_json::from_slice(body).unwrap_or_default();
        let words = ["message", "error"].into_iter().find_map(|name| json.get(name));
        match words {
            Some(Json::String(words)) => self.harmless(&format!("{words} ({})", status.as_u16())),
            Some(words) => self.harmless(&format!("{words} ({})", status.as_u16())),
            None => status.to_string(),
        }
    }

    /// Makes one short line without the token from a text of the forge.
    fn harmless(&self, text: &str) -> String {
        short_line(&self.token.secret.hide_in(text), LONGEST_MESSAGE)
    }

    pub fn unexpected(&self, reason: &str) -> ForgeError {
        ForgeError::Unexpected { forge: self.forge, reason: self.harmless(reason) }
    }

    fn failed(&self, error: &ClientError) -> ForgeError {
        let reason = self.harmless(&error.to_string());
        match error {
            ClientError::Unreachable(_) => ForgeError::Unreachable { api: self.api.clone(), reason },
            ClientError::Malformed(_) | ClientError::TooLong(_) => {
                ForgeError::Unexpected { forge: self.forge, reason }
            }
        }
    }
}

fn headers(forge: Forge, token: &Token) -> Vec<(&'static str, String)> {
    let secret = token.secret.reveal();
    match forge {
        Forge::GitHub => vec![
            ("accept", "application/vnd.github+json".to_owned()),
            ("x-github-api-version", "2022-11-28".to_owned()),
            ("authorization", format!("Bearer {secret}")),
        ],
        Forge::GitLab => {
            let name = if token.is_of_job { "job-token" } else { "private-token" };
            vec![("accept", "application/json".to_owned()), (name, secret.to_owned())]
        }
        Forge::Gitea => {
            vec![("accept", "application/json".to_owned()), ("authorization", format!("token {secret}"))]
        }
    }
}

/// Reports whether a `Link` header names a next page.
fn has_next(headers: &HeaderMap) -> bool {
    let links = headers.get_all(header::LINK);
    links.iter().filter_map(|value| value.to_str().ok()).any(|value| value.contains("rel=\"next\""))
}

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
