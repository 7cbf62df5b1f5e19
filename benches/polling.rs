//! A Git server and a container registry with the same fleet: an edit on 10 of 1,000 clusters, and all members polling for
//! an hour, once a minute. Requests and bytes are counted by a gate in front of each server, processor time by the
//! system. `cargo bench --bench polling`; `-- 1000 60 3` for 1,000 clusters, an hour of a registry's polls and three minutes
//! of Git's. As a test, a small fleet.
//!
//! The servers are `git http-backend` and distribution, over http and without a login. The polls are made back to back by
//! the member's own code. A poll of Git starts a `git` on the member's machine, which here is the server's. So the first
//! minute's requests to Git are sent again in the others, as they were.

#![allow(clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used, clippy::panic, dead_code)]

#[path = "../tests/archive/mod.rs"]
mod archive;
mod size;
#[allow(unused_imports)]
#[path = "../tests/it/support/mod.rs"]
mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use berth_git::shared_refs::Refs;
use berth_git::transport::credentials::Token;
use berth_git::transport::{self, Cancel, GitTransport, Limits, RemoteUrl, Transport, WorkingCopy};
use berth_member::sync::remote::MemberRemote;
use berth_registry::{Access, Credentials, Registry as Client, RegistryTransport, RegistryUrl};
use support::registry::{Asked, Gate, Registry, call};
use support::remote::{Fleet, Https, Running, Server};
use support::wait::PAUSE;
use support::{Repo, cluster, config_map, namespace};

/// The clusters that the edit concerns.
const EDITED: usize = 10;
/// The members that poll at once.
const AT_ONCE: usize = 4;
/// The time that a publication may take.
const LONGEST: Duration = Duration::from_secs(1_800);
const FIRST: &str = "{clusterSelector: {matchLabels: {ring: first}}}";

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let usual =
        if std::env::args().any(|arg| arg == "--bench") { size::of((1_000, 60), (50, 0)) } else { (12, 1) };
    let (clusters, minutes) =
        (numbers.first().copied().unwrap_or(usual.0), numbers.get(1).copied().unwrap_or(usual.1));
    let Some(registry) = Registry::start() else { return };
    let fleet = Fleet::of(fleet_of(clusters));
    let Some(git) = Https::open_to_all(fleet.root()) else { return };
    let bed = Bed {
        to_git: Gate::to(git.port),
        daemon_to_git: Gate::to(git.port),
        to_registry: Gate::to(registry.port),
        names: (0..clusters).map(name).collect(),
        fleet,
        git,
        registry,
    };
    bed.measure(minutes, numbers.get(2).copied().unwrap_or(minutes));
}

fn git_url(gate: &Gate) -> String {
    format!("http://{}/fleet.git", gate.host())
}

fn name(at: usize) -> String {
    format!("m{at:04}")
}

/// Ten small objects in every cluster, and one more in the first ten.
fn fleet_of(count: usize) -> Repo {
    let ring = |at: usize| if at < EDITED { "first" } else { "later" };
    let clusters: String = (0..count).map(|at| cluster(&name(at), &[("ring", ring(at))]) + "---\n").collect();
    let base: String = (0..10)
        .map(|at| config_map(&format!("base-{at}"), "one", "{clusterSelector: {}}") + "---\n")
        .collect();
    Repo::with(&[
        ("clusters/all.yaml", &clusters),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", FIRST)),
        ("apps/base.yaml", &base),
    ])
}

/// Both servers, each behind its gate.
struct Bed {
    fleet: Fleet,
    git: Https,
    registry: Registry,
    to_git: Gate,
    /// The daemon's own gate, so that its looks at the source are told from the members'.
    daemon_to_git: Gate,
    to_registry: Gate,
    names: Vec<String>,
}

/// The daemon's flags for the Git server.
struct At(String);

