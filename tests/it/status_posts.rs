//! Statuses by POST: members that may push nothing, daemons that gather what they send into one commit, and strangers.

use std::path::Path;

use berth_base::model::Timestamp;
use berth_base::status::read_status;
use berth_git::shared_refs::{Refs, read_statuses};
use berth_member::sync::status as member_status;

use crate::support::page::page;
use crate::support::remote::{Fleet, Folder, Plain, Running, Ssh};
use crate::support::status_posts::{
    MemberKey, STATUSES, daemon, kept, kept_of, listens_at, post, request, signers_file, status,
};
use crate::support::wait::until;
use crate::support::{Ran, berth, hermetic};

/// A fleet whose members have keys and no right to push.
struct World {
    fleet: Fleet,
    keys: Vec<MemberKey>,
}

impl World {
    fn new() -> World {
        let fleet = Fleet::new();
        fleet.hook("update", "case $1 in refs/berth/status/*) echo no right >&2; exit 1;; esac");
        let keys: Vec<MemberKey> =
            ["a", "b", "c"].iter().map(|cluster| MemberKey::new(fleet.root(), cluster)).collect();
        let lines: String = keys.iter().map(|key| key.line(&key.cluster)).collect();
        std::fs::write(signers_file(&fleet), lines).unwrap();
        World { fleet, keys }
    }

    fn server(&self) -> Folder {
        Folder::of(&self.fleet)
    }

    /// A daemon that takes statuses by now, and its address.
    fn daemon(&self, poll: &str, more: &[&str]) -> (Running, String) {
        let daemon = daemon("daemon", poll, &self.fleet, &self.server(), more);
        let address = listens_at(&daemon);
        self.takes(&address);
        (daemon, address)
    }

    /// Waits until statuses are taken. What is asked is refused then, without a trace.
    fn takes(&self, address: &str) {
        until("statuses are taken", || self.keys[0].post(address, "kind: Nothing\n").0 == 400);
    }

    fn member(&self, index: usize, address: &str, more: &[&str]) -> Running {
        self.member_with(&self.keys[index].file, index, address, more)
    }

    fn member_with(&self, key: &Path, index: usize, address: &str, more: &[&str]) -> Running {
        let url = format!("http://{address}/status");
        let own = ["--status-post", &url, "--allow-plain", "--status-key", key.to_str().unwrap()];
        let cluster = &self.keys[index].cluster;
        Running::member(&self.fleet, cluster, &self.server(), &[&own, more].concat())
    }

    fn report(&self) -> serde_json::Value {
        if !self.fleet.has("refs/berth/report") {
            return serde_json::Value::Null;
        }
        serde_json::from_str(&self.fleet.bare(&["show", "refs/berth/report:report.json"])).unwrap()
    }
}

fn number(daemon: &Running, name: &str) -> u64 {
    let page = page(&daemon.address("serving /metrics"), "/metrics");
    let line = format!("{name} ");
    page.lines().find_map(|one| one.strip_prefix(&line)).expect("a number").parse().unwrap()
}

fn count(daemon: &Running, result: &str) -> u64 {
    number(daemon, &format!("berth_run_statuses_total{{result=\"{result}\"}}"))
}

fn silent(daemon: &Running) -> u64 {
    number(daemon, "berth_members{state=\"silent\"}")
}

