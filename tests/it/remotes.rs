//! The whole loop over the network: a daemon and two members through each kind of server, which goes away in
//! between and comes back.

use crate::support::member::Member;
use crate::support::remote::{Fleet, Folder, Harm, Https, PASSWORD, Plain, Running, Server, Spy, Ssh, Wire};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, berth, config_map, hermetic, namespace};

const MEMBERS: [&str; 2] = ["a", "c"];

/// Everything that a healthy loop does, and what it does while the server is away.
fn the_loop_works(fleet: &Fleet, server: &mut dyn Server) -> Vec<String> {
    let daemon = Running::daemon(fleet, server, &[]);
    until("the daemon published", || fleet.has(RENDERED));
    let members = MEMBERS.map(|member| Running::member(fleet, member, server, &[]));
    let all_have = |value: &str| MEMBERS.iter().all(|member| fleet.value(member).as_deref() == Some(value));
    until("members have the first value", || all_have("one"));
    fleet.edit("two");
    until("members follow an edit", || all_have("two"));
    until("members report", || {
        MEMBERS.iter().all(|member| fleet.has(&format!("refs/berth/status/{member}")))
    });
    until("the daemon sums reports up", || {
        fleet.has("refs/berth/report") && {
            let report = fleet.bare(&["show", "refs/berth/report:report.json"]);
            let report: serde_json::Value = serde_json::from_str(&report).unwrap();
            report["totals"]["in sync"] == MEMBERS.len()
        }
    });
    // A member has its own folder and nothing else.
    let copy = fleet.root().join("copies/a");
    let refs =
        Ran::of(hermetic("git").arg("--git-dir").arg(&copy).args(["for-each-ref", "--format=%(refname)"]));
    assert!(!refs.out.contains("clusters/c") && !refs.out.contains("refs/heads"), "{}", refs.out);

    server.stop();
    std::fs::write(fleet.web("a"), "edited by hand\n").unwrap();
    until("drift is corrected while the server is away", || all_have("two"));
    fleet.edit("three");
    members[0].wait_for(&["keeping the last folder"]);
    daemon.wait_for(&["the current state stays, retrying"]);
    assert!(all_have("two"));
    server.start();
    until("members follow once the server is back", || all_have("three"));
    let mut logs = Vec::new();
    for running in [daemon].into_iter().chain(members) {
        let (code, log) = running.stop();
        assert_eq!(code, 0, "{log}");
        logs.push(log);
    }
    fleet.bare(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fleet.bare(&["rev-list", "--count", RENDERED]), "3");
    logs
}

#[test]
fn a_daemon_and_members_work_through_git_daemon() {
    let fleet = Fleet::new();
    let mut server = Plain::new(fleet.root());
    the_loop_works(&fleet, &mut server);
}

#[test]
fn a_daemon_and_members_work_through_sshd_with_a_key() {
    let fleet = Fleet::new();
    let Some(mut server) = Ssh::new(fleet.root()) else { return };
    the_loop_works(&fleet, &mut server);
}

#[test]
fn a_daemon_and_members_work_through_https_and_nobody_sees_the_password() {
    let fleet = Fleet::new();
    let Some(mut server) = Https::new(fleet.root()) else { return };
    let encoded = "YW5uOnMzY3JldC1wNHNz";
    let spy = Spy::start(&[PASSWORD, encoded]);
    let logs = the_loop_works(&fleet, &mut server);
    let (seen, found) = spy.finish();
    assert!(seen > 0, "the spy saw no git at all");
    assert!(found.is_empty(), "{found:?}");
    for secret in [PASSWORD, encoded] {
        assert!(logs.iter().all(|log| !log.contains(secret)), "{logs:?}");
        let everything = fleet.bare(&["log", "--all", "-p", "--format=raw"]);
        assert!(!everything.contains(secret));
        for copy in ["daemon", "a", "c"] {
            let folder = fleet.root().join("copies").join(copy);
            let found = Ran::of(hermetic("grep").args(["-r", "-a", "-l", secret]).arg(folder));
            assert_eq!(found.out, "", "a working copy holds the secret");
        }
    }
}

