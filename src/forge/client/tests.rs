//! The documented requests of each forge, against a server on this machine.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::ci_run::{Forge, Links};
use crate::testing::{Answer, Recorder};

const MARKED: &str = "<!-- berth review north -->\nold";
const HEAD: &str = "1111111111111111111111111111111111111111";

fn pull_request(forge: Forge, api: &str) -> PullRequest {
    PullRequest {
        forge,
        api: api.to_owned(),
        repository: "acme/fleet".to_owned(),
        number: 7,
        base: "main".to_owned(),
        base_commit: None,
        head_commit: HEAD.to_owned(),
        head_branch: None,
        merge_commit: None,
        is_fork: false,
        links: Links { pull_request: Some("https://forge/mr/7".to_owned()), ..Links::default() },
    }
}

pub(super) fn client(forge: Forge, recorder: &Recorder) -> Client {
    client_with(forge, recorder, Token::new("s3cret"))
}

fn client_with(forge: Forge, recorder: &Recorder, token: Token) -> Client {
    let pauses = Backoff::new(Duration::ZERO, Duration::ZERO);
    Client { pauses, ..Client::new(&pull_request(forge, recorder.url()), token) }
}

fn put(client: &Client) -> Result<PutComment, ForgeError> {
    client.put_comment(&Marker::new("north"), "new")
}

fn github_comment(id: u64, login: &str, body: &str) -> serde_json::Value {
    json!({"id": id, "user": {"login": login, "type": "Bot"}, "body": body, "author_association": "NONE",
        "html_url": format!("https://github.com/acme/fleet/pull/7#issuecomment-{id}")})
}

fn viewer(login: &str) -> Answer {
    Answer::new(200, &json!({"data": {"viewer": {"login": login}}}))
}

const GITHUB_PAGE_1: &str = "GET /repos/acme/fleet/issues/7/comments?per_page=100&page=1";
const GITHUB_PAGE_2: &str = "GET /repos/acme/fleet/issues/7/comments?per_page=100&page=2";

#[test]
fn github_gets_a_comment_where_it_has_none() {
    let recorder = Recorder::script([
        (GITHUB_PAGE_1, Answer::new(200, &json!([github_comment(1, "ann", "looks good")]))),
        ("POST /repos/acme/fleet/issues/7/comments", Answer::new(201, &github_comment(2, "x", "y"))),
    ]);
    let put = put(&client(Forge::GitHub, &recorder)).expect("created");
    assert_eq!(put.written, Written::Created);
    assert_eq!(put.url.as_deref(), Some("https://github.com/acme/fleet/pull/7#issuecomment-2"));
    let requests = recorder.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].body, json!({"body": "<!-- berth review north -->\nnew"}));
    for request in requests {
        assert_eq!(request.header("accept"), "application/vnd.github+json");
        assert_eq!(request.header("x-github-api-version"), "2022-11-28");
        assert_eq!(request.header("authorization"), "Bearer s3cret");
        assert!(request.header("user-agent").starts_with("berth/"));
    }
}

#[test]
fn github_comments_of_all_pages_are_looked_at_and_duplicates_go() {
    let next =
        "<https://api.github.com/x?page=2>; rel=\"next\", <https://api.github.com/x?page=2>; rel=\"last\"";
    let first = json!([github_comment(1, "ann", MARKED), github_comment(2, "github-actions[bot]", MARKED)]);
    let second = json!([
        github_comment(3, "github-actions[bot]", "> quoted\n<!-- berth review north -->"),
        github_comment(4, "github-actions[bot]", "<!-- berth review south -->\nold"),
        github_comment(5, "github-actions[bot]", MARKED),
    ]);
    let recorder = Recorder::script([
        (GITHUB_PAGE_1, Answer::new(200, &first).header("link", next)),
        (GITHUB_PAGE_2, Answer::new(200, &second).header("link", &next.replace("next", "prev"))),
        ("POST /graphql", viewer("github-actions[bot]")),
        ("DELETE /repos/acme/fleet/issues/comments/5", Answer::new(204, &json!(null))),
        ("PATCH /repos/acme/fleet/issues/comments/2", Answer::new(200, &github_comment(2, "x", "y"))),
    ]);
    let put = put(&client(Forge::GitHub, &recorder)).expect("updated");
    assert_eq!(put.written, Written::Updated);
    assert_eq!(put.url.as_deref(), Some("https://github.com/acme/fleet/pull/7#issuecomment-2"));
    assert_eq!(recorder.requests().len(), 5);
    assert_eq!(recorder.requests()[4].body, json!({"body": "<!-- berth review north -->\nnew"}));
}

