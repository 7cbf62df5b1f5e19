//! `berth run --webhook`: a forge tells of a push, and the daemon looks at its remote. The daemons here poll once a day.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::support::deliveries::{Delivery, SECRET, SIGNING_KEY, github, pushes, send, signature, status};
use crate::support::gitea::{Gitea, User};
use crate::support::page::page;
use crate::support::remote::{Fleet, Folder, Running, Server};
use crate::support::wait::until;
use crate::support::{FASTER, RENDERED, Ran, berth, config_map, small_fleet};

/// A daemon that hears webhooks.
pub struct Listening {
    fleet: Fleet,
    daemon: Running,
    address: String,
    secrets: PathBuf,
    /// The edits so far.
    edits: u32,
}

impl Listening {
    pub fn start(secrets: &str) -> Listening {
        let fleet = Fleet::new();
        let server = Folder::of(&fleet);
        Listening::on(fleet, &server, secrets)
    }

    fn on(fleet: Fleet, server: &dyn Server, text: &str) -> Listening {
        let secrets = fleet.root().join("secrets");
        std::fs::write(&secrets, text).unwrap();
        let more = ["--webhook", "0", "--metrics", "0", "--webhook-secret-file", secrets.to_str().unwrap()];
        let daemon = Running::daemon_that_polls("86400", &fleet, server, &more);
        daemon.wait_for(&["\"pass done\""]);
        let address = address(&daemon, "listening for webhooks");
        Listening { fleet, daemon, address, secrets, edits: 0 }
    }

    pub fn edit(&mut self) {
        self.edits += 1;
        self.fleet.edit(&format!("edit {}", self.edits));
    }

    /// Reports whether the last edit is published.
    pub fn follows(&self) {
        let count = (self.edits + 1).to_string();
        until("the daemon follows", || self.fleet.bare(&["rev-list", "--count", RENDERED]) == count);
    }

    pub fn send(&self, delivery: &Delivery) -> Option<u16> {
        send(&self.address, delivery)
    }

    /// The number of deliveries of each fate, as the page of numbers says.
    pub fn count(&self, result: &str) -> u64 {
        let page = page(&address(&self.daemon, "serving /metrics"), "/metrics");
        let line = format!("berth_run_webhooks_total{{result=\"{result}\"}} ");
        let count = page.lines().find_map(|one| one.strip_prefix(&line));
        count.unwrap_or_else(|| panic!("no {line} in {page}")).parse().unwrap()
    }

    /// Asks the daemon to stop; gives its exit code and its log.
    pub fn stop(self) -> (i32, String) {
        self.daemon.stop()
    }

    /// The number of looks that webhooks caused.
    fn looks(&self) -> usize {
        self.daemon.log().matches("a webhook reported a push").count()
    }
}

fn address(daemon: &Running, words: &str) -> String {
    daemon.wait_for(&[words]);
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains(words)).expect("a line");
    let line: Json = serde_json::from_str(line).expect("JSON");
    line["address"].as_str().expect("an address").to_owned()
}

#[test]
fn a_push_is_followed_by_the_webhook_of_each_forge() {
    let signing = berth_base::text::base64::encode(SIGNING_KEY);
    let mut listening = Listening::start(&format!("{SECRET}\nwhsec_{signing}\n"));
    for (forge, delivery) in pushes() {
        listening.edit();
        assert_eq!(listening.send(&delivery), Some(202), "{forge}");
        listening.follows();
    }
    assert_eq!(listening.count("accepted"), 7);
    // The same again: all but the POST, which nothing tells apart from the next one.
    let again = pushes().into_iter().map(|(forge, delivery)| (forge, listening.send(&delivery)));
    let again: Vec<_> = again.filter(|(_, status)| *status != Some(200)).collect();
    let moved_on = |forge: &str| ["a plain POST", "GitLab with a signing token"].contains(&forge);
    assert!(again.iter().all(|(forge, status)| moved_on(forge) && *status == Some(202)), "{again:?}");
    assert_eq!(listening.daemon.stop().0, 0);
}

