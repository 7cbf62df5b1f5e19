//! Comments and statuses on a real forge.

use berth_forge::{Client, ForgeError, Given, Marker, PullRequest, State, Status, Token, Written, ci_run};

use crate::support::gitea::{Gitea, User};
use crate::support::{Ran, hermetic};

/// A repository with a pull request, whose branch is the owner's own or a fork's.
struct Proposed {
    repository: String,
    number: u64,
}

fn git(folder: &std::path::Path, arguments: &[&str]) {
    let ran = Ran::of(hermetic("git").current_dir(folder).args(arguments));
    assert_eq!(ran.code, 0, "git {arguments:?}: {}", ran.err);
}

fn propose(gitea: &Gitea, owner: &User, author: &User) -> Proposed {
    let repository = gitea.repository(owner, &format!("fleet-of-{}", author.name));
    let folder = tempfile::tempdir().expect("a temporary folder");
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    git(folder.path(), &["commit", "--quiet", "--allow-empty", "--message=base"]);
    gitea.push(owner, &repository, folder.path(), "main");
    git(folder.path(), &["commit", "--quiet", "--allow-empty", "--message=edit"]);
    let is_fork = author.name != owner.name;
    let source = if is_fork { gitea.fork(author, &repository) } else { repository.clone() };
    gitea.push(author, &source, folder.path(), "HEAD:refs/heads/edit");
    let head = if is_fork { format!("{}:edit", author.name) } else { "edit".to_owned() };
    let number = gitea.pull_request(author, &repository, &head);
    Proposed { repository, number }
}

/// Reads the pull request as an Actions run of the forge would.
fn read(gitea: &Gitea, proposed: &Proposed) -> PullRequest {
    let variables = [
        ("GITEA_ACTIONS", "true"),
        ("GITHUB_API_URL", &gitea.api()),
        ("GITHUB_REPOSITORY", &proposed.repository),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let event = gitea.event(&proposed.repository, proposed.number);
    ci_run::read(&variables, Some(&event), &Given::default()).expect("a pull request")
}

#[test]
#[ignore = "needs Gitea"]
fn a_pull_request_has_one_comment_and_a_status() {
    let Some(gitea) = Gitea::start() else { return };
    let (owner, bot) = (gitea.user("owner"), gitea.user("bot"));
    let proposed = propose(&gitea, &owner, &owner);
    let Proposed { repository, number } = &proposed;
    let pull_request = read(&gitea, &proposed);
    assert_eq!((pull_request.base.as_str(), pull_request.is_fork), ("main", false));
    // Somebody quotes the whole of it.
    let quoted = serde_json::json!({"body": "<!-- berth review north -->\nfirst"});
    gitea.call(&bot.token, "POST", &format!("repos/{repository}/issues/{number}/comments"), Some(&quoted));

    let rights = ["write:issue", "write:repository", "read:user"];
    let client = Client::new(&pull_request, Token::new(&gitea.token(&owner.name, &rights)));
    let put = |key, text| client.put_comment(&Marker::new(key), text).expect("written");
    let first = put("north", "first");
    assert_eq!(first.written, Written::Created);
    assert_eq!(put("south", "other").written, Written::Created);
    let second = put("north", "second");
    assert_eq!((second.written, &second.url), (Written::Updated, &first.url));
    assert_eq!(put("north", "second").written, Written::Unchanged);
    let bodies: Vec<String> = gitea
        .comments(repository, *number)
        .iter()
        .map(|comment| comment["body"].as_str().unwrap().to_owned())
        .collect();
    let expected = [("north", "first"), ("north", "second"), ("south", "other")];
    assert_eq!(bodies, expected.map(|(key, text)| format!("<!-- berth review {key} -->\n{text}")));

    for (state, text) in [(State::Pending, "…"), (State::Failure, "2 errors")] {
        client
            .set_status(&pull_request.head_commit, &Status::new(state, text).link(first.url.clone()))
            .expect("set");
    }
    let statuses = gitea.statuses(repository, &pull_request.head_commit);
    assert_eq!(statuses.len(), 1, "{statuses:?}");
    assert_eq!((&statuses[0]["status"], &statuses[0]["context"]), (&"failure".into(), &"berth".into()));
    assert_eq!(statuses[0]["target_url"].as_str(), first.url.as_deref());
}

#[test]
#[ignore = "needs Gitea"]
fn a_token_without_rights_writes_nothing_to_a_forks_pull_request() {
    let Some(gitea) = Gitea::start() else { return };
    let (owner, stranger) = (gitea.user("owner"), gitea.user("stranger"));
    let proposed = propose(&gitea, &owner, &stranger);
    let pull_request = read(&gitea, &proposed);
    assert!(pull_request.is_fork);
    let status = Status::new(State::Success, "fine");
    // All may read; a stranger with every right of its own may comment, but not judge a commit.
    for (token, may_comment) in [
        (gitea.token(&stranger.name, &["read:issue", "read:repository", "read:user"]), false),
        (stranger.token.clone(), true),
    ] {
        let client = Client::new(&pull_request, Token::new(&token));
        let put = client.put_comment(&Marker::new(""), "text");
        if may_comment {
            assert_eq!(put.expect("written").written, Written::Created);
        } else {
            assert!(matches!(put, Err(ForgeError::NoRight { .. })), "{put:?}");
        }
        let set = client.set_status(&pull_request.head_commit, &status);
        assert!(matches!(set, Err(ForgeError::NoRight { .. })), "{set:?}");
    }
    let client = Client::new(&pull_request, Token::new("0123456789012345678901234567890123456789"));
    let set = client.set_status(&pull_request.head_commit, &status);
    assert!(matches!(set, Err(ForgeError::BadToken { .. })), "{set:?}");
    assert_eq!(gitea.comments(&proposed.repository, proposed.number).len(), 1);
    assert!(gitea.statuses(&proposed.repository, &pull_request.head_commit).is_empty());
}
