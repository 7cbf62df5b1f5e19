//! The command line itself: help, exit codes, streams.

use crate::support::{COMMANDS, Repo, cluster, config_map, namespace, run, small_fleet};

#[test]
fn every_command_has_help_with_an_example() {
    for command in COMMANDS {
        let ran = run(&[command, "--help"]).expect(0);
        assert!(ran.out.contains("Example"), "{command}: {}", ran.out);
    }
    assert!(run(&["--help"]).expect(0).out.contains("Exit codes"));
}

#[test]
fn a_wrong_flag_is_usage() {
    run(&["decide", "--no-such-flag"]).expect(2);
    run(&["no-such-command"]).expect(2);
    run(&["decide", "--now", "yesterday"]).expect(2);
}

#[test]
fn a_missing_repository_can_not_be_reached() {
    let ran = run(&["run", "--once", "--repo", "/nonexistent/fleet"]).expect(6);
    assert!(ran.err.contains("/nonexistent/fleet"), "{}", ran.err);
    run(&["decide", "--repo", "/nonexistent/fleet"]).expect(6);
}

#[test]
fn decide_says_on_stderr_what_it_read_and_prints_json_alone() {
    let repo = small_fleet();
    let tree = run(&["decide", "--repo", repo.arg(), "-o", "json"]).expect(0);
    assert!(tree.err.lines().next().is_some_and(|line| line.contains("working tree")), "{}", tree.err);
    assert!(tree.json()["placements"].is_array());
    let commit = run(&["decide", "--repo", repo.arg(), "--rev", "main"]).expect(0);
    assert!(commit.err.contains(&repo.id("main")[..10]), "{}", commit.err);
}

#[test]
fn a_revision_is_read_from_git_and_not_from_the_folder() {
    let repo = small_fleet();
    repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: a}]}"));
    let clusters = |args: &[&str]| {
        let json = run(args).expect(0).json();
        let web = json["placements"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|p| p["name"] == "web")
            .expect("web")
            .clone();
        web["clusters"].as_array().expect("a list").len()
    };
    assert_eq!(clusters(&["decide", "--repo", repo.arg(), "-o", "json"]), 1);
    assert_eq!(clusters(&["decide", "--repo", repo.arg(), "-o", "json", "--rev", "HEAD"]), 3);
}

#[test]
fn explain_names_the_object_that_removed_a_cluster() {
    let repo = Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[("env", "prod")])),
        ("clusters/b.yaml", &cluster("b", &[("env", "dev")])),
        ("apps/shop.yaml", &namespace("shop").replace("{clusterSelector: {}}", "{clusters: [{name: a}]}")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
    ]);
    let ran = run(&["explain", "FederatedConfigMap/shop/web", "--repo", repo.arg()]).expect(0);
    let line = ran.out.lines().find(|line| line.trim_start().starts_with('b')).expect("a line for b");
    assert!(line.contains("FederatedNamespace"), "{}", ran.out);
    let ran = run(&["explain", "web", "--repo", repo.arg(), "--cluster", "a"]).expect(0);
    assert!(
        ran.out.contains('a') && !ran.out.lines().any(|line| line.trim_start().starts_with("b ")),
        "{}",
        ran.out
    );
    let ran = run(&["explain", "wob", "--repo", repo.arg()]);
    assert!(ran.code == 2 && ran.err.contains("did you mean"), "{}", ran.err);
}

#[test]
fn plan_fails_on_removals_only_where_asked() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: a}]}"));
    repo.commit("narrow");
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert!(plan.out.contains("  - FederatedConfigMap shop/web leaves b and c (2 objects)"), "{}", plan.out);
    run(&["plan", "--repo", repo.arg(), "--fail-on", "removals"]).expect(3);
    run(&["plan", "--repo", repo.arg(), "--base", "HEAD", "--head", "HEAD", "--fail-on", "changes,held"])
        .expect(0);
}

#[test]
fn init_starts_a_fleet_that_validates() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fleet");
    let path = path.to_str().expect("text");
    run(&["init", path]).expect(0);
    run(&["validate", path]).expect(0);
    let ran = run(&["decide", "--repo", path]).expect(0);
    assert!(ran.out.contains("greeting") && ran.out.contains("oslo, turin"), "{}", ran.out);
    run(&["init", path]).expect(2);
}

#[test]
fn the_output_of_render_is_no_part_of_the_fleet() {
    let repo = small_fleet();
    let out = repo.path().join("out").display().to_string();
    run(&["render", "--repo", repo.arg(), "--out", &out]).expect(0);
    let told = run(&["validate", repo.arg()]).expect(0).err;
    assert!(told.contains("out: note: the output of `berth render` is not read"), "{told}");
    run(&["render", "--repo", repo.arg(), "--out", &out]).expect(0);
    let plan = run(&["plan", "--first", "--repo", repo.arg()]).expect(0).err;
    assert!(!plan.contains("uncommitted"), "{plan}");
    repo.commit("all of it");
    let plan = run(&["plan", "--first", "--repo", repo.arg()]).expect(0);
    assert!(plan.err.contains("out: note:"), "{}", plan.err);
}

#[test]
fn render_refuses_a_folder_that_holds_something_else() {
    let repo = small_fleet();
    let out = tempfile::tempdir().expect("a folder");
    std::fs::write(out.path().join("precious.txt"), "x").expect("a file");
    run(&["render", "--repo", repo.arg(), "--out", out.path().to_str().expect("text")]).expect(2);
    assert!(out.path().join("precious.txt").exists());
    let inner = out.path().join("inner");
    let inner = inner.to_str().expect("text");
    run(&["render", "--repo", repo.arg(), "--out", inner]).expect(0);
    run(&["render", "--repo", repo.arg(), "--out", inner]).expect(0);
}
