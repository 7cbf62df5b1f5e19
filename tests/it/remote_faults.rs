//! Faults on the way to a remote, one at a time: what each leads to, and that the next run is well again.

use crate::support::remote::{Fleet, Harm, Https, PASSWORD, Plain, Running, Server, Ssh, WebProxy, Wire};
use crate::support::wait::until;
use crate::support::{FASTER, RENDERED, Ran, hermetic};

/// A run that ended so, said so, and kept every secret.
#[track_caller]
fn ends(ran: Ran, code: i32, words: &[&str]) {
    let ran = ran.expect(code);
    for word in words {
        assert!(ran.err.contains(word), "no `{word}` in\n{}", ran.err);
    }
    let all = format!("{}{}", ran.out, ran.err);
    assert!(!all.contains(PASSWORD) && !all.contains("YW5u"), "{all}");
}

#[test]
fn faults_of_an_https_server_are_told_apart() {
    let fleet = Fleet::new();
    let Some(mut server) = Https::new(fleet.root()) else { return };

    server.trusted = false;
    ends(fleet.run_once(&server, &[]), 6, &["is not trusted", "certificate", "--ca-file"]);
    server.trusted = true;
    server.password = "wrong-p4ss".to_owned();
    let refused = fleet.run_once(&server, &[]).expect(6);
    assert!(
        refused.err.contains("refuses the credentials") && !refused.err.contains("wrong-p4ss"),
        "{}",
        refused.err
    );
    server.password = String::new();
    ends(fleet.run_once(&server, &[]), 6, &["refuses the credentials"]);
    server.password = PASSWORD.to_owned();

    server.fault("status 503");
    ends(fleet.run_once(&server, &[]), 6, &["cannot be reached", "503"]);
    server.fault("status 404");
    ends(fleet.run_once(&server, &[]), 6, &["there is no repository"]);
    server.fault("redirect https://example.com");
    ends(fleet.run_once(&server, &[]), 2, &["redirects to another address"]);
    server.fault("hang");
    ends(fleet.run_once(&server, &["--git-timeout", "2"]), 6, &["did not finish within 2 seconds"]);
    server.fault("hang");
    ends(fleet.run_once(&server, &["--git-stall-timeout", "1"]), 6, &["cannot be reached", "slow"]);
    for bytes in ["0", "10", "300", "900"] {
        server.fault(&format!("cut {bytes}"));
        fleet.run_once(&server, &[]).expect(6);
    }
    server.fault("cut 300");
    ends(fleet.run_once(&server, &[]), 6, &["was cut off"]);
    assert!(!fleet.has(RENDERED));
    server.fault("");
    fleet.run_once(&server, &[]).expect(0);

    // A member that has a folder keeps to it, and corrects drift, whatever the server does.
    fleet.sync_once("a", &server, &[]).expect(0);
    fleet.edit("two");
    fleet.run_once(&server, &[]).expect(0);
    for fault in ["status 500", "cut 100", "hang"] {
        server.fault(fault);
        std::fs::write(fleet.web("a"), "edited by hand\n").unwrap();
        let more = ["--git-timeout", "3"];
        ends(fleet.sync_once("a", &server, &more), 6, &["using the last fetched folder"]);
        assert_eq!(fleet.value("a").as_deref(), Some("one"), "{fault}");
    }
    server.fault("");
    fleet.sync_once("a", &server, &[]).expect(0);
    assert_eq!(fleet.value("a").as_deref(), Some("two"));
    server.stop();
    ends(fleet.sync_once("a", &server, &[]), 6, &["cannot be reached", "using the last fetched folder"]);
    ends(fleet.sync_once("b", &server, &[]), 6, &["cannot be reached"]);
    assert!(!fleet.target("b").exists());
}

#[test]
fn a_push_whose_answer_is_lost_is_found_done_by_the_next_run() {
    let fleet = Fleet::new();
    let Some(server) = Https::new(fleet.root()) else { return };
    fleet.run_once(&server, &[]).expect(0);
    fleet.sync_once("a", &server, &[]).expect(0);
    fleet.edit("two");
    server.fault("cut-push 0");
    fleet.run_once(&server, &[]).expect(6);
    assert_eq!(fleet.bare(&["rev-list", "--count", RENDERED]), "2", "it is there all the same");
    fleet.sync_once("a", &server, &[]).expect(6);
    server.fault("");
    let again = fleet.run_once(&server, &[]).expect(0);
    assert!(again.out.contains("nothing to publish"), "{}", again.out);
    fleet.sync_once("a", &server, &[]).expect(0);
    let status = fleet.bare(&["show", "refs/berth/status/a:status.yaml"]);
    assert!(status.contains("sequence: 2"), "{status}");
}

