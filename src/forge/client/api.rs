//! The requests of each forge, and the relevant parts of their answers.
//!
//! GitHub: <https://docs.github.com/en/rest/issues/comments> and <https://docs.github.com/en/rest/commits/statuses>.
//! GitLab: <https://docs.gitlab.com/api/notes/#merge-requests> and
//! <https://docs.gitlab.com/api/commits/#set-commit-pipeline-status>. Gitea and Forgejo have GitHub's paths.
//!
//! A forge shows a commit's status at the commit and its pull request.

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::http::{ForgeError, Http, Method};
use crate::ci_run::{Forge, PullRequest, Repository};
use crate::token::Token;

/// The number of items on a page, the maximum of all forges.
const PAGE: usize = 100;
const MOST_PAGES: usize = 50;

const READ: &str = "read the pull request's comments";
const READ_HEAD: &str = "read the pull request";
const WRITE: &str = "write a comment";
const IDENTIFY: &str = "ask for the token's own user (in Gitea the scope `read:user`)";
const SET_STATUS: &str = "set a commit's status";

#[derive(Debug)]
pub(super) struct Api {
    http: Http,
    pub(super) forge: Forge,
    /// The path of the repository.
    repository: String,
    /// The path of the pull request's comments.
    comments: String,
    /// The path of the pull request.
    pull_request: String,
    /// The path prefix of a comment's id.
    comment: String,
    /// The path prefix of a commit.
    statuses: String,
    /// The address of GitHub's GraphQL API.
    graphql: String,
    /// The pull request's page.
    page: Option<String>,
    user: &'static str,
}

/// A comment on the pull request.
pub(super) struct Comment {
    pub id: u64,
    pub author: String,
    pub body: String,
    pub url: Option<String>,
}

/// A comment as the forges send it.
#[derive(Deserialize)]
struct SentComment {
    id: u64,
    body: Option<String>,
    #[serde(alias = "author")]
    user: Option<User>,
    html_url: Option<String>,
}

/// A user: GitHub has logins, GitLab names, Gitea both.
#[derive(Deserialize)]
struct User {
    login: Option<String>,
    username: Option<String>,
}

impl User {
    fn name(self) -> Option<String> {
        self.login.or(self.username)
    }
}

impl Api {
    pub fn new(place: &Repository, pull_request: Option<&PullRequest>, token: Token) -> Api {
        let Repository { forge, api, name: repository } = place;
        // Without a pull request, its paths are never used.
        let number = pull_request.map(|one| one.number).unwrap_or_default();
        let is_gitlab = *forge == Forge::GitLab;
        let repository = if is_gitlab {
            format!("projects/{}", repository.replace('/', "%2F"))
        } else {
            format!("repos/{repository}")
        };
        let (pull, comments, comment) = if is_gitlab {
            let pull = format!("{repository}/merge_requests/{number}");
            let comments = format!("{pull}/notes");
            (pull, comments.clone(), comments)
        } else {
            let (pull, comments) =
                (format!("{repository}/pulls/{number}"), format!("{repository}/issues/{number}/comments"));
            (pull, comments, format!("{repository}/issues/comments"))
        };
        let statuses = format!("{repository}/statuses");
        let user = if is_gitlab && token.is_of_job { "job" } else { "user" };
        // On GitHub Enterprise, the APIs are `/api/v3` and `/api/graphql`.
        let graphql = format!("{}/graphql", api.strip_suffix("/v3").unwrap_or(api));
        let page = pull_request.and_then(|one| one.links.pull_request.clone());
        let http = Http::new(*forge, api, token);
        Api {
            http,
            forge: *forge,
            repository,
            pull_request: pull,
            comments,
            comment,
            statuses,
            graphql,
            page,
            user,
        }
    }

    /// Reads a path below the repository's. `action` completes the message "no right to ...".
    pub fn read_of_repository(&self, path: &str, action: &'static str) -> Result<Json, ForgeError> {
        Ok(self.http.send(&Method::Get, &format!("{}/{path}", self.repository), action)?.json)
    }

    /// Returns the tip of the pull request's branch.
    pub fn head_commit(&self) -> Result<String, ForgeError> {
        let json = self.http.send(&Method::Get, &self.pull_request, READ_HEAD)?.json;
        let path = if self.forge == Forge::GitLab { "/sha" } else { "/head/sha" };
        let head = json.pointer(path).and_then(Json::as_str);
        head.map(str::to_owned).ok_or_else(|| self.http.unexpected("the pull request has no head"))
    }

    /// Lists the pull request's comments, oldest first.
    pub fn comments(&self) -> Result<Vec<Comment>, ForgeError> {
        let mut comments = Vec::new();
        for page in 1..=MOST_PAGES {
            let query = match self.forge {
                Forge::GitHub => format!("?per_page={PAGE}&page={page}"),
                Forge::GitLab => format!("?per_page={PAGE}&page={page}&order_by=created_at&sort=asc"),
                // Gitea sends all comments in one answer.
                Forge::Gitea => String::new(),
            };
            let answer = self.http.send(&Method::Get, &format!("{}{query}", self.comments), READ)?;
            let sent: Vec<SentComment> = self.parse(answer.json)?;
            comments.extend(sent.into_iter().map(|sent| self.comment(sent)));
            if !answer.has_next {
                return Ok(comments);
            }
        }
        Err(ForgeError::TooManyComments { most: MOST_PAGES * PAGE })
    }

