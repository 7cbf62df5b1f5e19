//! "In sync" means it: what a member cannot do, and that it can do nothing at all, is known where people look.

use std::process::{Child, Stdio};

use serde_json::{Value as Json, json};

use crate::support::faults::kubeconfig_of;
use crate::support::member::Member;
use crate::support::ports::free_port;
use crate::support::remote::{Fleet, Plain, Running as Remote, Server as _};
use crate::support::wait::{pause, until};
use crate::support::{Ran, Repo, berth, small_fleet};

/// The way to an API server, which can be closed and opened again.
struct Way {
    folder: tempfile::TempDir,
    port: u16,
    open: Option<Child>,
}

impl Way {
    fn to(member: &Member) -> Way {
        let port = free_port();
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig_of(port)).expect("a file");
        let mut way = Way { folder, port, open: None };
        way.open(member);
        way
    }

    fn kubeconfig(&self) -> String {
        self.folder.path().join("kubeconfig").display().to_string()
    }

    fn open(&mut self, member: &Member) {
        let mut command = member.plane.kubectl();
        command.arg("proxy").arg(format!("--port={}", self.port));
        self.open = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kubectl runs"));
        until("kubectl proxy listens", || std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    fn close(&mut self) {
        if let Some(mut child) = self.open.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.close();
    }
}

/// `berth status` in a fleet's repository, into which the member's refs are fetched.
fn status(member: &Member, more: &[&str]) -> String {
    thread_local! {
        static FLEET: Repo = {
            let fleet = small_fleet();
            fleet.publish().expect(0);
            fleet
        };
    }
    FLEET.with(|fleet| {
        fleet.git(&["fetch", "-q", member.repo.arg(), "+refs/berth/*:refs/berth/*"]);
        Ran::of(berth().args(["status", "--repo", fleet.arg()]).args(more)).expect(0).out
    })
}

/// The member's line in `berth status`.
fn line(member: &Member) -> Json {
    let status: Json = serde_json::from_str(&status(member, &["-o", "json"])).expect("JSON");
    let lines = status["fleet"]["clusters"].as_array().expect("clusters").clone();
    lines.into_iter().find(|line| line["name"] == member.name.as_str()).expect("the member")
}

fn state(member: &Member) -> String {
    line(member)["state"].as_str().expect("a state").to_owned()
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_member_with_problems_one_that_waits_and_one_that_is_suspended_are_not_in_sync() {
    let Some(member) = Member::new("standing") else { return };
    member.publish(&[member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    assert_eq!(state(&member), "in sync");

    let homeless =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "no-such"}});
    member.publish(&[member.config_map("web", "one"), homeless]);
    member.sync(&[]).expect(7);
    assert_eq!((state(&member).as_str(), &line(&member)["problems"]), ("problems", &json!(1)));

    member.publish(&[member.config_map("web", "one"), member.deployment("app", "example.com/web:1")]);
    let running = member.keep_in_sync(&[]);
    running.until("it is on its way", || (state(&member) == "progressing").then_some(()));
    assert!(member.status().contains("waiting:"), "{}", member.status());
    member.make_healthy("app");
    running.until("it is in sync", || (state(&member) == "in sync").then_some(()));
    drop(running);

    let suspend = |args: &[&str]| {
        let mut command = berth();
        command.args(args).args(["--fleet", &member.name, "--kubeconfig"]);
        Ran::of(command.arg(member.plane.kubeconfig())).expect(0)
    };
    suspend(&["suspend", "--reason", "disk full"]);
    member.sync(&[]).expect(5);
    assert_eq!(state(&member), "suspended");
    let text = status(&member, &[]);
    assert!(text.contains("standing: suspended: disk full"), "{text}");
    suspend(&["resume"]);
    member.sync(&[]).expect(0);
    assert_eq!(state(&member), "in sync");
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_member_whose_api_server_is_gone_says_so_in_git_and_since_when() {
    for (name, more) in [("gone", ["--lease-duration", "6"].as_slice()), ("gone-unleased", &["--no-lease"])] {
        let Some(member) = Member::new(name) else { return };
        let mut way = Way::to(&member);
        member.publish(&[member.config_map("web", "one")]);
        let kubeconfig = way.kubeconfig();
        let running = member.keep_in_sync(&[&["--kubeconfig", &kubeconfig], more].concat());
        running.until_applied(1);
        assert_eq!(state(&member), "in sync");

        way.close();
        running.until("it is failing", || (state(&member) == "failing").then_some(()));
        let said = line(&member)["failing"].as_str().expect("why").to_owned();
        assert!(said.starts_with("failing since 20") && said.contains("cannot be reached"), "{said}");
        let text = status(&member, &[]);
        assert!(text.contains(&format!("{name}: failing since ")), "{text}");
        assert!(
            member.status().contains("objects: 1"),
            "what was applied is still known: {}",
            member.status()
        );

        way.open(&member);
        member.publish(&[member.config_map("web", "two")]);
        running.until("it is in sync", || (state(&member) == "in sync").then_some(()));
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_member_whose_credentials_were_revoked_is_not_in_sync() {
    let Some(member) = Member::new("revoked") else { return };
    member.kubectl(&["create", "serviceaccount", "syncer", "-n", "revoked"]);
    let account = "--serviceaccount=revoked:syncer";
    member.kubectl(&[
        "create",
        "clusterrolebinding",
        "revoked-syncer",
        "--clusterrole=cluster-admin",
        account,
    ]);
    let token = member.kubectl(&["create", "token", "syncer", "-n", "revoked"]).trim().to_owned();
    let view = member.kubectl(&["config", "view", "--raw", "--flatten", "-o", "json"]);
    let mut view: Json = serde_json::from_str(&view).expect("JSON");
    view["users"][0]["user"] = json!({ "token": token });
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), view.to_string()).expect("a file");

    member.publish(&[member.config_map("web", "one")]);
    let kubeconfig = file.path().to_str().expect("a text path");
    let running = member.keep_in_sync(&["--kubeconfig", kubeconfig, "--lease-duration", "6"]);
    running.until_applied(1);
    member.kubectl(&["delete", "serviceaccount", "syncer", "-n", "revoked"]);
    running.until("it is failing", || (state(&member) == "failing").then_some(()));
    let said = line(&member)["failing"].as_str().expect("why").to_owned();
    assert!(said.contains("401") && !said.contains(&token), "{said}");
    member.kubectl(&["delete", "clusterrolebinding", "revoked-syncer"]);
}

#[test]
fn a_single_round_that_fails_is_reported_to_the_remote() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    // Nobody listens there.
    let kubeconfig = fleet.root().join("kubeconfig");
    std::fs::write(&kubeconfig, kubeconfig_of(free_port())).expect("a file");
    for lease in [["--lease-duration", "6"].as_slice(), &["--no-lease"]] {
        let mut command = berth();
        command
            .args(["sync", "--once", "--cluster", "a", "--target", "kube", "--kubeconfig"])
            .arg(&kubeconfig);
        command.args(server.access()).arg("--repo").arg(fleet.root().join("copies/once"));
        Ran::of(command.args(lease)).expect(6);
        let status = fleet.bare(&["cat-file", "-p", "refs/berth/status/a:status.yaml"]);
        assert!(status.contains("failing:") && status.contains("cannot be reached"), "{status}");
        fleet.bare(&["update-ref", "-d", "refs/berth/status/a"]);
    }
}

#[test]
fn a_status_that_was_refused_is_offered_again_soon() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    fleet.hook("update", "case $1 in refs/berth/status/*) exit 1;; esac");
    let running = Remote::member(&fleet, "a", &server, &[]);
    running.wait_for(&["the status is kept in the local repository"]);
    fleet.hook("update", "exit 0");
    until("the status arrives", || fleet.has("refs/berth/status/a"));
    let (_, log) = running.stop();
    assert_eq!(
        log.matches("the status is kept in the local repository").count(),
        1,
        "it is said once: {log}"
    );
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_many_objects_share_is_one_line_in_the_log_and_an_api_server_that_comes_back_is_a_few() {
    let Some(member) = Member::new("brief") else { return };
    let mut way = Way::to(&member);
    let homeless = |n: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{n}"), "namespace": "no-such"}});
    let fine = |n: usize| member.config_map(&format!("fine-{n}"), "one");
    member.publish(&(0..40).map(homeless).chain((0..40).map(fine)).collect::<Vec<_>>());
    let kubeconfig = way.kubeconfig();
    let running = member.keep_in_sync(&["--kubeconfig", &kubeconfig, "--lease-duration", "6"]);
    running.until("all is said", || {
        running.log().contains("its namespace `no-such` does not exist").then_some(())
    });
    let lines = || running.log().lines().count();
    assert!(lines() <= 6, "{}", running.log());
    assert!(running.log().contains("\"objects\":40"), "{}", running.log());

    let before = lines();
    way.close();
    running.until("it is failing", || (state(&member) == "failing").then_some(()));
    // Some rounds without a turn, and some that fail.
    pause(std::time::Duration::from_secs(8), "longer than the lease: nothing more may be said meanwhile");
    way.open(&member);
    running.until("it works again", || (state(&member) == "problems").then_some(()));
    let log = running.log();
    let new: Vec<&str> = log.lines().skip(before).collect();
    assert!(new.len() <= 8, "{} lines for one restart:\n{}", new.len(), new.join("\n"));
}
