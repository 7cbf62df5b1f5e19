//! `berth doctor` at a real forge, and what docs/rights.md says of its accounts, tokens and rules.

use std::path::{Path, PathBuf};
use std::process::Command;

use berth_forge::{Client, ForgeError, Given, Marker, State, Status, Token, ci_run};
use serde_json::{Value as Json, json};

use crate::doctor::{MEMBER, Told};
use crate::signing::Keys;
use crate::support::gitea::{Gitea, User};
use crate::support::wait::until;
use crate::support::{Ran, berth, config_map, hermetic, small_fleet};

/// A fleet at a real Gitea, with an account for each role.
struct AtGitea {
    gitea: Gitea,
    owner: User,
    repository: String,
    folder: tempfile::TempDir,
    keys: Keys,
}

impl AtGitea {
    fn start() -> Option<AtGitea> {
        let keys = Keys::new()?;
        let gitea = Gitea::start()?;
        let owner = gitea.user("owner");
        let repository = gitea.repository(&owner, "fleet");
        gitea.push(&owner, &repository, small_fleet().path(), "HEAD:refs/heads/main");
        let folder = tempfile::tempdir().expect("a folder");
        Some(AtGitea { gitea, owner, repository, folder, keys })
    }

    /// Adds an account with a right to a repository, and returns a token with these scopes.
    fn account(&self, name: &str, repository: &str, right: &str, scopes: &[&str]) -> String {
        self.gitea.user(name);
        self.invite(name, repository, right);
        self.gitea.token(name, scopes)
    }

    fn invite(&self, name: &str, repository: &str, right: &str) {
        let path = format!("repos/{repository}/collaborators/{name}");
        self.gitea.call(&self.owner.token, "PUT", &path, Some(&json!({"permission": right})));
    }

    fn access(&self, command: &mut Command, repository: &str, token: &str) {
        let remote = format!("{}/{repository}.git", self.gitea.url);
        command.args(["--remote", &remote, "--allow-plain", "--token-file"]).arg(self.secret("token", token));
        command.env("XDG_CACHE_HOME", self.folder.path().join("cache"));
    }

    fn doctor(&self, role: &[&str], token: &str) -> Command {
        let mut command = berth();
        let allowed = self.keys.allow(&[("berth", "")]);
        command.arg("doctor").args(role).arg("--allowed-signers").arg(allowed);
        if role.contains(&"daemon") {
            command.arg("--signing-key").arg(self.keys.path("berth"));
        }
        self.access(&mut command, &self.repository, token);
        command
    }

    /// Lets it read the forge's rules with a token.
    fn asking(&self, mut command: Command, token: &str) -> Command {
        let file = self.secret("forge-token", token);
        command.args(["--forge", "gitea", "--api", &self.gitea.api(), "--repository", &self.repository]);
        command.arg("--forge-token-file").arg(file);
        command
    }

    /// A file that only its owner may read.
    fn secret(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("rights");
        file
    }

    fn run_once(&self, token: &str) -> Ran {
        let mut command = berth();
        command.args(["run", "--once", "--signing-key"]).arg(self.keys.path("berth"));
        self.access(&mut command, &self.repository, token);
        Ran::of(&mut command)
    }

    /// Protects a branch as the page says.
    fn protect(&self, rule: &Json) {
        let path = format!("repos/{}/branch_protections", self.repository);
        self.gitea.call(&self.owner.token, "POST", &path, Some(rule));
    }

    fn refs(&self) -> String {
        let remote = self.gitea.remote(&self.owner, &self.repository);
        Ran::of(hermetic("git").args(["ls-remote", &remote])).out
    }
}