#[test]
fn a_member_asks_for_its_own_refs_and_for_nothing_more_where_they_have_not_moved() {
    let fleet = Fleet::new();
    let Some(server) = Https::new(fleet.root()) else { return };
    fleet.run_once(&server, &[]).expect(0);
    fleet.sync_once("a", &server, &[]).expect(0);
    fleet.sync_once("a", &server, &[]).expect(0);
    let asked = fleet.root().join("asked");
    std::fs::write(&asked, "").unwrap();
    fleet.sync_once("a", &server, &[]).expect(0);
    let text = std::fs::read_to_string(&asked).unwrap();
    assert!(text.contains("command=ls-refs") && !text.contains("command=fetch"), "{text}");
    let names: Vec<&str> = text.split_whitespace().filter(|word| word.contains("refs/")).collect();
    let own = |name: &&str| name.contains("refs/berth/clusters/a") || name.contains("refs/berth/status/a");
    assert!(!names.is_empty() && names.iter().all(own), "{names:?}");
    // The clusters' refs have no parents, so that one commit comes, however long the history is.
    fleet.edit("two");
    fleet.run_once(&server, &[]).expect(0);
    fleet.sync_once("a", &server, &[]).expect(0);
    let copy = fleet.root().join("copies/a");
    let commits = Ran::of(hermetic("git").arg("--git-dir").arg(copy).args(["rev-list", "--all", "--count"]));
    assert!(commits.out.trim().parse::<u32>().unwrap() <= 4, "{}", commits.out);
}

#[test]
fn a_poll_costs_the_same_however_many_clusters_there_are() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    let wire = Wire::to(server.port);
    let counted = wire.server(&server);
    let poll = || {
        wire.take_bytes();
        fleet.sync_once("a", &counted, &[]).expect(0);
        wire.take_bytes()
    };
    let change = |value: &str| {
        fleet.edit(value);
        fleet.run_once(&server, &[]).expect(0);
        let bytes = poll();
        assert_eq!(fleet.value("a").as_deref(), Some(value));
        bytes
    };
    // The first two report.
    poll();
    poll();
    let (few, few_changed) = (poll(), change("two"));
    let commit = fleet.bare(&["rev-parse", "refs/berth/clusters/a"]);
    fleet.add_refs("refs/others/", 10_000, &commit);
    let (many, many_changed) = (poll(), change("three"));
    println!("a poll: {few} bytes, {many} with 10,000 further refs");
    println!("a change and its report: {few_changed} bytes, {many_changed} with 10,000 further refs");
    assert!(many <= few + 100 && many < 2_000, "{few} {many}");
}

#[test]
fn the_binary_itself_works_on_a_path() {
    let fleet = Fleet::new();
    let server = Folder::of(&fleet);
    fleet.run_once(&server, &[]).expect(0);
    fleet.sync_once("a", &server, &[]).expect(0);
    assert_eq!(fleet.value("a").as_deref(), Some("one"));
    assert!(fleet.has("refs/berth/status/a"));
    let again = fleet.run_once(&server, &[]).expect(0);
    assert!(again.out.contains("nothing to publish"), "{}", again.out);
}

#[test]
fn a_daemon_follows_the_default_branch_under_its_new_name() {
    let fleet = Fleet::new();
    let daemon = Running::daemon(&fleet, &Folder::of(&fleet), &[]);
    until("the daemon published", || fleet.has(RENDERED));
    fleet.bare(&["branch", "-m", "main", "trunk"]);
    fleet.people.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    fleet.people.commit("two");
    fleet.people.git(&["push", "-q", fleet.bare_path().to_str().unwrap(), "HEAD:refs/heads/trunk"]);
    let web = format!("{RENDERED}:clusters/a/shop/ConfigMap_web.yaml");
    until("the daemon follows", || fleet.bare(&["show", &web]).contains("two"));
    assert_eq!(daemon.stop().0, 0);
}

