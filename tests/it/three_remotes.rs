//! Source, state and statuses in a repository each: the daemon writes only the state, members only their statuses.

use std::path::{Path, PathBuf};

use crate::support::remote::{Fleet, Folder, Https, Running, Server};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, berth, config_map, hermetic};

/// The source is where people push; the other two are bare repositories beside it.
struct Three {
    fleet: Fleet,
}

impl Three {
    fn new() -> Three {
        let fleet = Fleet::new();
        let three = Three { fleet };
        for name in ["state", "statuses"] {
            three.ran(&["init", "-q", "--bare", three.path(name).to_str().unwrap()]);
        }
        // People push branches. Nobody pushes anything of berth's.
        three.fleet.hook("update", "case $1 in *berth*) echo source only >&2; exit 1;; esac");
        three
    }

    fn path(&self, name: &str) -> PathBuf {
        self.fleet.root().join(format!("{name}.git"))
    }

    fn address(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    #[track_caller]
    fn ran(&self, args: &[&str]) -> String {
        Ran::of(hermetic("git").args(args)).expect(0).out.trim_end().to_owned()
    }

    fn refs(&self, name: &str) -> Vec<String> {
        let listed =
            self.ran(&["-C", self.path(name).to_str().unwrap(), "for-each-ref", "--format=%(refname)"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// The flags of a daemon beside the state's remote.
    fn others(&self) -> [String; 4] {
        ["--source-remote".into(), self.address("fleet"), "--status-remote".into(), self.address("statuses")]
    }

    fn daemon(&self, copy: &str, more: &[&str]) -> Running {
        let others = self.others();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        Running::daemon_in(copy, "1", &self.fleet, self, &[&others, more].concat())
    }

    fn member(&self, cluster: &str) -> Running {
        let statuses = self.address("statuses");
        Running::member(&self.fleet, cluster, self, &["--status-remote", &statuses])
    }

    fn in_sync(&self) -> serde_json::Value {
        let state = self.path("state");
        let shown =
            Ran::of(hermetic("git").arg("-C").arg(state).args(["show", "refs/berth/report:report.json"]));
        let report: serde_json::Value = serde_json::from_str(&shown.out).unwrap_or_default();
        report["totals"]["in sync"].clone()
    }
}

impl Server for Three {
    fn access(&self) -> Vec<String> {
        vec!["--remote".to_owned(), self.address("state")]
    }
    fn start(&mut self) {}
    fn stop(&mut self) {}
}

#[test]
fn source_state_and_statuses_are_three_remotes_and_the_source_is_only_read() {
    let three = Three::new();
    let daemon = three.daemon("daemon", &["--preview", "feature/*"]);
    until("all have a folder", || three.refs("state").contains(&"refs/berth/clusters/c".to_owned()));
    let members = ["a", "b", "c"].map(|cluster| three.member(cluster));
    until("all are in sync", || three.in_sync() == 3);
    three.fleet.edit("two");
    until("members follow", || three.fleet.value("c").as_deref() == Some("two"));
    three.fleet.people.git(&["switch", "-qc", "feature/three"]);
    three.fleet.people.write("apps/web.yaml", config_map("web", "three", "{clusterSelector: {}}"));
    three.fleet.people.commit("three");
    let source = three.path("fleet");
    three.fleet.people.git(&["push", "-q", source.to_str().unwrap(), "HEAD:refs/heads/feature/three"]);
    let preview = "refs/heads/berth/preview/feature/three".to_owned();
    until("the branch has a preview", || three.refs("state").contains(&preview));
    until("the reports are summed up", || three.in_sync() == 3);
    for running in members.into_iter().chain([daemon]) {
        let (code, log) = running.stop();
        assert_eq!(code, 0, "{log}");
        assert!(!log.contains("\"WARN\"") && !log.contains("\"ERROR\""), "{log}");
    }
    assert_eq!(three.refs("fleet"), ["refs/heads/feature/three", "refs/heads/main"]);
    assert!(three.refs("statuses").iter().all(|name| name.starts_with("refs/berth/status/")));
    let state = three.refs("state");
    assert!(
        state.contains(&RENDERED.to_owned()) && !state.iter().any(|name| name.contains("main")),
        "{state:?}"
    );

    // In CI: a clone of the source, and the state by its address.
    let (clone, address) = (three.fleet.root().join("clone"), three.address("state"));
    three.ran(&["clone", "-q", source.to_str().unwrap(), clone.to_str().unwrap()]);
    three.ran(&["-C", clone.to_str().unwrap(), "switch", "-q", "feature/three"]);
    let ran = |args: &[&str]| {
        let mut command = berth();
        command.args(args).args(["--rendered", &address, "--repo"]).arg(&clone);
        Ran::of(&mut command)
    };
    let planned = ran(&["plan", "--base", "origin/main"]).expect(0).out;
    assert!(planned.contains("three"), "{planned}");
    let proven = ran(&["verify"]).expect(0);
    assert!(
        proven.err.contains("1 commit proven") || proven.err.contains("2 commits proven"),
        "{}",
        proven.err
    );
    // The state alone lacks what it was made of, and says so.
    let alone = three.fleet.root().join("alone");
    let state = three.path("state");
    three.ran(&["clone", "-q", "--mirror", state.to_str().unwrap(), alone.to_str().unwrap()]);
    let verify = || Ran::of(berth().args(["verify", "--repo"]).arg(&alone));
    assert!(verify().expect(6).out.contains("missing"));
    three.ran(&[
        "-C",
        alone.to_str().unwrap(),
        "fetch",
        "-q",
        source.to_str().unwrap(),
        "main:refs/heads/main",
    ]);
    verify().expect(0);
}

#[test]
fn each_remote_has_a_token_of_its_own() {
    let three = Three::new();
    let Some(server) = Https::new(three.fleet.root()) else { return };
    for name in ["state", "statuses"] {
        three.ran(&["-C", three.path(name).to_str().unwrap(), "config", "http.receivepack", "true"]);
    }
    let address = |name: &str| server.url().replace("/fleet.git", &format!("/{name}.git"));
    let token = three.fleet.root().join("token");
    let wrong = three.fleet.root().join("wrong-token");
    std::fs::write(&wrong, "wrong\n").unwrap();
    std::fs::set_permissions(&wrong, token.metadata().unwrap().permissions()).unwrap();
    let run = |[state, source, statuses]: [&Path; 3]| {
        let mut command = berth();
        command.args(["run", "--once", "--repo"]).arg(three.fleet.root().join("copies/run"));
        command.args(["--username", "ann", "--ca-file"]).arg(three.fleet.root().join("cert.pem"));
        command.args(["--remote", &address("state"), "--token-file"]).arg(state);
        command.args(["--source-remote", &address("fleet"), "--source-token-file"]).arg(source);
        command.args(["--status-remote", &address("statuses"), "--status-token-file"]).arg(statuses);
        Ran::of(&mut command)
    };
    // Without new reports, the last ones count.
    for (index, name, code) in [(0, "state", 6), (1, "fleet", 6), (2, "statuses", 0)] {
        let mut tokens = [token.as_path(); 3];
        tokens[index] = &wrong;
        let ran = run(tokens).expect(code);
        assert!(ran.err.contains(&format!("/{name}.git")), "{name}: {}", ran.err);
        assert!(ran.err.contains("refuses the credentials"), "{name}: {}", ran.err);
    }
    run([&token; 3]).expect(0);
    assert!(three.refs("state").contains(&RENDERED.to_owned()));
}

#[test]
fn a_source_that_is_away_or_misspelt_changes_nothing_and_a_new_disk_goes_on() {
    let three = Three::new();
    let once = |copy: &str, more: &[&str]| {
        let mut command = berth();
        command.args(["run", "--once", "--repo"]).arg(three.fleet.root().join("copies").join(copy));
        Ran::of(command.args(three.access()).args(three.others()).args(more))
    };
    once("first", &[]).expect(0);
    let tip = || three.ran(&["-C", three.path("state").to_str().unwrap(), "rev-parse", RENDERED]);
    let published = tip();
    let again = once("second", &[]).expect(0);
    assert!(again.out.contains("nothing to publish"), "{}", again.out);
    let ran = once("first", &["--source", "mian"]).expect(2);
    assert!(ran.err.contains("main"), "{}", ran.err);
    let (here, away) = (three.path("fleet"), three.fleet.root().join("away.git"));
    std::fs::rename(&here, &away).unwrap();
    let ran = once("first", &[]).expect(6);
    assert!(ran.err.contains("fleet.git"), "{}", ran.err);
    std::fs::rename(&away, &here).unwrap();
    assert_eq!(tip(), published);
    three.fleet.edit("two");
    once("second", &[]).expect(0);
    assert_ne!(tip(), published);
    let alone = Ran::of(berth().args(["run", "--once", "--source-remote", "x"])).expect(2);
    assert!(alone.err.contains("--remote"), "{}", alone.err);
}

#[test]
fn a_state_moves_to_a_repository_of_its_own_and_goes_on_from_the_same_commit() {
    let fleet = Fleet::new();
    fleet.run_once(&Folder::of(&fleet), &[]).expect(0);
    let tip = fleet.bare(&["rev-parse", RENDERED]);
    let state = fleet.root().join("state.git");
    let state = state.to_str().unwrap();
    fleet.bare(&["init", "-q", "--bare", state]);
    fleet.bare(&["push", "-q", state, RENDERED, "refs/berth/*:refs/berth/*"]);
    fleet.bare(&["update-ref", "-d", RENDERED]);
    let once = || {
        let mut command = berth();
        command.args(["run", "--once", "--remote", state, "--source-remote"]).arg(fleet.bare_path());
        Ran::of(command.arg("--repo").arg(fleet.root().join("copies/apart"))).expect(0).out
    };
    let first = once();
    assert!(first.contains("nothing to publish"), "{first}");
    fleet.edit("two");
    assert!(once().contains("as number 2"), "it goes on");
    let parent =
        Ran::of(hermetic("git").args(["-C", state, "rev-parse", &format!("{RENDERED}^")])).expect(0).out;
    assert_eq!(parent.trim(), tip);
}