#[test]
#[ignore = "needs Gitea"]
fn the_rights_and_rules_of_the_page_are_those_that_a_gitea_needs() {
    let Some(at) = AtGitea::start() else { return };
    let repository = at.repository.clone();
    let daemon = at.account("daemon", &repository, "write", &["write:repository"]);
    let writer = at.account("writer", &repository, "write", &["write:repository"]);
    let member = at.account("member", &repository, "read", &["read:repository"]);
    let reviewer =
        at.account("reviewer", &repository, "read", &["read:repository", "write:issue", "read:user"]);
    let rules = at.gitea.token(&at.owner.name, &["read:repository"]);
    at.run_once(&daemon).expect(0);
    let before = at.refs();

    // Without rules.
    let told = Told::of(&mut at.asking(at.doctor(&["daemon"], &daemon), &rules));
    assert_eq!(told.code, 1);
    told.has("warning", "may push to `main`").has("warning", "may delete `berth/rendered`");
    told.has("fault", "no rules for `berth/rendered`").has("fault", "no rules for `main`");
    let told = Told::of(&mut at.doctor(&MEMBER, &writer));
    told.has("fault", "may push to `berth/rendered`").has("fault", "may push to `main`");
    assert_eq!(at.refs(), before);

    // With those of the page.
    at.protect(&json!({"rule_name": "berth/**", "enable_push": true, "enable_push_whitelist": true,
        "push_whitelist_usernames": ["daemon"]}));
    at.protect(&json!({"rule_name": "main", "enable_push": false, "required_approvals": 1}));
    let told = Told::of(&mut at.asking(at.doctor(&["daemon"], &daemon), &rules));
    told.counts("fault", 0).counts("warning", 0);
    told.has("good", "only `daemon` may push to `berth/rendered`").has("good", "may not be force-pushed");
    told.has("good", "nobody may push to `main` without a review").has("good", "need approvals: 1");
    told.has("good", "may not delete `berth/rendered`").has("good", "clock agrees");
    assert_eq!(told.code, 0);
    at.run_once(&daemon).expect(0);
    let before = at.refs();
    // The rules are an administrator's to read.
    let told = Told::of(&mut at.asking(at.doctor(&["daemon"], &daemon), &daemon));
    told.counts("fault", 0).has("not-known", "this token may not read them");
    // Whoever may write can replace what is no branch.
    let told = Told::of(&mut at.doctor(&MEMBER, &writer));
    told.has("good", "may not push to `berth/rendered`").has("good", "may not push to `main`");
    told.has("fault", "may replace `refs/berth/clusters/a`").counts("fault", 2);
    // So members read there and report elsewhere.
    let reports = at.gitea.repository(&at.owner, "reports");
    at.gitea.push(&at.owner, &reports, small_fleet().path(), "HEAD:refs/heads/main");
    at.invite("member", &reports, "write");
    let token = at.secret("status-token", &at.gitea.token("member", &["write:repository"]));
    let mut command = at.doctor(&MEMBER, &member);
    command
        .args(["--status-remote", &format!("{}/{reports}.git", at.gitea.url), "--status-token-file"])
        .arg(&token);
    let told = Told::of(&mut command);
    told.has("good", "may not push to `berth/rendered`")
        .has("good", "may not replace `refs/berth/clusters/a`");
    told.has("good", "may replace `refs/berth/status/a`").has("warning", "the report of another member");
    told.counts("fault", 0);
    // The reviewer reads and comments.
    assert_eq!(Told::of(&mut at.doctor(&["reviewer"], &reviewer)).code, 0);
    assert_eq!(at.refs(), before);
}

#[test]
#[ignore = "needs Gitea"]
fn a_gitea_needs_a_review_and_lets_a_reviewer_comment_and_no_more() {
    let Some(at) = AtGitea::start() else { return };
    let (gitea, repository) = (&at.gitea, &at.repository);
    let daemon = at.account("daemon", repository, "write", &["write:repository"]);
    let approver = at.account("approver", repository, "write", &["write:repository", "write:issue"]);
    let scopes = ["read:repository", "write:issue", "read:user"];
    let reviewer = at.account("reviewer", repository, "read", &scopes);
    at.protect(&json!({"rule_name": "main", "enable_push": false, "required_approvals": 1}));
    at.protect(&json!({"rule_name": "berth/**", "enable_push": true, "enable_push_whitelist": true,
        "push_whitelist_usernames": ["daemon"]}));
    at.run_once(&daemon).expect(0);
    let edited = small_fleet();
    let clone = at.folder.path().join("clone");
    let remote = gitea.remote(&at.owner, repository);
    let git =
        |folder: &Path, arguments: &[&str]| Ran::of(hermetic("git").current_dir(folder).args(arguments));
    git(edited.path(), &["clone", "-q", &remote, clone.to_str().expect("a text path")]).expect(0);
    std::fs::write(clone.join("apps/web.yaml"), config_map("web", "two", "{clusterSelector: {}}"))
        .expect("a file");
    git(&clone, &["commit", "-qam", "two"]).expect(0);
    // Not even the owner pushes without a review, nor does anybody else write berth's branches.
    assert!(git(&clone, &["push", &remote, "HEAD:main"]).err.contains("protected branch"));
    assert!(git(&clone, &["push", &remote, "HEAD:berth/preview/x"]).err.contains("protected branch"));
    gitea.push(&at.owner, repository, &clone, "HEAD:refs/heads/edit");
    let number = gitea.pull_request(&at.owner, repository, "edit");

    let variables =
        [("GITEA_ACTIONS", "true"), ("GITHUB_API_URL", &gitea.api()), ("GITHUB_REPOSITORY", repository)];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let event = gitea.event(repository, number);
    let pull_request = ci_run::read(&variables, Some(&event), &Given::default()).expect("a pull request");
    let client = Client::new(&pull_request, Token::new(&reviewer));
    client.put_comment(&Marker::new(""), "1 cluster changes").expect("a comment");
    let status =
        client.set_status(&pull_request.head_commit, &Status::new(State::Success, "1 cluster changes"));
    assert!(matches!(status, Err(ForgeError::NoRight { .. })), "{status:?}");

    let merge = format!("repos/{repository}/pulls/{number}/merge");
    let merged = |token: &str| gitea.request(token, "POST", &merge, Some(&json!({"Do": "merge"})));
    assert!(merged(&at.owner.token).is_err(), "a merge without an approval");
    let review = format!("repos/{repository}/pulls/{number}/reviews");
    gitea.call(&approver, "POST", &review, Some(&json!({"event": "APPROVED", "body": "good"})));
    until("it is merged", || merged(&approver).is_ok());
    at.run_once(&daemon).expect(0);
    // A token that reads writes nothing, whatever its account may.
    let reading = gitea.token("approver", &["read:repository"]);
    assert_eq!(Told::of(&mut at.doctor(&["reviewer"], &reading)).code, 0);
}
