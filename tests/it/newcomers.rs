//! What people meet in their first hour: an existing fleet, a first large run, a member that is gone.

use crate::support::{Ran, Repo, berth, cluster, config_map, namespace, run, small_fleet};

#[test]
fn init_adds_nothing_to_a_fleet_that_is_there() {
    let repo = small_fleet();
    let before = repo.git(&["status", "--porcelain"]);
    let ran = run(&["init", repo.arg()]).expect(2);
    assert!(ran.err.contains("already describes a fleet: cluster a in clusters/a.yaml:1:1"), "{}", ran.err);
    assert_eq!(repo.git(&["status", "--porcelain"]), before);
    // A file that cannot be read may be one of a fleet.
    let broken = Repo::with(&[("a.yaml", "kind: [\n")]);
    let ran = run(&["init", broken.arg()]).expect(2);
    assert!(
        ran.err.contains("may describe a fleet already, in a file that cannot be read in a.yaml:"),
        "{}",
        ran.err
    );
    // What is no fleet does not stand in the way.
    let other = Repo::with(&[("main.go", "package main\n"), ("values.yaml", "a: b\n")]);
    run(&["init", other.arg()]).expect(0);
    run(&["validate", other.arg()]).expect(0);
}

#[test]
fn a_first_run_over_many_clusters_fits_a_screen_unless_asked() {
    let ran = large_fleet().publish().expect(0);
    assert!(ran.out.lines().count() <= 24, "{} lines", ran.out.lines().count());
    for words in [
        "0 removed, 0 changed, 1260 added in 60 clusters",
        "60 clusters with their first objects: c00, c01, c02, c03, c04 and 55 more",
        "0 removed, 0 changed, 60 added in 60 clusters",
        "and 9 other workloads",
        "-v",
        "published ",
    ] {
        assert!(ran.out.contains(words), "no `{words}` in\n{}", ran.out);
    }
    let repo = large_fleet();
    let whole = run(&["run", "--once", "-v", "--repo", repo.arg()]).expect(0);
    assert!(whole.out.lines().count() > 1260, "{}", whole.out.lines().count());
    // A small one is shown whole, as ever.
    let small = small_fleet().publish().expect(0);
    assert!(small.out.contains("  + a: ConfigMap shop/web"), "{}", small.out);
}

#[test]
fn a_plan_over_many_clusters_fits_a_screen_also_where_much_is_held() {
    let repo = large_fleet();
    let plan = |flags: &[&str]| run(&[&["plan", "--repo", repo.arg()], flags].concat()).expect(0);
    let lines = |ran: &Ran| ran.out.lines().count();
    let first = plan(&[]);
    assert!(lines(&first) <= 24, "{} lines", lines(&first));
    for words in
        ["1260 objects added in 60 of 60 clusters", "21 workloads join all 60 clusters (1260 objects)"]
    {
        assert!(first.out.contains(words), "no `{words}` in\n{}", first.out);
    }
    // Programs get every change.
    let json = plan(&["-o", "json"]).json();
    let changes =
        json["workloads"].as_array().unwrap().iter().map(|one| one["changes"].as_array().unwrap().len());
    assert_eq!(changes.sum::<usize>(), 1260);
    // Equal differences are shown once.
    let diff = plan(&["--diff"]);
    assert_eq!(diff.out.matches("\n+++ ").count(), 21);

    // Everything that is held is named, however many workloads that are.
    repo.publish().expect(0);
    for n in 0..20 {
        repo.write(&format!("m{n}.yaml"), config_map(&format!("m{n}"), "one", "{clusters: []}"));
    }
    repo.commit("nowhere");
    let held = plan(&[]);
    let told = "20 workloads held; no changes";
    assert!(held.out.starts_with(told) && held.out.contains("\nBerth-Allow-Delete: "), "{}", held.out);
    assert!(
        held.out.contains("held: 20 workloads would leave all 60 clusters (1200 objects)"),
        "{}",
        held.out
    );
    assert!(lines(&held) <= 40, "{} lines", lines(&held));
    let json = plan(&["-o", "json"]).json();
    assert_eq!(json["held"].as_array().map(Vec::len), Some(20));
    assert_eq!(json["counts"]["removed"], 0);
    run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(5);
}

