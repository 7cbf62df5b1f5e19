//! `berth doctor`: a setup is checked, and everything that is wrong is said at once.

use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use crate::signing::Keys;
use crate::support::registry::{PASSWORD, Registry, Shop, USER};
use crate::support::remote::{Fleet, Folder, Https, Plain, Server, Ssh};
use crate::support::{Ran, berth, hermetic, small_fleet};

/// The results of a run: level and message.
pub struct Told {
    pub code: i32,
    list: Vec<(String, String)>,
}

impl Told {
    pub fn of(command: &mut Command) -> Told {
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
    pub fn has(&self, level: &str, words: &str) -> &Told {
        let found = self.list.iter().any(|(at, message)| at == level && message.contains(words));
        assert!(found, "no {level} with `{words}`: {:#?}", self.list);
        self
    }

    /// Expects no result with these words.
    #[track_caller]
    pub fn lacks(&self, words: &str) -> &Told {
        assert!(!self.list.iter().any(|(_, message)| message.contains(words)), "`{words}`: {:#?}", self.list);
        self
    }

    /// Expects exactly so many results of a level.
    #[track_caller]
    pub fn counts(&self, level: &str, count: usize) -> &Told {
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

#[test]
fn without_a_remote_the_machine_and_the_repository_here_are_checked() {
    let repo = small_fleet();
    let here = |folder: &Path| {
        let mut command = berth();
        command.current_dir(folder).arg("doctor");
        Told::of(&mut command)
    };
    let told = here(&repo.path().join("apps"));
    told.has("good", "the source `main` is at")
        .has("not-known", "cannot check the signature of `berth/rendered`: not published");
    told.has("not-known", "the rights at a remote: none is named").has("warning", "commits are not signed");
    told.counts("fault", 0);
    assert_eq!(told.code, 1);
    repo.publish().expect(0);
    here(repo.path())
        .has("good", "the state berth/rendered number 1")
        .has("warning", "nothing says whose commits on `berth/rendered` are trusted");
    let empty = tempfile::tempdir().expect("a folder");
    let told = here(empty.path());
    told.has("fault", "is not a Git repository").has("warning", "commits are not signed");
    assert_eq!(told.code, 1);
}

pub const MEMBER: [&str; 3] = ["member", "--cluster", "a"];
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
        told.has("warning", "may delete `berth/rendered`").has("warning", "commits are not signed");
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
    told.has("good", "may not push to `main`").counts("warning", 1).has("warning", "commits are not signed");
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
    told.has("fault", "its line 1 is shorter").has("fault", "does not answer like webhooks of berth");
    told.has("good", "is free for the page of numbers");
}

#[test]
#[ignore = "needs a container registry"]
fn a_registry_is_reached_and_its_rights_are_those_of_the_role() {
    let Some(registry) = Registry::start_with_password() else { return };
    let shop = Shop::new();
    let url = format!("oci://{}/fleet", registry.host());
    let login = |password: &str| {
        let login = berth_base::text::base64::encode(format!("{USER}:{password}").as_bytes());
        let file = shop.fleet.root().join("config.json");
        let config = serde_json::json!({"auths": {registry.host(): {"auth": login}}});
        std::fs::write(&file, config.to_string()).expect("a file");
        file.display().to_string()
    };
    let file = login(PASSWORD);
    let server = Folder::of(&shop.fleet);
    let daemon = ["daemon", "--publish", &url, "--registry-auth", &file];
    // Before anything is published, and after it.
    let early = Told::of(&mut doctor(shop.fleet.root(), &daemon, &server));
    early.has("good", "may push to `127.0.0.1:").counts("fault", 0);
    shop.publish(&url, &["--registry-auth", &file]).expect(0);
    let tags = registry.tags("fleet/clusters/a");
    let told = Told::of(&mut doctor(shop.fleet.root(), &daemon, &server));
    told.has("good", "may pull from `127.0.0.1:").has("good", "/fleet/clusters/a`").counts("fault", 0);
    assert_eq!(registry.tags("fleet/clusters/a"), tags, "nothing is changed");
    let member = |cluster: &str| {
        let mut command = berth();
        command.args(["doctor", "member", "--cluster", cluster, "--remote", &url, "--registry-auth", &file]);
        Told::of(&mut command)
    };
    let told = member("a");
    told.has("good", "may pull").has("warning", "which the daemon writes").counts("fault", 0);
    told.has("warning", "nothing says whose commits on `refs/berth/clusters/a` are trusted");
    member("nobody").has("fault", "has no `refs/berth/clusters/nobody`");
    login("wrong");
    let told = Told::of(&mut doctor(shop.fleet.root(), &daemon, &server));
    told.has("fault", "denies access").counts("fault", 1);
    assert_eq!(told.code, 1);
}

#[test]
fn the_branches_of_clusters_that_others_apply_are_asked_about() {
    let fleet = Fleet::new();
    let server = Folder::of(&fleet);
    let told = Told::of(&mut doctor(fleet.root(), &["daemon"], &server));
    told.lacks("`berth/clusters/");
    let plain = crate::support::cluster("a", &[("env", "prod")]);
    let annotated = plain.replacen("metadata:", "metadata:\n  annotations: {berth.dev/applier: flux}", 1);
    fleet.people.write("clusters/a.yaml", annotated);
    fleet.people.commit("flux");
    fleet.push();
    // Before the first publication, by the inventory; later, by the branch.
    for _ in 0..2 {
        let told = Told::of(&mut doctor(fleet.root(), &["daemon"], &server));
        told.has("good", "may replace `berth/clusters/a`");
        fleet.run_once(&server, &[]).expect(0);
    }
    fleet.hook(
        "pre-receive",
        "while read -r old new ref; do case $ref in refs/heads/berth/clusters/*) exit 1;; esac; done",
    );
    let told = Told::of(&mut doctor(fleet.root(), &["daemon"], &server));
    told.has("fault", "may not replace `berth/clusters/a`");
}
