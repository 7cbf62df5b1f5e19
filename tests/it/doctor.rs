//! `berth doctor`: a setup is checked, and everything that is wrong is said at once.

use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};

use berth_forge::{Client, ForgeError, Given, Marker, State, Status, Token, environment};

use crate::signing::Keys;
use crate::support::gitea::{Gitea, User};
use crate::support::remote::{Fleet, Folder, Https, Plain, Server, Ssh};
use crate::support::wait::until;
use crate::support::{Ran, berth, config_map, hermetic, small_fleet};

/// The results of a run: level and message.
struct Told {
    code: i32,
    list: Vec<(String, String)>,
}

impl Told {
    fn of(command: &mut Command) -> Told {
        let ran = Ran::of(command.args(["-o", "json"]));
        let json: Json = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err));
        let text = |one: &Json, key: &str| one[key].as_str().expect("a text").to_owned();
        let findings = json["findings"].as_array().expect("a list");
        for one in findings {
            let is_wrong = ["warning", "fault"].contains(&one["level"].as_str().expect("a level"));
            assert!(!is_wrong || one["hint"].is_string(), "without a hint: {one}");
        }
        Told {
            code: ran.code,
            list: findings.iter().map(|one| (text(one, "level"), text(one, "message"))).collect(),
        }
    }

    /// Expects a result whose message has these words.
    #[track_caller]
    fn has(&self, level: &str, words: &str) -> &Told {
        let found = self.list.iter().any(|(at, message)| at == level && message.contains(words));
        assert!(found, "no {level} with `{words}`: {:#?}", self.list);
        self
    }

    /// Expects exactly so many results of a level.
    #[track_caller]
    fn counts(&self, level: &str, count: usize) -> &Told {
        let found = self.list.iter().filter(|(at, _)| at == level).count();
        assert_eq!(found, count, "{level}: {:#?}", self.list);
        self
    }
}

fn doctor(folder: &Path, role: &[&str], server: &dyn Server) -> Command {
    let mut command = berth();
    command.arg("doctor").args(role).args(server.access()).env("XDG_CACHE_HOME", folder.join("cache"));
    server.set_secrets(&mut command);
    command
}

const MEMBER: [&str; 3] = ["member", "--cluster", "a"];
const DOCTORS: &str = "refs/berth/doctor";

#[test]
fn an_open_server_lets_everybody_do_everything_and_nothing_of_it_is_done() {
    let fleet = Fleet::new();
    let plain = Plain::new(fleet.root());
    let folder = Folder::of(&fleet);
    fleet.run_once(&folder, &[]).expect(0);
    fleet.sync_once("a", &folder, &[]).expect(0);
    fleet.sync_once("c", &folder, &[]).expect(0);
    let before = fleet.bare(&["for-each-ref"]);
    for server in [&plain as &dyn Server, &folder] {
        let told = Told::of(&mut doctor(fleet.root(), &["daemon"], server));
        assert_eq!(told.code, 1);
        told.has("good", "may push to `berth/rendered`").has("good", "may replace `refs/berth/processed`");
        told.has("warning", "may push to `main`").has("warning", "may replace `berth/rendered`");
        told.has("warning", "may delete `berth/rendered`").has("warning", "nothing signs commits");
        told.counts("fault", 0);
        let told = Told::of(&mut doctor(fleet.root(), &MEMBER, server));
        assert_eq!(told.code, 1);
        told.has("fault", "may push to `berth/rendered`").has("fault", "may push to `main`");
        told.has("fault", "may replace `refs/berth/clusters/a`");
        told.has("fault", "may replace `refs/berth/status/c`, the report of another member");
        told.has("good", "may replace `refs/berth/status/a`").counts("fault", 4);
        let told = Told::of(&mut doctor(fleet.root(), &["reviewer"], server));
        told.counts("fault", 3).has("fault", "may replace `refs/berth/processed`");
        let told = Told::of(&mut doctor(fleet.root(), &["reviewer", "--no-push"], server));
        told.counts("fault", 0).has("not-known", "`--no-push` asks for none");
    }
    assert_eq!(fleet.bare(&["for-each-ref"]), before);
    fleet.bare(&["fsck", "--strict"]);
}