#[test]
fn a_proxy_is_used_and_its_password_kept() {
    let fleet = Fleet::new();
    let Some(server) = Https::new(fleet.root()) else { return };
    struct Through<'a>(&'a Https, String);
    impl Server for Through<'_> {
        fn access(&self) -> Vec<String> {
            self.0.access()
        }
        fn set_secrets(&self, command: &mut std::process::Command) {
            self.0.set_secrets(command);
            command.env("BERTH_PROXY", &self.1);
        }
        fn start(&mut self) {}
        fn stop(&mut self) {}
    }
    let proxy = WebProxy::start("Basic cHJveHk6czNjcmV0LXA0c3M=");
    let through = |login: &str| Through(&server, format!("http://{login}@127.0.0.1:{}", proxy.port));
    let refused = fleet.run_once(&through("proxy:wrong-one"), &[]).expect(6);
    assert!(refused.err.contains("407") && !refused.err.contains("wrong-one"), "{}", refused.err);
    assert_eq!(proxy.let_in(), 0);
    fleet.run_once(&through(&format!("proxy:{PASSWORD}")), &[]).expect(0);
    assert!(proxy.let_in() > 0 && fleet.has(RENDERED));
}

#[test]
fn credentials_where_others_could_see_them_are_refused() {
    let fleet = Fleet::new();
    let mut command = crate::support::berth();
    command.args(["run", "--once", "--remote", "https://ann:s3cret-p4ss@127.0.0.1:1/fleet.git"]);
    ends(Ran::of(&mut command), 2, &["shows in the list of processes", "--token-file"]);
    let mut command = crate::support::berth();
    command.args(["run", "--once", "--git-timeout", "5", "--repo"]).arg(fleet.root().join("copy"));
    command.env("BERTH_REMOTE", "https://ann:s3cret-p4ss@127.0.0.1:1/fleet.git");
    ends(Ran::of(&mut command), 6, &["`https://127.0.0.1:1/fleet.git` cannot be reached"]);
    let mut help = crate::support::berth();
    help.args(["sync", "--help"])
        .env("BERTH_REMOTE", "https://a:s3cret-p4ss@h/x")
        .env("BERTH_PROXY", "http://a:s3cret-p4ss@p");
    let help = Ran::of(&mut help).expect(0);
    assert!(help.out.contains("BERTH_PROXY") && !help.out.contains(PASSWORD), "{}", help.out);
    for bad in ["ext::sh -c id", "http://h/x", "git://h/x", "ssh://-oProxyCommand=id/x", "ftp://h/x"] {
        let mut command = crate::support::berth();
        command.args(["run", "--once", "--remote", bad, "--repo"]).arg(fleet.root().join("copy"));
        ends(Ran::of(&mut command), 2, &["cannot be a remote"]);
    }
}

#[test]
fn a_strangers_host_key_or_our_unknown_key_ends_an_ssh_exchange() {
    let fleet = Fleet::new();
    let Some(server) = Ssh::new(fleet.root()) else { return };
    struct With(Vec<String>);
    impl Server for With {
        fn access(&self) -> Vec<String> {
            self.0.clone()
        }
        fn start(&mut self) {}
        fn stop(&mut self) {}
    }
    let with = |key: &str, hosts: &str| With(server.access_with(key, hosts));
    ends(fleet.run_once(&with("user_key", "other_hosts"), &[]), 6, &["is not trusted", "--known-hosts"]);
    std::fs::write(fleet.root().join("no_hosts"), "").unwrap();
    ends(fleet.run_once(&with("user_key", "no_hosts"), &[]), 6, &["is not trusted"]);
    ends(fleet.run_once(&with("other_key", "known_hosts"), &[]), 6, &["refuses the credentials"]);
    ends(fleet.run_once(&with("none", "known_hosts"), &[]), 2, &["key file"]);
    let without = With(server.access()[..2].to_vec());
    ends(fleet.run_once(&without, &[]), 2, &["needs a key file", "--ssh-key"]);
    fleet.run_once(&server, &[]).expect(0);
}

