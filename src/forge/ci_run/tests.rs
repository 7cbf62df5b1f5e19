use serde_json::{Value as Json, json};

use super::*;

const HEAD: &str = "1111111111111111111111111111111111111111";
const BASE: &str = "2222222222222222222222222222222222222222";
const MERGE: &str = "3333333333333333333333333333333333333333";

fn variables(values: &[(&str, &str)]) -> Variables {
    values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn with(mut variables: Variables, changes: &[(&str, &str)]) -> Variables {
    variables.extend(self::variables(changes));
    variables
}

fn github() -> Variables {
    variables(&[
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_API_URL", "https://api.github.com"),
        ("GITHUB_SERVER_URL", "https://github.com"),
        ("GITHUB_REPOSITORY", "acme/fleet"),
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_EVENT_PATH", "/home/runner/event.json"),
        ("GITHUB_REF", "refs/pull/7/merge"),
        ("GITHUB_SHA", MERGE),
        ("GITHUB_RUN_ID", "99"),
    ])
}

fn gitea() -> Variables {
    let own = [
        ("GITEA_ACTIONS", "true"),
        ("GITHUB_API_URL", "https://git.acme.example/api/v1/"),
        ("GITHUB_SERVER_URL", "https://git.acme.example"),
        ("GITHUB_REF", "refs/pull/7/head"),
        ("GITHUB_SHA", HEAD),
    ];
    with(github(), &own)
}

fn gitlab() -> Variables {
    variables(&[
        ("GITLAB_CI", "true"),
        ("CI_API_V4_URL", "https://gitlab.com/api/v4"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "36"),
        ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "36"),
        ("CI_MERGE_REQUEST_PROJECT_URL", "https://gitlab.com/acme/fleet"),
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "edit"),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", ""),
        ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", ""),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", BASE),
        ("CI_COMMIT_SHA", HEAD),
        ("CI_JOB_URL", "https://gitlab.com/acme/fleet/-/jobs/99"),
    ])
}

fn event(head_repository: &Json) -> String {
    let event = json!({"action": "synchronize", "number": 7, "pull_request": {
        "number": 7,
        "html_url": "https://github.com/acme/fleet/pull/7",
        "base": {"ref": "main", "sha": BASE, "repo": {"full_name": "acme/fleet"}},
        "head": {"ref": "edit", "sha": HEAD, "repo": head_repository},
    }});
    event.to_string()
}

fn own_event() -> String {
    event(&json!({"full_name": "acme/fleet"}))
}

