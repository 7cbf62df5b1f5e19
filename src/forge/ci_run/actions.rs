//! The variables of GitHub Actions, which Gitea and Forgejo set too, and the file of the event.

use serde::Deserialize;

use super::{EnvironmentError, Forge, Found, Given, Links, Variables, value};

pub(super) const EVENT_FILE: &str = "GITHUB_EVENT_PATH";

#[derive(Deserialize)]
struct Event {
    /// Missing in events without a pull request.
    pull_request: Option<EventPullRequest>,
}

#[derive(Deserialize)]
struct EventPullRequest {
    number: u64,
    html_url: Option<String>,
    base: Side,
    head: Side,
}

#[derive(Deserialize)]
struct Side {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
    /// `null` if the repository was deleted.
    repo: Option<EventRepository>,
}

#[derive(Deserialize)]
struct EventRepository {
    full_name: String,
}

pub(super) fn find(
    forge: Forge,
    variables: &Variables,
    event: Option<&str>,
) -> Result<Found, EnvironmentError> {
    let owned = |name: &str| value(variables, name).map(str::to_owned);
    let mut found = Found {
        values: Given {
            forge: Some(forge),
            api: owned("GITHUB_API_URL"),
            repository: owned("GITHUB_REPOSITORY"),
            ..Given::default()
        },
        links: Links { run: run_link(forge, variables), ..Links::default() },
        ..Found::default()
    };
    let Some(event) = event else { return Ok(found) };
    let event: Event =
        serde_json::from_str(event).map_err(|error| EnvironmentError::Event(error.to_string()))?;
    let Some(EventPullRequest { number, html_url, base, head }) = event.pull_request else {
        return Ok(found);
    };
    found.values.number = Some(number);
    found.values.merge_commit = merge_commit(forge, variables, number);
    found.is_fork = match (&base.repo, &head.repo) {
        (Some(base), Some(head)) => base.full_name != head.full_name,
        _ => true,
    };
    found.values.base = Some(base.branch);
    found.values.base_commit = Some(base.sha);
    found.values.head_commit = Some(head.sha);
    found.head_branch = Some(head.branch);
    // `…/pull/7` of GitHub, `…/pulls/7` of Gitea and Forgejo.
    let page = html_url.as_ref().and_then(|page| page.rsplit_once("/pull"));
    found.links.repository = page.map(|(repository, _)| repository.to_owned());
    found.links.pull_request = html_url;
    Ok(found)
}

/// Returns the merge commit that GitHub checks out for `pull_request`. For `pull_request_target` the variable
/// contains the base. Gitea and Forgejo make no such merge; there it contains the head.
fn merge_commit(forge: Forge, variables: &Variables, number: u64) -> Option<String> {
    let is_merge = forge == Forge::GitHub
        && value(variables, "GITHUB_EVENT_NAME") == Some("pull_request")
        && value(variables, "GITHUB_REF") == Some(&format!("refs/pull/{number}/merge"));
    value(variables, "GITHUB_SHA").filter(|_| is_merge).map(str::to_owned)
}

/// Returns the page of the run. Only for GitHub: versions of Gitea and Forgejo differ in the number in its address.
fn run_link(forge: Forge, variables: &Variables) -> Option<String> {
    let server = value(variables, "GITHUB_SERVER_URL").filter(|_| forge == Forge::GitHub)?;
    let repository = value(variables, "GITHUB_REPOSITORY")?;
    let run = value(variables, "GITHUB_RUN_ID")?;
    Some(format!("{server}/{repository}/actions/runs/{run}"))
}