#[test]
fn strangers_replays_and_other_events_cause_no_look() {
    let mut listening = Listening::start(SECRET);
    for result in ["accepted", "ignored", "repeated", "unsigned", "too_large", "too_many"] {
        assert_eq!(listening.count(result), 0);
    }
    let push = github(SECRET, "push", "{\"after\": 1}");
    assert_eq!(listening.send(&push), Some(202));
    until("the daemon looks", || listening.looks() == 1);
    // Another id, or none, makes no other delivery of it.
    let mut fresh = push.clone();
    fresh.0.retain(|(name, _)| *name != "X-GitHub-Delivery");
    assert_eq!((listening.send(&push), listening.send(&fresh)), (Some(200), Some(200)));
    let mut changed = push.clone();
    changed.1.push(b' ');
    let unsigned = (vec![("X-GitHub-Event", "push".to_owned())], b"{}".to_vec());
    let old_hash = (vec![("X-Hub-Signature", "sha1=00".to_owned())], b"{}".to_vec());
    let token = (vec![("X-Gitlab-Token", format!("{SECRET}."))], b"{}".to_vec());
    let wrong = github("another secret of somebody", "push", "{}");
    for delivery in [&changed, &unsigned, &old_hash, &token, &wrong] {
        assert_eq!(listening.send(delivery), Some(401));
    }
    for event in ["ping", "pull_request", "issues"] {
        assert_eq!(listening.send(&github(SECRET, event, "{}")), Some(202));
    }
    for (request, expected) in [("GET / HTTP/1.1", 405), ("POST /metrics HTTP/1.1", 404)] {
        let mut stream = TcpStream::connect(&listening.address).expect("it listens");
        write!(stream, "{request}\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(status(stream), Some(expected), "{request}");
    }
    let counts = ["accepted", "repeated", "unsigned", "ignored"].map(|result| listening.count(result));
    assert_eq!(counts, [1, 2, 5, 3]);
    // Nothing of all this is waiting: the next push causes the second look.
    listening.edit();
    assert_eq!(listening.send(&github(SECRET, "push", "{\"after\": 2}")), Some(202));
    listening.follows();
    assert_eq!(listening.looks(), 2);
    let (_, log) = listening.daemon.stop();
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn a_long_body_is_cut_off_and_those_who_hold_the_line_are_sent_away() {
    let mut listening = Listening::start(SECRET);
    let most_memory = |listening: &Listening| -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", listening.daemon.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let before = most_memory(&listening);
    let head = |length: &str| {
        let claimed = signature(SECRET, b"");
        format!("POST / HTTP/1.1\r\nHost: x\r\nX-Gitea-Signature: {claimed}\r\n{length}\r\n\r\n")
    };
    let mut stream = TcpStream::connect(&listening.address).expect("it listens");
    stream.write_all(head("Content-Length: 104857600").as_bytes()).unwrap();
    assert_eq!(status(stream), Some(413));
    let mut stream = TcpStream::connect(&listening.address).expect("it listens");
    stream.write_all(head("Transfer-Encoding: chunked").as_bytes()).unwrap();
    let piece = [b"100000\r\n".to_vec(), vec![b'x'; 1 << 20], b"\r\n".to_vec()].concat();
    let taken = (0..100).take_while(|_| stream.write_all(&piece).is_ok()).count();
    assert!(taken < 60, "{taken} MiB");
    until("both are counted", || listening.count("too_large") == 2);
    if let (Some(before), Some(after)) = (before, most_memory(&listening)) {
        assert!(after - before < 16 << 10, "{before} kB, then {after} kB");
    }
    // More than there are places, and each begins and then says nothing.
    let idle: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(&listening.address).expect("it listens");
            let _ = stream.write_all(b"POST / HTTP/1.1\r\n");
            stream
        })
        .collect();
    listening.edit();
    let delivery = github(SECRET, "push", "{}");
    until("a place is free", || listening.send(&delivery) == Some(202));
    listening.follows();
    assert!(listening.count("too_many") > 0);
    drop(idle);
}