#[test]
fn connections_cut_anywhere_leave_nothing_half_done() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    for most in [0, 60, 200, 500, 1_000, 1_700] {
        let wire = Wire::to(server.port);
        wire.harm(Some(Harm::Cut(most)));
        let ran = fleet.run_from(&format!("cut-{most}"), &wire.server(&server), &["--git-timeout", "20"]);
        let copy = fleet.root().join("copies").join(format!("cut-{most}"));
        let checked = Ran::of(hermetic("git").arg("--git-dir").arg(copy).args(["fsck", "--no-dangling"]));
        assert_eq!(checked.code, 0, "after {most}: {}", checked.err);
        assert!([0, 6].contains(&ran.code), "after {most}: {}\n{}", ran.code, ran.err);
        fleet.bare(&["fsck", "--strict", "--no-dangling"]);
    }
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = At(silent.local_addr().unwrap().port());
    ends(fleet.run_once(&silent, &["--git-timeout", "2"]), 6, &["did not finish within 2 seconds"]);
    fleet.run_from("other", &server, &[]).expect(0);
    assert_eq!(fleet.bare(&["rev-list", "--count", RENDERED]), "1");
    fleet.sync_once("a", &server, &[]).expect(0);
    assert_eq!(fleet.value("a").as_deref(), Some("one"));
}

/// Whatever listens on a port, as if it were `git daemon`.
struct At(u16);

impl Server for At {
    fn access(&self) -> Vec<String> {
        vec!["--remote".into(), format!("git://127.0.0.1:{}/fleet.git", self.0), "--allow-plain".into()]
    }
    fn start(&mut self) {}
    fn stop(&mut self) {}
}

#[test]
fn a_remote_in_trouble_is_left_alone_longer_and_longer() {
    let fleet = Fleet::new();
    let closing = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = At(closing.local_addr().unwrap().port());
    let daemon = Running::daemon(&fleet, &server, &["--source", "main"]);
    let asked = |_| {
        closing.accept().unwrap();
        std::time::Instant::now()
    };
    // The first comes before the first pass. The fifth pass waits for two seconds at least, where polls
    // come each second.
    let moments: Vec<_> = (0..6).map(asked).collect();
    let last = moments[5] - moments[4];
    assert!(last >= std::time::Duration::from_millis(1_500) / FASTER, "{last:?}\n{}", daemon.log());
    assert_eq!(daemon.stop().0, 0);
}

#[test]
fn a_daemon_in_an_exchange_without_end_stops_when_asked() {
    let fleet = Fleet::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = At(silent.local_addr().unwrap().port());
    let daemon = Running::daemon(&fleet, &server, &["--source", "main"]);
    daemon.wait_for(&["connecting"]);
    let (asked, _) = silent.accept().unwrap();
    assert_eq!(daemon.stop().0, 0);
    // The connection ends with the daemon: no `git` lives on.
    asked.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let read = std::io::copy(&mut &asked, &mut std::io::sink());
    assert!(read.is_ok(), "{read:?}");
}

#[test]
fn a_server_that_refuses_to_move_refs_is_named_with_its_reason() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    fleet.hook("pre-receive", "echo no changes on Fridays >&2; exit 1");
    ends(
        fleet.run_once(&server, &[]),
        6,
        &["refuses to move", "pre-receive hook declined", "no changes on Fridays"],
    );
    assert!(!fleet.has(RENDERED) && !fleet.has("refs/berth/clusters/a"));
    // Atomically: one ref that may not move keeps all where they are.
    fleet.hook("pre-receive", "exit 0");
    fleet.hook("update", "case $1 in refs/berth/clusters/b) exit 1;; esac");
    ends(fleet.run_once(&server, &[]), 6, &["refuses to move `refs/berth/clusters/b`"]);
    assert!(!fleet.has(RENDERED) && !fleet.has("refs/berth/clusters/a"));
    std::fs::remove_file(fleet.bare_path().join("hooks/update")).unwrap();
    fleet.bare(&["config", "receive.denyNonFastForwards", "true"]);
    fleet.run_once(&server, &[]).expect(0);
    fleet.edit("two");
    fleet.run_once(&server, &[]).expect(0);
    assert_eq!(fleet.bare(&["rev-list", "--count", RENDERED]), "2");
    // A server that can not move refs together gets them in order.
    fleet.bare(&["config", "receive.advertiseAtomic", "false"]);
    fleet.edit("three");
    fleet.run_once(&server, &[]).expect(0);
    assert_eq!(fleet.bare(&["rev-list", "--count", RENDERED]), "3");
}