fn read_with(variables: &Variables, event: &str) -> PullRequest {
    read(variables, Some(event), &Given::default()).expect("a pull request")
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn github_actions_name_a_pull_request_and_its_merge() {
    let read = read_with(&github(), &own_event());
    let expected = PullRequest {
        forge: Forge::GitHub,
        api: "https://api.github.com".to_owned(),
        repository: "acme/fleet".to_owned(),
        number: 7,
        base: "main".to_owned(),
        base_commit: some(BASE),
        head_commit: HEAD.to_owned(),
        head_branch: some("edit"),
        merge_commit: some(MERGE),
        is_fork: false,
        links: Links {
            pull_request: some("https://github.com/acme/fleet/pull/7"),
            repository: some("https://github.com/acme/fleet"),
            run: some("https://github.com/acme/fleet/actions/runs/99"),
        },
    };
    assert_eq!(read, expected);
    assert_eq!(event_file(&github()), Some("/home/runner/event.json"));
}

#[test]
fn pull_request_target_has_checked_out_the_base_and_no_merge() {
    let changes = [
        ("GITHUB_EVENT_NAME", "pull_request_target"),
        ("GITHUB_REF", "refs/heads/main"),
        ("GITHUB_SHA", BASE),
    ];
    let read = read_with(&with(github(), &changes), &own_event());
    assert_eq!((read.merge_commit, read.head_commit.as_str()), (None, HEAD));
}

#[test]
fn a_head_in_another_repository_or_in_none_is_a_fork() {
    for repository in [json!({"full_name": "mallory/fleet"}), json!(null)] {
        assert!(read_with(&github(), &event(&repository)).is_fork, "{repository}");
    }
}

#[test]
fn gitea_and_forgejo_are_told_from_github() {
    let read = read_with(&gitea(), &own_event());
    assert_eq!((read.forge, read.api.as_str()), (Forge::Gitea, "https://git.acme.example/api/v1"));
    // Gitea checks out the head.
    assert_eq!((read.merge_commit, read.links.run), (None, None));
    let forgejo = with(gitea(), &[("GITEA_ACTIONS", ""), ("FORGEJO_ACTIONS", "true")]);
    assert_eq!(forge_of(&forgejo), Some(Forge::Gitea));
}

#[test]
fn gitlab_has_the_head_in_one_of_two_variables() {
    let detached = read(&gitlab(), None, &Given::default()).expect("a merge request");
    let expected = PullRequest {
        forge: Forge::GitLab,
        api: "https://gitlab.com/api/v4".to_owned(),
        repository: "36".to_owned(),
        number: 7,
        base: "main".to_owned(),
        base_commit: None,
        head_commit: HEAD.to_owned(),
        head_branch: some("edit"),
        merge_commit: None,
        is_fork: false,
        links: Links {
            pull_request: some("https://gitlab.com/acme/fleet/-/merge_requests/7"),
            repository: some("https://gitlab.com/acme/fleet"),
            run: some("https://gitlab.com/acme/fleet/-/jobs/99"),
        },
    };
    assert_eq!(detached, expected);
    let changes = [
        ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", BASE),
        ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", HEAD),
        ("CI_COMMIT_SHA", MERGE),
        ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "37"),
    ];
    let merged = read(&with(gitlab(), &changes), None, &Given::default()).expect("a merge request");
    let expected =
        PullRequest { base_commit: some(BASE), merge_commit: some(MERGE), is_fork: true, ..expected };
    assert_eq!(merged, expected);
    assert_eq!(event_file(&gitlab()), None);
}

#[test]
fn each_forge_has_a_page_that_compares_two_branches() {
    let page = |read: &PullRequest, branch: &str| read.comparison("berth/rendered", branch);
    let github = read_with(&github(), &own_event());
    let compared = "https://github.com/acme/fleet/compare/berth/rendered...berth/preview/edit";
    assert_eq!(page(&github, "berth/preview/edit").as_deref(), Some(compared));
    let gitea = own_event().replace("github.com", "git.acme.example").replace("/pull/", "/pulls/");
    let compared = "https://git.acme.example/acme/fleet/compare/berth/rendered...a%23%29%5B%3C";
    assert_eq!(page(&read_with(&self::gitea(), &gitea), "a#)[<").as_deref(), Some(compared));
    let gitlab = read(&gitlab(), None, &Given::default()).expect("a merge request");
    let compared = "https://gitlab.com/acme/fleet/-/compare/berth/rendered...x";
    assert_eq!(page(&gitlab, "x").as_deref(), Some(compared));
}

#[test]
fn flags_replace_what_the_environment_says() {
    let given =
        Given { base: some("release"), base_commit: some(MERGE), number: Some(8), ..Given::default() };
    let read = read(&github(), Some(&own_event()), &given).expect("a pull request");
    assert_eq!((read.base.as_str(), read.base_commit, read.number), ("release", some(MERGE), 8));
    assert_eq!(read.head_commit, HEAD);
}

#[test]
fn flags_alone_are_enough() {
    let given = Given {
        forge: Some(Forge::GitHub),
        repository: some("acme/fleet"),
        number: Some(7),
        base: some("main"),
        head_commit: some(HEAD),
        ..Given::default()
    };
    let read_on = |variables: &Variables| read(variables, None, &given).expect("a pull request");
    assert_eq!(read_on(&Variables::new()).api, "https://api.github.com");
    // A run on another forge is ignored.
    assert_eq!(read_on(&gitlab()), read_on(&Variables::new()));
    let elsewhere = Given { forge: Some(Forge::Gitea), ..given };
    let error = read(&Variables::new(), None, &elsewhere).expect_err("no public Gitea");
    assert_eq!(error.to_string(), "the address of the forge's API is missing");
    assert_eq!(error.hint(), "pass `--api`");
}