#[test]
fn a_repository_for_the_source_alone_is_one_to_read() {
    let (fleet, source) = (Fleet::new(), Fleet::new());
    let (server, url) = (Folder::of(&fleet), source.bare_path().display().to_string());
    let role = ["daemon", "--source-remote", &url];
    let told = Told::of(&mut doctor(fleet.root(), &role, &server));
    told.has("warning", "may push to `main`").has("good", "may push to `berth/rendered`");
    source
        .hook("pre-receive", "while read -r old new ref; do case $ref in refs/heads/*) exit 1;; esac; done");
    let told = Told::of(&mut doctor(fleet.root(), &role, &server));
    told.has("good", "may not push to `main`").counts("warning", 1).has("warning", "nothing signs commits");
}

/// A code block of the page on rights.
fn block(language: &str, with: &str) -> String {
    let page = include_str!("../../docs/rights.md");
    let mut blocks = page.split("```").skip(1).step_by(2);
    let block = blocks.find_map(|block| block.strip_prefix(language).filter(|text| text.contains(with)));
    block.expect("a block of the page").trim_start().to_owned()
}

#[test]
fn the_hook_of_the_page_gives_each_account_its_rights_and_no_others() {
    let fleet = Fleet::new();
    let Some(server) = Ssh::new(fleet.root()) else { return };
    let Some(keys) = Keys::new() else { return };
    let allowed = keys.allow(&[("berth", "namespaces=\"git\"")]);
    let (key, allowed) = (keys.path("berth").display().to_string(), allowed.display().to_string());
    let accounts = ["daemon", "member-a", "member-c", "person-ann", "reviewer"];
    let lines = block("text", "git-shell");
    let template = lines.lines().next().expect("a line");
    for account in accounts {
        let file = fleet.root().join(account);
        Ran::of(hermetic("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file)).expect(0);
        let public = std::fs::read_to_string(file.with_extension("pub")).expect("a key");
        let (command, _) = template.split_once(" ssh-ed25519").expect("a key's place");
        server.allow(&format!("{} {}", command.replace("=daemon", &format!("={account}")), public.trim()));
    }
    struct By<'a>(&'a Ssh, &'static str);
    impl Server for By<'_> {
        fn access(&self) -> Vec<String> {
            self.0.access_with(self.1, "known_hosts")
        }
        fn start(&mut self) {}
        fn stop(&mut self) {}
    }
    fleet.hook("pre-receive", block("sh", "while read").trim_start_matches("#!/bin/sh\n"));
    fleet.run_once(&By(&server, "daemon"), &["--signing-key", &key]).expect(0);
    for member in ["a", "c"] {
        let by = By(&server, if member == "a" { "member-a" } else { "member-c" });
        fleet.sync_once(member, &by, &["--allowed-signers", &allowed]).expect(0);
        assert!(fleet.has(&format!("refs/berth/status/{member}")), "{member} reports");
    }
    let before = fleet.bare(&["for-each-ref"]);
    let trust = ["--allowed-signers", &allowed];
    let role = [&["daemon", "--signing-key", &key][..], &trust].concat();
    let told = Told::of(&mut doctor(fleet.root(), &role, &By(&server, "daemon")));
    told.counts("fault", 0).counts("warning", 0).has("good", "may not push to `main`");
    told.has("good", "may not delete `berth/rendered`").has("good", "is signed by an allowed key");
    assert_eq!(told.code, 0);
    let role = [&MEMBER[..], &trust].concat();
    let told = Told::of(&mut doctor(fleet.root(), &role, &By(&server, "member-a")));
    told.counts("fault", 0).has("good", "may not replace `refs/berth/status/c`");
    told.has("good", "may replace `refs/berth/status/a`");
    assert_eq!(told.code, 0);
    let told = Told::of(&mut doctor(fleet.root(), &role, &By(&server, "member-c")));
    told.has("fault", "may replace `refs/berth/status/c`")
        .has("fault", "may not replace `refs/berth/status/a`");
    told.counts("fault", 2);
    let role = [&["reviewer"][..], &trust].concat();
    assert_eq!(Told::of(&mut doctor(fleet.root(), &role, &By(&server, "reviewer"))).code, 0);
    let told = Told::of(&mut doctor(fleet.root(), &role, &By(&server, "person-ann")));
    told.counts("fault", 1).has("fault", "may push to `main`");
    assert_eq!(fleet.bare(&["for-each-ref"]), before);
    assert!(!before.contains(DOCTORS));
}

#[test]
fn a_server_that_moves_refs_one_by_one_is_found_out_and_left_as_it_was() {
    let fleet = Fleet::new();
    fleet.run_once(&Folder::of(&fleet), &[]).expect(0);
    fleet.bare(&["config", "receive.advertiseAtomic", "false"]);
    let before = fleet.bare(&["for-each-ref"]);
    let told = Told::of(&mut doctor(fleet.root(), &["reviewer"], &Folder::of(&fleet)));
    told.has("not-known", "cannot move all refs of a push or none").counts("fault", 0);
    fleet.bare(&["config", "--unset", "receive.advertiseAtomic"]);
    fleet.hook(
        "pre-receive",
        "while read -r old new ref; do case $ref in refs/berth/doctor/*) exit 1;; esac; done",
    );
    let told = Told::of(&mut doctor(fleet.root(), &["reviewer"], &Folder::of(&fleet)));
    told.has("not-known", "does not let this account ask").counts("fault", 0);
    assert_eq!(fleet.bare(&["for-each-ref"]), before);
}

#[test]
fn wrong_credentials_and_servers_that_are_away_are_said_with_what_to_do() {
    let fleet = Fleet::new();
    let Some(mut server) = Https::new(fleet.root()) else { return };
    let told = Told::of(&mut doctor(fleet.root(), &["reviewer"], &server));
    told.has("warning", "everybody on this machine may read")
        .has("not-known", "whether this machine's clock");
    server.password = "wrong".to_owned();
    let told = Told::of(&mut doctor(fleet.root(), &["reviewer"], &server));
    assert_eq!(told.code, 6);
    told.has("fault", "refuses the credentials");
    server.stop();
    let told = Told::of(&mut doctor(fleet.root(), &["reviewer"], &server));
    assert_eq!(told.code, 6);
    told.has("fault", "cannot be reached");
}

#[test]
fn keys_files_and_addresses_are_checked() {
    use std::os::unix::fs::PermissionsExt as _;
    let fleet = Fleet::new();
    let Some(keys) = Keys::new() else { return };
    let server = Folder::of(&fleet);
    let path = |name: &str| keys.path(name).display().to_string();
    let check = |more: &[&str]| Told::of(&mut doctor(fleet.root(), &[&["daemon"], more].concat(), &server));
    let allow = |options: &str| keys.allow(&[("berth", options)]).display().to_string();
    let (berth, other) = (path("berth"), path("other"));
    let trust =
        |key: &str, options: &str| check(&["--signing-key", key, "--allowed-signers", &allow(options)]);
    trust(&other, "").has("fault", "which is not allowed: members refuse what it publishes");
    trust(&berth, "valid-before=\"20200101\"").has("fault", "which was valid until 2020-01-01T00:00:00Z");
    trust(&berth, "").has("good", "is allowed to sign");
    let soon = berth_base::model::Timestamp::now().as_second() + 24 * 3600;
    let soon = berth_base::model::Timestamp::from_second(soon).unwrap().to_string().replace(['-', ':'], "");
    let soon = format!("{}Z", soon.replace('T', "").get(..14).unwrap());
    trust(&berth, &format!("valid-before=\"{soon}\"")).has("warning", "is allowed until");
    fleet.run_once(&server, &["--signing-key", &other]).expect(0);
    trust(&berth, "").has("fault", "of `berth/rendered` is not trusted: it is signed by the key");

    std::fs::set_permissions(&berth, std::fs::Permissions::from_mode(0o644)).unwrap();
    trust(&berth, "").has("warning", "everybody on this machine may read");
    let secrets = fleet.root().join("secrets");
    std::fs::write(&secrets, "short\n").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || drop(listener.accept()));
    let told =
        check(&["--webhook", &taken, "--webhook-secret-file", secrets.to_str().unwrap(), "--metrics", "0"]);
    told.has("fault", "its line 1 is shorter").has("fault", "does not answer as webhooks of berth");
    told.has("good", "is free for the page of numbers");
}

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
        command.args(["--remote", &remote, "--allow-plain"]).env("BERTH_TOKEN", token);
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
        let file = self.folder.path().join("forge-token");
        std::fs::write(&file, token).expect("a file");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("rights");
        command.args(["--forge", "gitea", "--api", &self.gitea.api(), "--repository", &self.repository]);
        command.arg("--forge-token-file").arg(file);
        command
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
    let token = at.folder.path().join("status-token");
    std::fs::write(&token, at.gitea.token("member", &["write:repository"])).unwrap();
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
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
    let pull_request =
        environment::read(&variables, Some(&event), &Given::default()).expect("a pull request");
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