/// A fleet of 60 clusters, each with 21 objects.
fn large_fleet() -> Repo {
    let repo = Repo::new();
    let clusters: Vec<String> = (0..60).map(|n| cluster(&format!("c{n:02}"), &[])).collect();
    repo.write("clusters.yaml", clusters.join("---\n"));
    repo.write("shop.yaml", namespace("shop"));
    for n in 0..20 {
        repo.write(&format!("m{n}.yaml"), config_map(&format!("m{n}"), "one", "{clusterSelector: {}}"));
    }
    repo.commit("many");
    repo
}

#[test]
fn status_tells_a_member_that_is_gone_and_a_source_that_nobody_processed() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let folder = tempfile::tempdir().unwrap();
    repo.sync("a", folder.path(), &[]).expect(0);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("two");
    repo.write("apps/web.yaml", config_map("web", "three", "{clusterSelector: {}}"));
    let last = repo.commit("three");
    let pending = run(&["status", "--repo", repo.arg()]).expect(0);
    let line = format!("not processed yet: 2 commits of main, up to {}", &last[..10]);
    assert!(pending.out.contains(&line), "{}", pending.out);
    assert_eq!(run(&["status", "--repo", repo.arg(), "-o", "json"]).json()["pending"]["commits"], 2);

    report_from(&repo, 80);
    repo.publish().expect(0);
    let status = run(&["status", "--repo", repo.arg()]).expect(0);
    assert!(!status.out.contains("not processed yet"), "{}", status.out);
    let state = |repo: &Repo| {
        let json = run(&["status", "--repo", repo.arg(), "-o", "json"]).json();
        json["fleet"]["clusters"][0]["state"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(state(&repo), "no answer");
    let status = run(&["status", "--repo", repo.arg()]).expect(0);
    // A slow machine takes its time to ask.
    assert!((80..140).any(|ago| status.out.contains(&format!("{ago} s ago"))), "{}", status.out);
    // One that has just reported may be at work.
    repo.sync("a", folder.path(), &[]).expect(0);
    assert_eq!(state(&repo), "in sync");
    repo.write("apps/web.yaml", config_map("web", "four", "{clusterSelector: {}}"));
    repo.commit("four");
    repo.publish().expect(0);
    assert_eq!(state(&repo), "behind");
}

/// Rewrites what the member reported as if it had done so some seconds ago.
fn report_from(repo: &Repo, seconds: i64) {
    let name = "refs/berth/status/a";
    let text = repo.git(&["show", &format!("{name}:status.yaml")]);
    let at = |ago: i64| {
        let moment =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
        let ran = Ran::of(crate::support::hermetic("date").args([
            "-u",
            "-d",
            &format!("@{}", moment - ago),
            "+%Y-%m-%dT%H:%M:%SZ",
        ]));
        ran.out.trim().to_owned()
    };
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.split_once(": ") {
            Some(("reported", _)) => format!("reported: \"{}\"", at(seconds)),
            Some(("nextDue", _)) => format!("nextDue: \"{}\"", at(seconds - 600)),
            _ => line.to_owned(),
        })
        .collect();
    repo.write("status.yaml", lines.join("\n") + "\n");
    let blob = repo.git(&["hash-object", "-w", "status.yaml"]);
    std::fs::remove_file(repo.path().join("status.yaml")).unwrap();
    repo.write("entries", format!("100644 blob {blob}\tstatus.yaml\n"));
    let tree =
        Ran::of(crate::support::hermetic("sh").current_dir(repo.path()).args(["-c", "git mktree < entries"]));
    std::fs::remove_file(repo.path().join("entries")).unwrap();
    let commit = repo.git(&["commit-tree", "-m", "status", tree.out.trim()]);
    repo.git(&["update-ref", name, &commit]);
}