#[test]
fn an_error_names_the_variable_and_the_way_out() {
    let push = json!({"ref": "refs/heads/main"}).to_string();
    let without = |mut variables: Variables, name: &str| {
        variables.remove(name);
        variables
    };
    for (variables, event, error, hint) in [
        (Variables::new(), None, "this is no CI run of GitHub, GitLab, Gitea or Forgejo", "--forge"),
        (
            github(),
            Some(push.as_str()),
            "the number of the pull request is missing: `GITHUB_EVENT_PATH` holds none",
            "run the workflow on `pull_request`, or pass `--pull-request`",
        ),
        (
            without(gitea(), "GITHUB_API_URL"),
            Some(&own_event()),
            "the address of the forge's API is missing: `GITHUB_API_URL` holds none",
            "--api",
        ),
        (
            without(gitlab(), "CI_MERGE_REQUEST_IID"),
            None,
            "the number of the pull request is missing: `CI_MERGE_REQUEST_IID` holds none",
            "merge_request_event",
        ),
        (
            github(),
            Some("{"),
            "the event in the file of `GITHUB_EVENT_PATH` is invalid: EOF",
            "--pull-request",
        ),
        (
            with(github(), &[("GITHUB_REPOSITORY", "acme/../x")]),
            Some(&own_event()),
            "the repository is `acme/../x`, not `owner/name`",
            "--repository",
        ),
        (
            with(gitlab(), &[("CI_COMMIT_SHA", "HEAD")]),
            None,
            "the head commit is `HEAD`, not a whole commit id",
            "--head",
        ),
        (
            with(gitlab(), &[("CI_API_V4_URL", "https://user:pw@gitlab.com?")]),
            None,
            "the address of the forge's API is `gitlab.com?`, not an address such as",
            "--api",
        ),
        (
            with(gitlab(), &[("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "--output=x")]),
            None,
            "the base branch is `--output=x`, not the name of a branch",
            "--base",
        ),
    ] {
        let found = read(&variables, event, &Given::default()).expect_err(error);
        assert!(found.to_string().starts_with(error), "{found}");
        assert!(found.hint().contains(hint), "{}", found.hint());
    }
}

#[test]
fn repositories_have_a_form_on_each_forge() {
    for (forge, text, is_right) in [
        (Forge::GitHub, "acme/fleet", true),
        (Forge::GitHub, "acme/team/fleet", false),
        (Forge::GitHub, "12", false),
        (Forge::GitLab, "12", true),
        (Forge::GitLab, "acme/team/fleet", true),
        (Forge::GitLab, "fleet", false),
        (Forge::Gitea, "acme/", false),
        (Forge::Gitea, "acme/a?b", false),
    ] {
        assert_eq!(is_repository(forge, text), is_right, "{forge} {text}");
    }
}

#[test]
fn the_first_token_that_is_set_counts() {
    let found = |forge, values: &[(&str, &str)]| token(&variables(values), forge);
    let plain = |secret| Some(Token::new(secret));
    let (berth, github) = (("BERTH_FORGE_TOKEN", "b"), ("GITHUB_TOKEN", "g"));
    assert_eq!(found(Forge::GitHub, &[github, berth]), plain("b"));
    assert_eq!(found(Forge::GitHub, &[github, ("BERTH_FORGE_TOKEN", "")]), plain("g"));
    assert_eq!(found(Forge::Gitea, &[github]), plain("g"));
    assert_eq!(found(Forge::GitLab, &[github]), None);
    let job = ("CI_JOB_TOKEN", "j");
    assert_eq!(found(Forge::GitLab, &[job]), Some(Token::of_job("j")));
    assert_eq!(found(Forge::GitLab, &[job, ("GITLAB_TOKEN", "l")]), plain("l"));
    assert_eq!(found(Forge::GitHub, &[job]), None);
}