/// A daemon and two members, while pushes are refused, connections are cut and the server goes away.
fn every_fault_is_outlived(fleet: &Fleet, server: &mut dyn Server, port: u16) {
    fleet.run_once(server, &[]).expect(0);
    // A host is known by its port, so that a proxy's is made known, too.
    let known = fleet.root().join("known_hosts");
    for most in [0, 300, 2_000, 4_000] {
        let wire = Wire::to(port);
        wire.harm(Some(Harm::Cut(most)));
        if let Ok(text) = std::fs::read_to_string(&known) {
            let more = text.replace(&format!("]:{port} "), &format!("]:{} ", wire.port));
            std::fs::write(&known, format!("{text}{more}")).unwrap();
        }
        let cut = wire.server(server);
        // A working copy is of one address.
        let _ = std::fs::remove_dir_all(fleet.root().join("copies/b"));
        for ran in [
            fleet.run_from(&format!("cut-{most}"), &cut, &["--git-timeout", "20"]),
            fleet.sync_once("b", &cut, &["--git-timeout", "20"]),
        ] {
            assert!([0, 6].contains(&ran.code), "after {most}: {}\n{}", ran.code, ran.err);
            assert!(!ran.err.contains(PASSWORD), "{}", ran.err);
        }
        fleet.bare(&["fsck", "--strict", "--no-dangling"]);
    }
    let script = "grep -q refs/heads/main || { echo no changes on Fridays >&2; exit 1; }";
    fleet.hook("pre-receive", script);
    fleet.edit("two");
    let daemon = Running::daemon(fleet, server, &[]);
    let members = MEMBERS.map(|member| Running::member(fleet, member, server, &[]));
    daemon.wait_for(&["refuses to move", "no changes on Fridays"]);
    let all_have = |value: &str| MEMBERS.iter().all(|member| fleet.value(member).as_deref() == Some(value));
    until("members have what was published before", || all_have("one"));
    fleet.hook("pre-receive", "exit 0");
    until("members have what was refused before", || all_have("two"));
    server.stop();
    fleet.edit("three");
    members[1].wait_for(&["keeping the last folder"]);
    server.start();
    until("members follow once the server is back", || all_have("three"));
    for running in [daemon].into_iter().chain(members) {
        assert_eq!(running.stop().0, 0);
    }
    fleet.bare(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fleet.bare(&["rev-list", "--count", RENDERED]), "3");
}

#[test]
fn refused_pushes_cut_connections_and_a_restart_are_outlived_through_https() {
    let fleet = Fleet::new();
    let Some(mut server) = Https::new(fleet.root()) else { return };
    let port = server.port;
    every_fault_is_outlived(&fleet, &mut server, port);
}

#[test]
fn refused_pushes_cut_connections_and_a_restart_are_outlived_through_sshd() {
    let fleet = Fleet::new();
    let Some(mut server) = Ssh::new(fleet.root()) else { return };
    let port = server.port;
    every_fault_is_outlived(&fleet, &mut server, port);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_kubernetes_member_works_through_https_and_keeps_to_its_folder_while_the_server_is_away() {
    let Some(member) = Member::new("shop-by-https") else { return };
    let fleet = Fleet::new();
    let Some(mut server) = Https::new(fleet.root()) else { return };
    let to_its_namespace = |value: &str| {
        fleet.people.write("apps/shop.yaml", namespace("shop-by-https"));
        let map = config_map("web", value, "{clusterSelector: {}}");
        fleet.people.write("apps/web.yaml", map.replace("namespace: shop", "namespace: shop-by-https"));
        fleet.people.commit(value);
        fleet.push();
    };
    let sync = |server: &Https| {
        let mut command = berth();
        command.args([
            "sync",
            "--once",
            "--cluster",
            "a",
            "--target",
            "kube",
            "--fleet",
            "shop-by-https",
            "--repo",
        ]);
        command.arg(fleet.root().join("copies/kube")).arg("--kubeconfig").arg(member.plane.kubeconfig());
        command.args(server.access());
        server.set_secrets(&mut command);
        Ran::of(&mut command)
    };
    let value = || member.get("configmap", "web").map(|map| map["data"]["value"].clone());
    to_its_namespace("one");
    fleet.run_once(&server, &[]).expect(0);
    sync(&server).expect(0);
    assert_eq!(value(), Some("one".into()));
    to_its_namespace("two");
    fleet.run_once(&server, &[]).expect(0);
    server.stop();
    let patch = r#"{"data":{"value":"by hand"}}"#;
    member.kubectl(&["patch", "configmap", "web", "-n", "shop-by-https", "--type=merge", "-p", patch]);
    let ran = sync(&server).expect(6);
    assert!(ran.err.contains("using the last fetched folder"), "{}", ran.err);
    assert_eq!(value(), Some("one".into()), "drift is corrected to the last folder");
    server.start();
    for fault in ["cut 100", "status 500"] {
        server.fault(fault);
        sync(&server).expect(6);
        assert_eq!(value(), Some("one".into()), "{fault}");
    }
    server.fault("");
    sync(&server).expect(0);
    assert_eq!(value(), Some("two".into()));
    assert!(fleet.has("refs/berth/status/a"));
}