#[test]
fn a_thousand_deliveries_at_once_are_few_looks() {
    let mut listening = Listening::start(SECRET);
    let begun = Instant::now();
    let statuses: Vec<Option<u16>> = std::thread::scope(|scope| {
        let address = &listening.address;
        let begin = |thread: usize| {
            scope.spawn(move || -> Vec<Option<u16>> {
                let body = |number| format!("{{\"thread\": {thread}, \"number\": {number}}}");
                (0..250).map(|number| send(address, &github(SECRET, "push", &body(number)))).collect()
            })
        };
        let threads: Vec<_> = (0..4).map(begin).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let took = begun.elapsed().as_secs_f64();
    let accepted = statuses.iter().filter(|status| **status == Some(202)).count();
    assert!(accepted >= 100, "{accepted}");
    // Where it took longer, more of them are accepted.
    #[expect(clippy::cast_precision_loss, reason = "at most 1,000")]
    let is_bounded = accepted as f64 <= 101.0 + took * 50.0;
    assert!(is_bounded, "{accepted} in {took} s");
    assert!(statuses.iter().all(|status| matches!(status, Some(202 | 429) | None)), "{statuses:?}");
    listening.edit();
    until("one more is accepted", || listening.send(&github(SECRET, "push", "{}")) == Some(202));
    listening.follows();
    let bound = (begun.elapsed() * FASTER).as_secs() as usize + 2;
    assert!(listening.looks() <= bound, "{} looks, at most {bound}", listening.looks());
    assert_eq!(listening.fleet.bare(&["rev-list", "--count", RENDERED]), "2");
}

#[test]
fn secrets_change_while_the_daemon_runs() {
    let listening = Listening::start(SECRET);
    let new = "the secret that follows it";
    let mut number = 0;
    let mut answer = |secret: &str| {
        number += 1;
        listening.send(&github(secret, "push", &number.to_string()))
    };
    assert_eq!((answer(SECRET), answer(new)), (Some(202), Some(401)));
    std::fs::write(&listening.secrets, format!("{SECRET}\n{new}\n")).unwrap();
    assert_eq!((answer(SECRET), answer(new)), (Some(202), Some(202)));
    std::fs::write(&listening.secrets, new).unwrap();
    assert_eq!((answer(SECRET), answer(new)), (Some(401), Some(202)));
    std::fs::remove_file(&listening.secrets).unwrap();
    assert_eq!((answer(SECRET), answer(new)), (Some(503), Some(503)));
    listening.daemon.wait_for(&["webhooks are refused: their secrets cannot be used"]);
    std::fs::write(&listening.secrets, new).unwrap();
    assert_eq!(answer(new), Some(202));
}

#[test]
fn a_listener_needs_secrets_that_cannot_be_guessed() {
    let fleet = small_fleet();
    let run =
        |more: &[&str]| Ran::of(berth().args(["run", "--repo", fleet.arg(), "--webhook", "0"]).args(more));
    let ran = run(&[]).expect(2);
    assert!(ran.err.contains("--webhook-secret-file"), "{}", ran.err);
    fleet.write("short", "tiny\n");
    let file = fleet.path().join("short");
    let ran = run(&["--webhook-secret-file", file.to_str().unwrap()]).expect(2);
    assert!(ran.err.contains("line 1 is shorter than 16 characters"), "{}", ran.err);
    assert!(ran.err.contains("openssl rand -hex 32") && !ran.err.contains("tiny"), "{}", ran.err);
}

/// A repository at a real forge.
struct AtGitea<'a>(&'a Gitea, &'a User, &'a str);

impl Server for AtGitea<'_> {
    fn access(&self) -> Vec<String> {
        let AtGitea(gitea, user, repository) = self;
        let url = format!("{}/{repository}.git", gitea.url);
        ["--allow-plain", "--username", &user.name, "--remote", &url].map(str::to_owned).to_vec()
    }
    fn set_secrets(&self, command: &mut Command) {
        command.env("BERTH_TOKEN", &self.1.token);
    }
    fn start(&mut self) {}
    fn stop(&mut self) {}
}

#[test]
#[ignore = "needs Gitea"]
fn a_real_forge_wakes_the_daemon_and_the_daemons_own_pushes_do_not_go_on_for_ever() {
    let Some(gitea) = Gitea::start() else { return };
    let owner = gitea.user("owner");
    let repository = gitea.repository(&owner, "fleet");
    let fleet = Fleet::new();
    gitea.push(&owner, &repository, fleet.people.path(), "HEAD:refs/heads/main");
    let listening = Listening::on(fleet, &AtGitea(&gitea, &owner, &repository), SECRET);
    let config = json!({"url": format!("http://{}/webhook", listening.address), "content_type": "json",
        "secret": SECRET});
    let hook =
        json!({"type": "gitea", "active": true, "branch_filter": "*", "events": ["push"], "config": config});
    gitea.call(&owner.token, "POST", &format!("repos/{repository}/hooks"), Some(&hook));
    for number in 1..=2 {
        let value = format!("edit {number}");
        listening.fleet.people.write("apps/web.yaml", config_map("web", &value, "{clusterSelector: {}}"));
        listening.fleet.people.commit(&value);
        gitea.push(&owner, &repository, listening.fleet.people.path(), "HEAD:refs/heads/main");
        let published = || listening.daemon.log().matches("\"published\"").count() == number + 1;
        until("the daemon follows by the forge's own delivery", published);
        // The delivery of the daemon's own push.
        until("its push comes back", || listening.count("accepted") >= 2 * number as u64);
    }
    // Two pushes of people, two of the daemon: each caused at most one look, and the last one no push.
    assert!(listening.looks() <= 4, "{}", listening.daemon.log());
    assert_eq!(listening.count("unsigned"), 0);
    assert_eq!(listening.daemon.stop().0, 0);
}

#[test]
fn flux_calls_the_daemon_through_a_provider_and_an_alert() {
    let repo = small_fleet();
    let out = tempfile::tempdir().expect("a folder");
    let mut command = berth();
    command.args(["join", "oslo", "--dialect", "ocm", "--applier", "flux", "--repo", repo.arg()]);
    command.args(["--applier-source", "https://git.example.com/team/fleet.git", "--source-secret", "pull"]);
    command.args(["--webhook-url", "https://berth.example.com/webhook", "--webhook-secret", "berth-webhook"]);
    Ran::of(command.arg("--applier-out").arg(out.path())).expect(0);
    let text = std::fs::read_to_string(out.path().join("oslo.yaml")).expect("a file");
    for words in
        ["kind: Provider", "kind: Alert", "type: generic-hmac", "address: https://berth.example.com/webhook"]
    {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
}