#[test]
fn members_that_may_not_push_report_and_every_command_sees_it() {
    let world = World::new();
    // Nothing but the statuses wakes the daemon.
    let (daemon, address) = world.daemon("86400", &[]);
    let members: Vec<Running> = (0..3).map(|index| world.member(index, &address, &[])).collect();
    until("all report", || world.report()["totals"]["in sync"] == 3);
    assert_eq!(kept(&world.fleet).len(), 3);
    assert_eq!(world.fleet.bare(&["for-each-ref", "refs/berth/status/"]), "");
    // A clone as CI makes it.
    let clone = world.fleet.root().join("clone");
    let git = |args: &[&str]| Ran::of(hermetic("git").args(args)).expect(0);
    let (from, to) = (world.fleet.bare_path(), clone.to_str().unwrap());
    git(&["clone", "-q", from.to_str().unwrap(), to]);
    git(&["-C", to, "fetch", "-q", "origin", "+refs/berth/*:refs/berth/*"]);
    let ran = |args: &[&str]| Ran::of(berth().args(args).args(["--repo", to]));
    let shown = ran(&["status"]).expect(0).out;
    assert!(shown.contains("shop/web   3/3"), "{shown}");
    ran(&["verify"]).expect(0);
    let planned = ran(&["plan"]).expect(0);
    assert!(!planned.err.contains("statuses"), "{}", planned.err);
    for running in members.into_iter().chain([daemon]) {
        let (code, log) = running.stop();
        assert_eq!(code, 0, "{log}");
        assert!(!log.contains("\"WARN\"") && !log.contains("\"ERROR\""), "{log}");
    }
    world.fleet.bare(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn nobody_speaks_for_another_cluster_and_an_old_status_never_wins() {
    let world = World::new();
    let stranger = MemberKey::new(world.fleet.root(), "stranger");
    let wide = MemberKey::new(world.fleet.root(), "wide");
    let for_git = MemberKey::new(world.fleet.root(), "git");
    let late = MemberKey::new(world.fleet.root(), "late");
    let lines: String = world.keys.iter().map(|key| key.line(&key.cluster)).collect();
    let more = [
        wide.line("*"),
        for_git.line("b").replace("berth-status", "git"),
        late.line("b").replace(" namespaces", " valid-before=\"20200101\",namespaces"),
    ];
    std::fs::write(signers_file(&world.fleet), lines + &more.concat()).unwrap();
    let (first, address) = world.daemon("1", &[]);
    let [a, b, _] = &world.keys[..] else { panic!("three keys") };
    let refused = |sent: (u16, String), code: u16, words: &str| {
        assert!(sent.0 == code && sent.1.contains(words), "{sent:?}, not {code} {words}");
    };
    let (of_a, of_b) = (status("a", "one", 0), status("b", "one", 0));
    refused(a.post(&address, &of_b), 403, "which does not speak for `b`");
    refused(stranger.post(&address, &of_a), 401, "is not known here");
    refused(post(&address, None, &of_a), 401, "`berth-signature` is missing, repeated or unreadable");
    refused(post(&address, Some("c2ln"), &of_a), 401, "cannot be read");
    refused(post(&address, Some(&a.sign(&of_a)), &status("a", "two", 0)), 401, "does not match its content");
    refused(for_git.post(&address, &of_b), 403, "which is not allowed to sign statuses");
    refused(late.post(&address, &of_b), 403, "which was valid until 2020-01-01");
    refused(wide.post(&address, &status("d", "one", 0)), 403, "the fleet has no cluster `d`");
    refused(a.post(&address, "kind: ConfigMap\n"), 400, "its kind is not `ClusterStatus`");
    let undated = "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {name: a}\n";
    refused(a.post(&address, undated), 400, "its field `reported` is missing");
    refused(a.post(&address, &status("a", "one", 3_600)), 409, "its clock is 3");
    assert_eq!(kept(&world.fleet), Vec::<String>::new());

    let (old, new) = (status("a", "old", -60), status("a", "new", -30));
    assert_eq!(a.post(&address, &old), (204, String::new()));
    assert_eq!(a.post(&address, &new), (204, String::new()));
    assert_eq!(kept_of(&world.fleet, "a"), new.trim_end());
    // The same again is well; the one before it, or another of the same second, is not.
    assert_eq!(a.post(&address, &new), (204, String::new()));
    refused(a.post(&address, &old), 409, "is already known, and this one is of");
    refused(a.post(&address, &new.replace("new", "odd")), 409, "is already known, and this one is of");
    assert_eq!(b.post(&address, &of_b), (204, String::new()));
    let counts = ["kept", "known", "untimely", "refused", "unsigned"].map(|result| count(&first, result));
    assert_eq!(counts, [3, 1, 3, 4, 4]);
    assert_eq!(first.stop().0, 0);

    // A daemon on an empty disk knows no less.
    let second = daemon("second", "1", &world.fleet, &world.server(), &[]);
    let address = listens_at(&second);
    world.takes(&address);
    refused(a.post(&address, &old), 409, "is already known, and this one is of");
    assert_eq!(a.post(&address, &new), (204, String::new()));
    // A key that is taken out speaks no more, and a key that comes in does.
    let lines = stranger.line("a") + &b.line("b");
    std::fs::write(signers_file(&world.fleet), lines).unwrap();
    refused(a.post(&address, &status("a", "newer", 0)), 401, "is not known here");
    assert_eq!(stranger.post(&address, &status("a", "newer", 0)).0, 204);
    std::fs::write(signers_file(&world.fleet), "nonsense").unwrap();
    refused(b.post(&address, &status("b", "newer", 0)), 503, "the keys cannot be read");
    second.wait_for(&["statuses are refused: the file of their signers cannot be used"]);
    // While it runs, it writes: a check would see a commit before its tree.
    second.stop();
    world.fleet.bare(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn what_is_sent_is_bounded_and_one_member_is_not_heard_without_end() {
    let world = World::new();
    let (daemon, address) = world.daemon("1", &[]);
    let a = &world.keys[0];
    let head = |more: &str| {
        let signature = a.sign("x");
        request(
            &address,
            &format!("POST /status HTTP/1.1\r\nHost: x\r\nBerth-Signature: {signature}\r\n{more}\r\n\r\n"),
        )
    };
    assert_eq!(head("Content-Length: 2000000").0, 413);
    assert_eq!(head("Transfer-Encoding: chunked").0, 411);
    assert_eq!(request(&address, "GET /status HTTP/1.1\r\nHost: x\r\n\r\n").0, 405);
    assert_eq!(request(&address, "POST /webhook HTTP/1.1\r\nHost: x\r\n\r\n").0, 404);
    let sent: Vec<u16> = std::thread::scope(|scope| {
        let address = &address;
        let one = |index: i64| scope.spawn(move || a.post(address, &status("a", "x", index - 200)).0);
        let all: Vec<_> = (0..40).map(one).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let kept = sent.iter().filter(|code| [204, 409].contains(*code)).count();
    assert!((10..20).contains(&kept) && sent.iter().all(|code| [204, 409, 429].contains(code)), "{sent:?}");
    assert!(count(&daemon, "too_many") >= 20, "{sent:?}");
    assert_eq!(daemon.stop().0, 0);
}

#[test]
fn who_cannot_report_goes_on_applying_and_reports_once_it_can() {
    let world = World::new();
    let (daemon, address) = world.daemon("1", &[]);
    let a = world.member(0, &address, &[]);
    until("a status is kept", || kept(&world.fleet) == ["a.yaml"]);
    // A key that does not count is told of once.
    let b = world.member_with(&world.keys[2].file, 1, &address, &[]);
    b.wait_for(&["refuses the status", "does not speak for `b`"]);
    // The remote takes no statuses.
    world.fleet.hook("pre-receive", "! grep -q refs/berth/statuses");
    world.fleet.edit("two");
    daemon.wait_for(&["members' statuses cannot be stored"]);
    a.wait_for(&["cannot take the status now: the status cannot be stored now (503)"]);
    until("a follows", || world.fleet.value("a").as_deref() == Some("two"));
    until("b follows", || world.fleet.value("b").as_deref() == Some("two"));
    world.fleet.hook("pre-receive", "exit 0");
    until("a reports what it has", || kept_of(&world.fleet, "a").contains("sequence: 2"));
    daemon.wait_for(&["members' statuses are stored again"]);
    // Without a daemon, too.
    assert_eq!(daemon.stop().0, 0);
    world.fleet.edit("three");
    world.fleet.run_once(&world.server(), &[]).expect(0);
    until("a follows", || world.fleet.value("a").as_deref() == Some("three"));
    a.wait_for(&["cannot be reached"]);
    let again = Running::daemon_in(
        "daemon",
        "1",
        &world.fleet,
        &world.server(),
        &["--status-listen", &address, "--status-signers", signers_file(&world.fleet).to_str().unwrap()],
    );
    until("a reports what it has", || kept_of(&world.fleet, "a").contains("sequence: 3"));
    assert_eq!(kept(&world.fleet), ["a.yaml"]);
    let (code, log) = b.stop();
    assert_eq!((code, log.matches("refuses the status").count()), (0, 1), "{log}");
    assert_eq!(again.stop().0, 0);
}

#[test]
fn a_member_that_stops_sending_falls_silent_and_a_cluster_that_leaves_is_forgotten() {
    let world = World::new();
    let (daemon, address) = world.daemon("1", &[]);
    let a = world.member(0, &address, &["--heartbeat", "3"]);
    let c = world.member(2, &address, &["--heartbeat", "3"]);
    until("both report", || kept(&world.fleet).len() == 2);
    assert_eq!(a.stop().0, 0);
    until("a is silent", || silent(&daemon) == 1);
    // It comes back, and counts as heard again.
    let a = world.member(0, &address, &["--heartbeat", "3"]);
    until("a is heard", || silent(&daemon) == 0);
    assert_eq!(c.stop().0, 0);
    std::fs::remove_file(world.fleet.people.path().join("clusters/c.yaml")).unwrap();
    world.fleet.people.commit("without c");
    world.fleet.push();
    until("its status is gone", || kept(&world.fleet) == ["a.yaml"]);
    let sent = world.keys[2].post(&address, &status("c", "x", 0));
    assert_eq!((sent.0, sent.1.contains("the fleet has no cluster `c`")), (403, true), "{sent:?}");
    drop((a, daemon));
}

#[test]
fn a_daemon_that_stands_by_asks_to_try_again_and_two_without_a_lease_lose_nothing() {
    let world = World::new();
    let server = Plain::new(world.fleet.root());
    let standby = ["--standby", "git", "--lease-duration", "8"];
    let first = daemon("first", "1", &world.fleet, &server, &standby);
    let leads = listens_at(&first);
    world.takes(&leads);
    let second = daemon("second", "1", &world.fleet, &server, &standby);
    second.wait_for(&["another daemon holds the lease"]);
    let waits = listens_at(&second);
    let a = &world.keys[0];
    let sent = a.post(&waits, &status("a", "one", -20));
    assert_eq!((sent.0, sent.1.trim()), (503, "another daemon publishes"));
    assert_eq!(a.post(&leads, &status("a", "one", -20)).0, 204);
    assert_eq!(first.stop().0, 0);
    until("the other takes over", || a.post(&waits, &status("a", "two", 0)).0 == 204);
    assert!(kept_of(&world.fleet, "a").contains("berth.dev/is: two"));
    assert_eq!(second.stop().0, 0);

    // Two that race for the ref.
    let both = ["third", "fourth"].map(|name| daemon(name, "1", &world.fleet, &server, &[]));
    let addresses = both.each_ref().map(listens_at);
    addresses.iter().for_each(|address| world.takes(address));
    std::thread::scope(|scope| {
        for (key, address) in world.keys[1..].iter().zip(&addresses) {
            scope.spawn(move || {
                for round in 0..4 {
                    let status = status(&key.cluster, &format!("round-{round}"), round - 10);
                    until("it is kept", || key.post(address, &status).0 == 204);
                }
            });
        }
    });
    for cluster in ["b", "c"] {
        assert!(kept_of(&world.fleet, cluster).contains("berth.dev/is: round-3"), "{cluster}");
    }
    assert_eq!(kept(&world.fleet).len(), 3);
}

#[test]
fn of_a_cluster_with_a_pushed_and_a_sent_status_the_newer_counts() {
    let world = World::new();
    let (daemon, address) = world.daemon("1", &[]);
    assert_eq!(world.keys[0].post(&address, &status("a", "sent", -60)).0, 204);
    let (repo, refs) = (berth_git::Repo::open(world.fleet.bare_path()).unwrap(), Refs::default());
    let counts = || {
        let read = read_statuses(&repo, &refs).unwrap();
        assert_eq!(read.diagnostics.len(), 0);
        read.by_cluster["a"].labels["berth.dev/is"].clone()
    };
    let push = |label: &str, seconds| {
        let pushed = read_status(status("a", label, seconds).as_bytes()).unwrap();
        member_status::write(&repo, &refs, &pushed, Timestamp::now()).unwrap();
    };
    push("pushed", -120);
    assert_eq!(counts(), "sent");
    push("pushed again", -30);
    assert_eq!(counts(), "pushed again");
    assert_eq!(world.keys[0].post(&address, &status("a", "sent again", 0)).0, 204);
    assert_eq!(counts(), "sent again");
    drop(daemon);
    // What cannot be read of one does not hide the other.
    world.fleet.bare(&["update-ref", STATUSES, "main"]);
    assert_eq!(read_statuses(&repo, &refs).unwrap().by_cluster["a"].labels["berth.dev/is"], "pushed again");
}

#[test]
fn the_history_of_sent_statuses_is_short() {
    let world = World::new();
    let (tree, mut commit) =
        (world.fleet.bare(&["hash-object", "-t", "tree", "-w", "/dev/null"]), String::new());
    for _ in 0..255 {
        let parent = ["-p", commit.as_str()];
        let parent = if commit.is_empty() { &[][..] } else { &parent };
        commit = world.fleet.bare(&[&["commit-tree", "-m", "x", &tree], parent].concat());
    }
    world.fleet.bare(&["update-ref", STATUSES, &commit]);
    let (_daemon, address) = world.daemon("1", &[]);
    let count = || world.fleet.bare(&["rev-list", "--count", STATUSES]);
    for (seconds, expected) in [(-30, "256"), (-20, "1"), (-10, "2")] {
        assert_eq!(world.keys[0].post(&address, &status("a", "x", seconds)).0, 204);
        assert_eq!(count(), expected);
    }
}

#[test]
fn ssh_keygen_signs_a_status_too() {
    let world = World::new();
    let (daemon, address) = world.daemon("1", &[]);
    let (text, file) = (status("a", "by hand", 0), world.fleet.root().join("status.yaml"));
    std::fs::write(&file, &text).unwrap();
    let key = &world.keys[0].file;
    private(key);
    let signed = hermetic("ssh-keygen")
        .args(["-q", "-Y", "sign", "-n", "berth-status", "-f"])
        .arg(key)
        .arg(&file)
        .output();
    let Ok(signed) = signed else { return eprintln!("NOT TESTED: `ssh-keygen` is missing") };
    assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    let armored = std::fs::read_to_string(file.with_extension("yaml.sig")).unwrap();
    let line: String = armored.lines().filter(|line| !line.starts_with('-')).collect();
    assert_eq!(post(&address, Some(&line), &text), (204, String::new()));
    assert_eq!(daemon.stop().0, 0);
}

#[test]
fn a_deploy_key_signs_where_no_other_key_is_named() {
    let world = World::new();
    let Some(server) = Ssh::new(world.fleet.root()) else { return };
    let key = &world.keys[0];
    private(&key.file);
    server.allow(&key.public());
    let (daemon, address) = world.daemon("86400", &[]);
    let mut command = berth();
    command.args(["sync", "--once", "--cluster", "a", "--repo"]).arg(world.fleet.root().join("copies/a"));
    command.arg("--target").arg(format!("dir:{}", world.fleet.target("a").display()));
    command.args(server.access_with("key-a", "known_hosts"));
    Ran::of(command.args(["--status-post", &format!("http://{address}/status"), "--allow-plain"])).expect(0);
    assert_eq!(kept(&world.fleet), ["a.yaml"]);
    assert_eq!(daemon.stop().0, 0);
}

fn private(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn flags_that_do_not_fit_are_refused() {
    let world = World::new();
    let repo = world.fleet.root().join("x");
    let run = |more: &[&str]| Ran::of(berth().args(["run", "--repo"]).arg(&repo).args(more));
    let remote = world.fleet.bare_path();
    let remote = ["--remote", remote.to_str().unwrap()];
    let ran = run(&[&remote[..], &["--status-listen", "0"]].concat()).expect(2);
    assert!(ran.err.contains("--status-signers"), "{}", ran.err);
    let ran = run(&["--status-listen", "0", "--status-signers", "x"]).expect(2);
    assert!(ran.err.contains("--remote"), "{}", ran.err);
    let ran =
        run(&[&remote[..], &["--status-listen", "0", "--status-signers", "/dev/null"]].concat()).expect(2);
    assert!(ran.err.contains("it allows no key"), "{}", ran.err);
    let sync = |more: &[&str]| {
        let mut command = berth();
        command.args(["sync", "--once", "--cluster", "a", "--target", "dir:x", "--repo"]).arg(&repo);
        Ran::of(command.args(remote).args(more)).expect(2).err
    };
    let key = world.keys[0].file.to_str().unwrap();
    let said = sync(&["--status-post", "http://berth.example.com/status", "--status-key", key]);
    assert!(said.contains("`--allow-plain`"), "{said}");
    let said = sync(&["--status-post", "https://berth.example.com/status"]);
    assert!(said.contains("--status-key FILE"), "{said}");
    let said = sync(&["--status-post", "https://ann:s3cret@berth.example.com/status", "--status-key", key]);
    assert!(!said.contains("s3cret"), "{said}");
}