#[test]
fn faults_of_the_fleet_are_logged_as_errors_with_their_place() {
    let repo = small_fleet();
    repo.write("apps/broken.yaml", "kind: ConfigMap\nmetadata: [\n");
    repo.commit("broken");
    let daemon = crate::daemon::Daemon::start(&repo);
    let line = daemon.wait_for(&["\"ERROR\"", "apps/broken.yaml"]);
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["file"], "apps/broken.yaml", "{line}");
    assert!(json["line"].as_u64().is_some_and(|line| line > 0) && json["column"].is_u64(), "{line}");
    assert!(!json["message"].as_str().unwrap().contains("apps/broken.yaml"), "{line}");
    assert_eq!(daemon.stop(), 0);
}

#[test]
fn no_line_of_a_syncers_log_has_a_key_twice() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let folder = tempfile::tempdir().unwrap();
    let target = format!("dir:{}", folder.path().display());
    let mut command = berth();
    command.args([
        "sync",
        "--log-format",
        "json",
        "--cluster",
        "a",
        "--repo",
        repo.arg(),
        "--target",
        &target,
    ]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let line = std::io::BufRead::lines(stderr)
        .map_while(Result::ok)
        .find(|line| line.contains("\"syncing\""))
        .unwrap_or_default();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(line.matches("\"target\":").count(), 1, "{line}");
    assert!(line.contains("\"place\":\"dir:"), "{line}");
}

#[test]
fn names_of_clusters_and_placements_are_completed() {
    let repo = small_fleet();
    let complete = |words: &[&str]| {
        let mut command = berth();
        command.current_dir(repo.path()).env("BERTH_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        let ran = Ran::of(command.arg("--").args(words)).expect(0);
        ran.out.lines().map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(complete(&["berth", "cordon", ""])[..3], ["a", "b", "c"]);
    assert!(complete(&["berth", "explain", "we"]).contains(&"web".to_owned()));
    assert!(complete(&["berth", "explain", "web", "--cluster", ""]).contains(&"c".to_owned()));
    // A fleet that cannot be read completes nothing and says nothing.
    repo.write("clusters/a.yaml", "kind: [\n");
    let mut command = berth();
    command.current_dir(repo.path()).env("BERTH_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2");
    let ran = Ran::of(command.args(["--", "berth", "cordon", ""])).expect(0);
    assert_eq!(ran.err, "");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).expect(0).out;
        assert!(script.contains("BERTH_COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn a_repository_inside_the_fleet_is_no_part_of_it() {
    let repo = small_fleet();
    let inner = repo.path().join("inner");
    run(&["init", inner.to_str().expect("text")]).expect(0);
    let ran = run(&["validate", repo.arg()]).expect(0);
    assert!(ran.err.contains("inner: warning: a submodule is not read"), "{}", ran.err);
    assert!(!ran.err.contains("twice"), "{}", ran.err);
}

#[test]
fn a_first_sync_of_many_objects_fits_a_screen_unless_asked() {
    let maps: String = (0..50)
        .map(|n| format!("---\n{}", config_map(&format!("m{n:02}"), "one", "{clusters: [{name: a}]}")))
        .collect();
    let repo = Repo::with(&[
        ("a.yaml", &cluster("a", &[])),
        ("shop.yaml", &namespace("shop")),
        ("maps.yaml", &maps),
    ]);
    repo.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let target = format!("dir:{}", folder.path().join("a").display());
    let sync = |more: &[&str]| {
        let args =
            ["sync", "--once", "--dry-run", "--cluster", "a", "--repo", repo.arg(), "--target", &target];
        run(&[&args, more].concat()).expect(0).out
    };
    let short = sync(&[]);
    assert!(short.starts_with("would make 51 writes, 0 removals, 0 unchanged\n"), "{short}");
    assert!(
        short.lines().count() <= 32 && short.contains("  and 21 other writes (-v names them)"),
        "{short}"
    );
    assert_eq!(sync(&["-v"]).lines().count(), 52);
}