#[test]
fn an_equal_comment_is_not_written() {
    let sent = "<!-- berth review north -->\r\nnew\r\n";
    let recorder = Recorder::script([
        (GITHUB_PAGE_1, Answer::new(200, &json!([github_comment(2, "Ann", sent)]))),
        ("POST /graphql", viewer("ann")),
    ]);
    assert_eq!(put(&client(Forge::GitHub, &recorder)).expect("found").written, Written::Unchanged);
}

#[test]
fn a_comment_of_somebody_else_stays_and_ours_is_created_beside_it() {
    let recorder = Recorder::script([
        (GITHUB_PAGE_1, Answer::new(200, &json!([github_comment(1, "mallory", MARKED)]))),
        ("POST /graphql", viewer("github-actions[bot]")),
        ("POST /repos/acme/fleet/issues/7/comments", Answer::new(201, &github_comment(2, "x", "y"))),
    ]);
    assert_eq!(put(&client(Forge::GitHub, &recorder)).expect("created").written, Written::Created);
}

#[test]
fn githubs_own_servers_have_their_graphql_beside_version_3() {
    let recorder = Recorder::script([
        (
            "GET /api/v3/repos/acme/fleet/issues/7/comments?per_page=100&page=1",
            Answer::new(200, &json!([github_comment(1, "ann", MARKED)])),
        ),
        ("POST /api/graphql", viewer("ann")),
        ("PATCH /api/v3/repos/acme/fleet/issues/comments/1", Answer::new(200, &json!({}))),
    ]);
    let pull_request = pull_request(Forge::GitHub, &format!("{}/api/v3", recorder.url()));
    put(&Client::new(&pull_request, Token::new("s3cret"))).expect("updated");
}

#[test]
fn gitlab_gets_notes_and_a_pipeline_status() {
    let note =
        |id: u64, name: &str, body: &str| json!({"id": id, "author": {"username": name}, "body": body});
    let recorder = Recorder::script([
        (
            "GET /projects/acme%2Ffleet/merge_requests/7/notes?per_page=100&page=1&order_by=created_at&sort=asc",
            Answer::new(200, &json!([note(4, "ann", MARKED), note(5, "project_1_bot", MARKED)])),
        ),
        ("GET /user", Answer::new(200, &json!({"id": 1, "username": "project_1_bot", "name": "berth"}))),
        ("PUT /projects/acme%2Ffleet/merge_requests/7/notes/5", Answer::new(200, &note(5, "x", "y"))),
        (
            "POST /projects/acme%2Ffleet/statuses/1111111111111111111111111111111111111111",
            Answer::new(201, &json!({"id": 1})),
        ),
    ]);
    let client = client(Forge::GitLab, &recorder);
    let put = put(&client).expect("updated");
    assert_eq!((put.written, put.url.as_deref()), (Written::Updated, Some("https://forge/mr/7#note_5")));
    client.set_status(HEAD, &Status::new(State::Failure, "2 errors")).expect("set");
    let requests = recorder.requests();
    assert!(requests.iter().all(|request| request.header("private-token") == "s3cret"));
    assert_eq!(requests[2].body, json!({"body": "<!-- berth review north -->\nnew"}));
    assert_eq!(requests[3].body, json!({"state": "failed", "name": "berth", "description": "2 errors"}));
}

#[test]
fn gitlab_may_have_the_status_already() {
    let refusal = json!({"message": "Cannot transition status via :run from :running (Reason(s): …)"});
    let recorder = Recorder::start(move |_| Answer::new(400, &refusal));
    let status = Status::new(State::Pending, "");
    client(Forge::GitLab, &recorder).set_status(HEAD, &status).expect("as it is");
}

#[test]
fn a_job_token_of_gitlab_may_not_comment() {
    for status in [401, 403, 404] {
        let recorder = Recorder::start(move |_| Answer::new(status, &json!({"message": "no"})));
        let error =
            put(&client_with(Forge::GitLab, &recorder, Token::of_job("s3cret"))).expect_err("refused");
        assert!(matches!(error, ForgeError::NoRight { .. }), "{error:?}");
        let requests = recorder.requests();
        assert_eq!((requests.len(), requests[0].header("job-token")), (1, "s3cret"));
    }
}