impl Server for At {
    fn access(&self) -> Vec<String> {
        vec!["--remote".to_owned(), self.0.clone(), "--allow-plain".to_owned()]
    }
    fn start(&mut self) {}
    fn stop(&mut self) {}
}

impl Bed {
    fn registry_url(&self) -> String {
        format!("oci://{}/fleet", self.to_registry.host())
    }

    fn measure(&self, minutes: usize, minutes_of_git: usize) {
        let count = self.names.len();
        println!("{count} clusters, {} of them edited", EDITED.min(count));
        let url = self.registry_url();
        let more = ["--publish", &url, "--max-removed-clusters", "100%"];
        let daemon = Running::daemon(&self.fleet, &At(git_url(&self.daemon_to_git)), &more);
        let (git, registry) = self.publication(count);
        show("first publication", &git, &registry);

        let mut by_git: Vec<MemberRemote> = self.names.iter().map(|name| self.git_member(name)).collect();
        let mut by_registry: Vec<MemberRemote> =
            self.names.iter().map(|name| self.registry_member(name)).collect();
        fetch_all(&mut by_git, true);
        fetch_all(&mut by_registry, true);
        show("all members, from nothing", &self.to_git.take(), &self.to_registry.take());

        self.fleet.people.write("apps/web.yaml", config_map("web", "two", FIRST));
        self.fleet.people.commit("an edit");
        self.fleet.push();
        let (git, registry) = self.publication(EDITED.min(count));
        show("publication of the edit", &git, &registry);
        let (code, log) = daemon.stop();
        assert_eq!(code, 0, "{log}");

        let edited = EDITED.min(count);
        fetch_all(&mut by_git[..edited], true);
        fetch_all(&mut by_registry[..edited], true);
        show("the edited members fetch it", &self.to_git.take(), &self.to_registry.take());

        let polls = |polled: usize| format!("{} polls, nothing new", polled * count);
        let (before, mut sum) = (own_time(self.registry.pid()), Sum::default());
        for _ in 0..minutes {
            fetch_all(&mut by_registry, false);
            sum.add(&self.to_registry.take());
        }
        let took = own_time(self.registry.pid()) - before;
        println!("{:<30} registry: {sum}, {took:.1} s of processor time", polls(minutes));
        let (before, mut sum) = (children_time(self.git.pid()), Sum::default());
        let mut first = Vec::new();
        for polled in 1..=minutes_of_git {
            if polled == 1 {
                fetch_all(&mut by_git, false);
                first = self.to_git.take();
                sum.add(&first);
            } else {
                ask_again(self.to_git.port, &first);
                sum.add(&self.to_git.take());
            }
            // Whoever has not the time for all of them sees what a poll costs.
            if polled == 1 || polled % 5 == 0 || polled == minutes_of_git {
                let took = children_time(self.git.pid()) - before;
                println!("{:<30} Git: {sum}, {took:.1} s of `git http-backend`", polls(polled));
            }
        }
    }

    /// Waits until the registry has so many folders more. Returns the pushes to Git, and all requests to the registry.
    fn publication(&self, folders: usize) -> (Vec<Asked>, Vec<Asked>) {
        let is_pointer = |asked: &&Asked| asked.method == "PUT" && asked.path.ends_with("/manifests/member");
        let (mut registry, mut quiet, start) = (Vec::new(), 0, Instant::now());
        // The last answers are counted once nothing more is asked.
        while registry.iter().filter(is_pointer).count() < folders || quiet < 40 {
            assert!(start.elapsed() < LONGEST, "the registry has not got the folders");
            std::thread::sleep(PAUSE);
            let more = self.to_registry.take();
            quiet = if more.is_empty() { quiet + 1 } else { 0 };
            registry.extend(more);
        }
        let pushed =
            self.daemon_to_git.take().into_iter().filter(|asked| asked.path.contains("git-receive-pack"));
        (pushed.collect(), registry)
    }

    fn copy(&self, of: &str, name: &str, remote: &dyn std::fmt::Display) -> WorkingCopy {
        WorkingCopy::open(&self.fleet.root().join(of).join(name), remote).expect("a working copy")
    }