    fn comment(&self, sent: SentComment) -> Comment {
        // GitLab's answer has no address of a note.
        let page = || self.page.as_ref().map(|page| format!("{page}#note_{}", sent.id));
        Comment {
            id: sent.id,
            author: sent.user.and_then(User::name).unwrap_or_default(),
            body: sent.body.unwrap_or_default(),
            url: sent.html_url.or_else(page),
        }
    }

    /// Returns the name of the user who owns the token's comments.
    ///
    /// On GitHub, `GET /user` refuses the tokens of Actions and Apps, whose comments belong to `github-actions[bot]`
    /// or the App's own bot. The GraphQL API's `viewer` is correct for every kind of token.
    pub fn user(&self) -> Result<String, ForgeError> {
        let name = if self.forge == Forge::GitHub {
            let query = json!({"query": "query { viewer { login } }"});
            let answer = self.http.send_to(&Method::Post(&query), &self.graphql, IDENTIFY)?;
            answer.json.pointer("/data/viewer/login").and_then(Json::as_str).map(str::to_owned)
        } else {
            let mut json = self.http.send(&Method::Get, self.user, IDENTIFY)?.json;
            let user = if self.user == "job" { json["user"].take() } else { json };
            self.parse::<User>(user)?.name()
        };
        name.ok_or_else(|| self.http.unexpected("the token's user has no name"))
    }

    /// Creates a comment and returns its page.
    pub fn create_comment(&self, body: &str) -> Result<Option<String>, ForgeError> {
        let body = json!({"body": body});
        let answer = self.http.send(&Method::Post(&body), &self.comments, WRITE)?;
        Ok(self.comment(self.parse(answer.json)?).url)
    }

    pub fn update_comment(&self, id: u64, body: &str) -> Result<(), ForgeError> {
        let body = json!({"body": body});
        let method = if self.forge == Forge::GitLab { Method::Put(&body) } else { Method::Patch(&body) };
        self.http.send(&method, &format!("{}/{id}", self.comment), WRITE).map(drop)
    }

    /// Deletes a comment, which may already be deleted.
    pub fn delete_comment(&self, id: u64) -> Result<(), ForgeError> {
        match self.http.send(&Method::Delete, &format!("{}/{id}", self.comment), WRITE) {
            Ok(_) | Err(ForgeError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub fn set_status(&self, commit: &str, status: &Status) -> Result<(), ForgeError> {
        let name = if self.forge == Forge::GitLab { "name" } else { "context" };
        let mut body = json!({
            "state": status.state.name(self.forge),
            name: status.context,
            "description": cut(&status.description, self.forge),
        });
        if let Some(link) = &status.link {
            body["target_url"] = json!(link);
        }
        match self.http.send(&Method::Post(&body), &format!("{}/{commit}", self.statuses), SET_STATUS) {
            // GitLab refuses to set a status to its present state.
            Err(ForgeError::Unexpected { reason, .. })
                if self.forge == Forge::GitLab && reason.contains("Cannot transition status") =>
            {
                Ok(())
            }
            answer => answer.map(drop),
        }
    }

    fn parse<T: for<'a> Deserialize<'a>>(&self, json: Json) -> Result<T, ForgeError> {
        serde_json::from_value(json).map_err(|error| self.http.unexpected(&error.to_string()))
    }
}

/// A commit's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub state: State,
    /// The name that identifies the status, and by which a rule can require it.
    pub context: String,
    /// One line, cut to the forge's limit.
    pub description: String,
    /// The page that the status links to.
    pub link: Option<String>,
}

/// A verdict on a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending,
    Success,
    /// The change is refused.
    Failure,
    /// No verdict was reached.
    Error,
}

impl Status {
    /// A status with the context `berth`.
    pub fn new(state: State, description: &str) -> Status {
        Status { state, context: "berth".to_owned(), description: description.to_owned(), link: None }
    }

    /// Adds the page that the status links to.
    #[must_use]
    pub fn link(self, link: Option<String>) -> Status {
        Status { link, ..self }
    }
}

impl State {
    pub(super) fn name(self, forge: Forge) -> &'static str {
        match (self, forge) {
            (State::Pending, _) => "pending",
            (State::Success, _) => "success",
            (State::Failure, Forge::GitHub | Forge::Gitea) => "failure",
            (State::Error, Forge::GitHub | Forge::Gitea) => "error",
            (State::Failure | State::Error, Forge::GitLab) => "failed",
        }
    }
}

/// Cuts a description to the forge's limit, with `…` as its last character.
fn cut(description: &str, forge: Forge) -> String {
    let most = match forge {
        Forge::GitHub => 140,
        Forge::GitLab | Forge::Gitea => 255,
    };
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_line_within_the_limit() {
        assert_eq!(cut("a\n b", Forge::GitHub), "a b");
        let long = "ä".repeat(300);
        for (forge, most) in [(Forge::GitHub, 140), (Forge::GitLab, 255)] {
            let text = cut(&long, forge);
            assert_eq!(text.chars().count(), most);
            assert!(text.ends_with("ä…"));
        }
        assert_eq!(cut(&"ä".repeat(140), Forge::GitHub), "ä".repeat(140));
    }
}