#[test]
fn gitea_gets_all_comments_at_once() {
    let comment =
        json!([{"id": 3, "user": {"login": "bot", "username": "bot"}, "body": MARKED, "html_url": "u"}]);
    let recorder = Recorder::script([
        ("GET /repos/acme/fleet/issues/7/comments", Answer::new(200, &comment)),
        ("GET /user", Answer::new(200, &json!({"login": "bot", "username": "bot"}))),
        ("PATCH /repos/acme/fleet/issues/comments/3", Answer::new(200, &comment[0])),
        (
            "POST /repos/acme/fleet/statuses/1111111111111111111111111111111111111111",
            Answer::new(201, &json!({"id": 1})),
        ),
    ]);
    let client = client(Forge::Gitea, &recorder);
    let put = put(&client).expect("updated");
    client.set_status(HEAD, &Status::new(State::Error, "no verdict").link(put.url)).expect("set");
    let requests = recorder.requests();
    assert!(requests.iter().all(|request| request.header("authorization") == "token s3cret"));
    let body = json!({"state": "error", "context": "berth", "description": "no verdict", "target_url": "u"});
    assert_eq!(requests[3].body, body);
}

#[test]
fn a_forks_token_has_no_right() {
    let recorder = Recorder::script([
        (GITHUB_PAGE_1, Answer::new(200, &json!([]))),
        (
            "POST /repos/acme/fleet/issues/7/comments",
            Answer::new(403, &json!({"message": "Resource not accessible by integration"})),
        ),
    ]);
    let error = put(&client(Forge::GitHub, &recorder)).expect_err("refused");
    let reason = "Resource not accessible by integration (403)".to_owned();
    assert_eq!(error, ForgeError::NoRight { action: "write a comment", reason });
}

#[test]
fn what_may_pass_is_tried_again_from_the_start() {
    // The first comment was written, although the answer reports a failure.
    let recorder = Recorder::script([
        (GITHUB_PAGE_1, Answer::new(200, &json!([]))),
        ("POST /repos/acme/fleet/issues/7/comments", Answer::new(502, &json!(null)).text("<html>")),
        (GITHUB_PAGE_1, Answer::new(429, &json!({})).header("retry-after", "0")),
        (
            GITHUB_PAGE_1,
            Answer::new(200, &json!([github_comment(2, "ann", "<!-- berth review north -->\nnew")])),
        ),
        ("POST /graphql", viewer("ann")),
    ]);
    assert_eq!(put(&client(Forge::GitHub, &recorder)).expect("found").written, Written::Unchanged);
}

#[test]
fn tries_end() {
    let recorder = Recorder::start(|_| Answer::new(503, &json!({"message": "unicorn"})));
    let error = put(&client(Forge::GitHub, &recorder)).expect_err("busy");
    assert_eq!(error.to_string(), "github is busy, after several tries: unicorn (503)");
    assert_eq!(recorder.requests().len(), 4);
    let recorder = Recorder::start(|_| Answer::new(403, &json!({})).header("retry-after", "3600"));
    let error = put(&client(Forge::GitHub, &recorder)).expect_err("busy for long");
    assert!(matches!(error, ForgeError::Busy { .. }), "{error:?}");
    assert_eq!(recorder.requests().len(), 1);
    let recorder = Recorder::start(|_| Answer::new(403, &json!({})).header("x-ratelimit-remaining", "0"));
    assert!(matches!(put(&client(Forge::GitHub, &recorder)), Err(ForgeError::Busy { .. })));
}