#[test]
fn a_member_without_the_right_to_push_says_so_once_and_goes_on() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    fleet.hook("pre-receive", "echo read only >&2; exit 1");
    let once = fleet.sync_once("b", &server, &[]).expect(0);
    assert!(
        once.err.contains("the status could not be reported") && once.err.contains("read only"),
        "{}",
        once.err
    );
    let member = Running::member(&fleet, "a", &server, &[]);
    member.wait_for(&["the status is kept in the local repository"]);
    std::fs::write(fleet.web("a"), "edited by hand\n").unwrap();
    until("drift is corrected", || fleet.value("a").as_deref() == Some("one"));
    std::fs::write(fleet.web("a"), "edited again\n").unwrap();
    until("drift is corrected again", || fleet.value("a").as_deref() == Some("one"));
    let (code, log) = member.stop();
    assert_eq!((code, log.matches("the status is kept in the local repository").count()), (0, 1), "{log}");
    assert!(!fleet.has("refs/berth/status/a"));
}

#[test]
fn two_daemons_on_one_remote_lose_nothing() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    let first = Running::daemon(&fleet, &server, &[]);
    until("the first published", || fleet.has(RENDERED));
    for n in 0..4 {
        fleet.edit(&format!("value-{n}"));
        // A second one, on another copy, runs into the first again and again.
        let ran = fleet.run_from("second", &server, &[]);
        assert!([0, 4].contains(&ran.code), "{}\n{}", ran.code, ran.err);
    }
    let head = fleet.bare(&["rev-parse", "main"]);
    until("the last edit is published", || {
        fleet.bare(&["log", "-1", "--format=%B", RENDERED]).contains(&head)
    });
    assert_eq!(first.stop().0, 0);
    fleet.run_once(&server, &[]).expect(0);
    let seqs = fleet.bare(&[
        "log",
        "--reverse",
        "--format=%(trailers:key=Berth-Seq,valueonly,separator=)",
        RENDERED,
    ]);
    let seqs: Vec<u64> = seqs.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    for cluster in ["a", "b", "c"] {
        let folder = fleet.bare(&["rev-parse", &format!("{RENDERED}:clusters/{cluster}")]);
        assert_eq!(fleet.bare(&["rev-parse", &format!("refs/berth/clusters/{cluster}^{{tree}}")]), folder);
    }
}

#[test]
fn an_old_commit_of_the_folder_that_a_member_has_is_no_step_back() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    let name = "refs/berth/clusters/a";
    let refs = ["x", "y", "x"].map(|value| {
        fleet.edit(value);
        fleet.run_once(&server, &[]).expect(0);
        fleet.bare(&["rev-parse", name])
    });
    fleet.sync_once("a", &server, &[]).expect(0);
    fleet.bare(&["update-ref", name, &refs[0]]);
    std::fs::write(fleet.web("a"), "edited by hand\n").unwrap();
    fleet.sync_once("a", &server, &[]).expect(0);
    assert_eq!(fleet.value("a").as_deref(), Some("x"));
    // It has not become the number to compare with.
    fleet.bare(&["update-ref", name, &refs[1]]);
    ends(fleet.sync_once("a", &server, &[]), 5, &["sequence 2, but its last known sequence was 3"]);
    assert_eq!(fleet.value("a").as_deref(), Some("x"));
    fleet.run_once(&server, &[]).expect(0);
    assert_eq!(fleet.bare(&["rev-parse", name]), refs[2]);
}