    fn git_member(&self, name: &str) -> MemberRemote {
        let url = RemoteUrl::parse(&git_url(&self.to_git), true).expect("an address");
        let copy = self.copy("by-git", name, &url);
        let access = transport::Access {
            url,
            username: None,
            token: Token::None,
            ca_file: None,
            proxy: None,
            ssh_key: None,
            known_hosts: None,
            timeout: Duration::from_secs(60),
            stall: Duration::from_secs(30),
            limits: Limits::default(),
        };
        let transport = GitTransport::new(access, Cancel::default()).within(&copy).expect("a working copy");
        member(Box::new(transport), copy, name)
    }

    fn registry_member(&self, name: &str) -> MemberRemote {
        let url = RegistryUrl::parse(&self.registry_url()).expect("an address");
        let access = Access { credentials: Credentials::of(None), roots: Default::default(), plain: true };
        let client = Client::new(&url, &access);
        let copy = self.copy("by-registry", name, &url);
        let transport =
            RegistryTransport::new(&client, &Refs::default(), name, Limits::default(), Cancel::default());
        member(Box::new(transport), copy, name)
    }
}

fn member(transport: Box<dyn Transport>, copy: WorkingCopy, name: &str) -> MemberRemote {
    MemberRemote::new(transport, copy, Refs::default(), name, false)
}

/// Does something with each, a few at once.
fn for_each<T: Send>(all: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    let mut left: Vec<T> = all.into_iter().collect();
    let part = left.len().div_ceil(AT_ONCE);
    std::thread::scope(|scope| {
        while !left.is_empty() {
            let these = left.split_off(left.len().saturating_sub(part));
            scope.spawn(|| these.into_iter().for_each(&work));
        }
    });
}

/// Lets each member fetch once.
fn fetch_all(members: &mut [MemberRemote], is_new: bool) {
    for_each(members, |member| {
        assert_eq!(member.fetch().expect("a fetch"), is_new, "{}", member.path().display());
    });
}

/// Sends requests once more, each over a connection of its own, and expects answers of the same status.
fn ask_again(port: u16, requests: &[Asked]) {
    for_each(requests, |asked| {
        let of_connection = ["host", "connection", "content-length"];
        let headers = asked.headers.iter().filter(|(name, _)| !of_connection.contains(&name.as_str()));
        let headers: Vec<_> = headers.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let answer = call(port, &asked.method, &asked.path, &headers, &asked.body);
        assert_eq!(answer.expect("an answer").status, asked.status, "{}", asked.path);
    });
}

#[derive(Default)]
struct Sum {
    requests: usize,
    bytes: usize,
}

impl Sum {
    fn add(&mut self, asked: &[Asked]) {
        self.requests += asked.len();
        self.bytes += asked.iter().map(|asked| asked.sent + asked.received).sum::<usize>();
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} requests, {} bytes", self.requests, self.bytes)
    }
}

fn show(what: &str, git: &[Asked], registry: &[Asked]) {
    let [mut by_git, mut by_registry] = [Sum::default(), Sum::default()];
    by_git.add(git);
    by_registry.add(registry);
    println!("{what:<30} Git: {by_git}   registry: {by_registry}");
}

/// The seconds of processor time that a process has used itself.
fn own_time(pid: u32) -> f64 {
    ticks(pid, 11)
}

/// The seconds of processor time of its children that have ended, and of theirs.
fn children_time(pid: u32) -> f64 {
    ticks(pid, 13)
}

fn ticks(pid: u32, first: usize) -> f64 {
    let text =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).expect("a process");
    let (_, fields) = text.rsplit_once(')').expect("a name");
    let fields = fields.split_whitespace().skip(first).take(2);
    fields.map(|field| field.parse::<u32>().expect("a number")).map(f64::from).sum::<f64>() / 100.0
}