#[test]
fn nothing_follows_a_redirect_with_the_token() {
    let other = Recorder::start(|_| Answer::new(200, &json!([])));
    let to = format!("{}/elsewhere", other.url());
    let location = to.clone();
    let recorder = Recorder::start(move |_| Answer::new(307, &json!({})).header("location", &location));
    let error = put(&client(Forge::GitHub, &recorder)).expect_err("moved");
    assert_eq!(error, ForgeError::Moved { forge: Forge::GitHub, to });
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn the_words_of_a_forge_are_one_harmless_line_without_the_token() {
    let words = format!("bad\u{1b}[2J s3cret\n{}", "x".repeat(500));
    let recorder = Recorder::start(move |_| Answer::new(401, &json!({"message": words})));
    let client = client(Forge::Gitea, &recorder);
    let error = put(&client).expect_err("refused");
    let shown = error.to_string();
    assert!(matches!(error, ForgeError::BadToken { .. }), "{shown}");
    assert!(shown.contains("bad\\u{1b}[2J …\\nxxx") && shown.len() < 300, "{shown}");
    assert!(!format!("{client:?}{error:?}").contains("s3cret"));
}

#[test]
fn other_answers_are_errors_that_say_what_came() {
    for (answer, expected) in [
        (
            Answer::new(404, &json!({})),
            "gitea knows no `repos/acme/fleet/issues/7/comments`, or hides it from this token",
        ),
        (Answer::new(200, &json!(null)).text("<html>"), "unexpected answer from gitea: invalid JSON"),
        (Answer::new(200, &json!({"id": 1})), "unexpected answer from gitea: invalid type: map"),
        (
            Answer::new(422, &json!({"message": {"body": ["is bad"]}})),
            "unexpected answer from gitea: {\"body\":[\"is bad\"]} (422)",
        ),
        (
            Answer::new(200, &json!(null)).text(&" ".repeat((16 << 20) + 1)),
            "unexpected answer from gitea: more than",
        ),
    ] {
        let recorder = Recorder::start(move |_| answer.clone());
        let error = put(&client(Forge::Gitea, &recorder)).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn too_long_a_comment_is_not_sent() {
    let recorder = Recorder::start(|_| Answer::new(200, &json!([])));
    let error = client(Forge::GitHub, &recorder).put_comment(&Marker::new(""), &"ä".repeat(65_520));
    let error = error.expect_err("too long").to_string();
    assert_eq!(error, "the comment has 65542 characters, and forges take 65536");
    assert_eq!(recorder.requests().len(), 0);
}

#[test]
fn comments_without_end_are_not_read_to_the_end() {
    let recorder = Recorder::start(|_| Answer::new(200, &json!([])).header("link", "<x>; rel=\"next\""));
    let error = put(&client(Forge::GitHub, &recorder)).expect_err("too many");
    assert_eq!(error, ForgeError::TooManyComments { most: 5_000 });
}

#[test]
fn a_server_that_is_not_there_is_unreachable() {
    let api = "http://127.0.0.1:1";
    let client = Client {
        pauses: Backoff::new(Duration::ZERO, Duration::ZERO),
        ..Client::new(&pull_request(Forge::GitLab, api), Token::new("s3cret"))
    };
    let error = client.set_status(HEAD, &Status::new(State::Success, "")).expect_err("unreachable");
    assert!(matches!(error, ForgeError::Unreachable { .. }), "{error:?}");
}

#[test]
fn each_forge_names_the_head_of_a_pull_request() {
    for (forge, line, answer) in [
        (Forge::GitHub, "GET /repos/acme/fleet/pulls/7", json!({"head": {"sha": HEAD}})),
        (Forge::Gitea, "GET /repos/acme/fleet/pulls/7", json!({"head": {"sha": HEAD}})),
        (Forge::GitLab, "GET /projects/acme%2Ffleet/merge_requests/7", json!({"sha": HEAD})),
    ] {
        let recorder = Recorder::script([(line, Answer::new(200, &answer))]);
        assert_eq!(client(forge, &recorder).head_commit().as_deref(), Ok(HEAD));
        let recorder = Recorder::script([(line, Answer::new(200, &json!({})))]);
        assert!(matches!(client(forge, &recorder).head_commit(), Err(ForgeError::Unexpected { .. })));
    }
}

#[test]
fn only_a_comment_that_begins_with_the_same_key_is_found() {
    let marker = Marker::new("fleets/north");
    assert_eq!(marker.mark("text"), "<!-- berth review fleets/north -->\ntext");
    assert!(marker.is_in("<!-- berth review fleets/north -->\r\ntext"));
    assert!(!marker.is_in("> <!-- berth review fleets/north -->\ntext"));
    assert!(!marker.is_in("Look:\n<!-- berth review fleets/north -->"));
    assert!(!Marker::new("fleets/nort").is_in(&marker.mark("")));
    assert!(!Marker::new("").is_in(&marker.mark("")));
    assert!(Marker::new("").is_in("<!-- berth review -->"));
}

#[test]
fn no_key_ends_the_line_or_the_comment_in_it() {
    let marker = Marker::new("a--> **b**\n<c>");
    assert_eq!(marker.0, "<!-- berth review a--%3E%20%2A%2Ab%2A%2A%0A%3Cc%3E -->");
}