#[test]
fn refs_that_went_back_or_away_are_refused_and_nothing_is_deleted() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    let (old, old_a) =
        (fleet.bare(&["rev-parse", RENDERED]), fleet.bare(&["rev-parse", "refs/berth/clusters/a"]));
    fleet.edit("two");
    fleet.run_once(&server, &[]).expect(0);
    fleet.sync_once("a", &server, &[]).expect(0);
    let new_a = fleet.bare(&["rev-parse", "refs/berth/clusters/a"]);

    fleet.bare(&["update-ref", "refs/berth/clusters/a", &old_a]);
    std::fs::write(fleet.web("a"), "edited by hand\n").unwrap();
    ends(
        fleet.sync_once("a", &server, &[]),
        5,
        &["sequence 1, but its last known sequence was 2", "--allow-rewind"],
    );
    assert_eq!(fleet.value("a").as_deref(), Some("two"), "drift is corrected to the newer folder");
    fleet.bare(&["update-ref", "-d", "refs/berth/clusters/a"]);
    ends(fleet.sync_once("a", &server, &[]), 6, &["has no `refs/berth/clusters/a`"]);
    assert_eq!(fleet.value("a").as_deref(), Some("two"));
    // The daemon puts it back.
    fleet.run_once(&server, &[]).expect(0);
    assert_eq!(fleet.bare(&["rev-parse", "refs/berth/clusters/a"]), new_a);

    fleet.bare(&["update-ref", RENDERED, &old]);
    ends(fleet.run_once(&server, &[]), 5, &["does not come after", "--allow-rewind"]);
    fleet.bare(&["update-ref", "-d", RENDERED]);
    ends(fleet.run_once(&server, &[]), 5, &["is missing, although"]);
    ends(
        fleet.run_once(&server, &["--source", "mian"]),
        2,
        &["no source branch `mian`", "did you mean `main`"],
    );
    ends(fleet.sync_once("nowhere", &server, &[]), 6, &["has no `refs/berth/clusters/nowhere`"]);
}

#[test]
fn a_daemon_that_stops_in_an_exchange_warns_of_nothing() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    let wire = Wire::to(server.port);
    let daemon = Running::daemon(&fleet, &wire.server(&server), &[]);
    daemon.wait_for(&["\"pass done\""]);
    wire.harm(Some(Harm::Mute));
    until("an exchange is under way", || wire.holds());
    let (code, log) = daemon.stop();
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains("\"WARN\"") && !log.contains("\"ERROR\""), "{log}");
}

/// Removes one object of a member's working copy: a part of the newest folder.
fn damage(fleet: &Fleet, cluster: &str, part: &str) {
    let copy = fleet.root().join("copies").join(cluster);
    let name = format!("refs/berth/clusters/{cluster}{part}");
    let id = Ran::of(hermetic("git").arg("-C").arg(&copy).args(["rev-parse", &name])).expect(0).out;
    let (folder, file) = id.trim().split_at(2);
    std::fs::remove_file(copy.join("objects").join(folder).join(file)).expect("removed");
}

#[test]
fn a_members_damaged_working_copy_is_made_anew_and_an_older_folder_is_refused_all_the_same() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    fleet.edit("two");
    fleet.run_once(&server, &[]).expect(0);
    let before = fleet.bare(&["rev-parse", "refs/berth/clusters/a"]);
    fleet.sync_once("a", &server, &[]).expect(0);
    for part in ["^{tree}", ":shop/ConfigMap_web.yaml"] {
        damage(&fleet, "a", part);
        let ran = fleet.sync_once("a", &server, &[]).expect(0);
        assert!(ran.err.contains("the working copy was damaged; recreating it"), "{}", ran.err);
    }

    let member = Running::member(&fleet, "a", &server, &[]);
    fleet.edit("three");
    fleet.run_once(&server, &[]).expect(0);
    until("the edit is applied", || fleet.value("a").as_deref() == Some("three"));
    damage(&fleet, "a", "^{tree}");
    fleet.edit("four");
    fleet.run_once(&server, &[]).expect(0);
    until("the edit is applied", || fleet.value("a").as_deref() == Some("four"));
    until("it is reported", || {
        fleet.bare(&["show", "refs/berth/status/a:status.yaml"]).contains("sequence: 4")
    });
    drop(member);

    // Nothing here remembers the newest folder any more, but for what was applied.
    let newest = fleet.bare(&["rev-parse", "refs/berth/clusters/a"]);
    fleet.bare(&["update-ref", "refs/berth/clusters/a", &before]);
    damage(&fleet, "a", "");
    let ran = fleet.sync_once("a", &server, &[]);
    assert_ne!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(fleet.value("a").as_deref(), Some("four"));
    fleet.bare(&["update-ref", "refs/berth/clusters/a", &newest]);
    fleet.sync_once("a", &server, &[]).expect(0);
}
