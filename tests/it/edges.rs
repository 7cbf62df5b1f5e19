//! The edges of the command line: streams that fail, repositories in odd places, misspelt names, hostile text.

use crate::support::{RENDERED, Ran, Repo, berth, cluster, fixtures, namespace, run, small_fleet};

#[test]
fn a_misspelt_group_removes_no_cluster() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write(
        "clusters/a.yaml",
        cluster("a", &[("env", "prod")]).replace("core.kubefed.io", "core.kubfed.io"),
    );
    repo.commit("slip");
    let ran = repo.publish().expect(1);
    assert!(
        ran.err.contains("clusters/a.yaml:1:1: error") && ran.err.contains("did you mean `core.kubefed.io`?")
    );
    assert!(ran.out.starts_with("no changes\n"), "{}", ran.out);
}

#[test]
fn a_hint_has_a_line_of_its_own_in_the_status() {
    let repo = small_fleet();
    repo.write("clusters/a.yaml", cluster("a", &[]).replace("core.kubefed.io", "core.kubfed.io"));
    repo.commit("slip");
    repo.publish().expect(1);
    let status = run(&["status", "--repo", repo.arg()]);
    assert!(status.out.contains("\n    hint: did you mean `core.kubefed.io`?\n"), "{}", status.out);
}

#[test]
fn a_misspelt_member_becomes_no_cluster() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let target = tempfile::tempdir().unwrap();
    let ran = repo.sync("aa", target.path(), &[]);
    assert!(ran.code != 0 && ran.err.contains("did you mean `a`?"), "{}", ran.err);
    let status = run(&["status", "--repo", repo.arg()]);
    assert!(!status.out.contains("\naa "), "{}", status.out);
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_can_not_be_written_are_an_error() {
    let repo = small_fleet();
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    for args in [&["decide", "-o", "json", "--repo", repo.arg()][..], &["--help"]] {
        let ran = Ran::of(berth().args(args).stdout(full())).expect(6);
        assert!(ran.err.contains("writing to the standard output"), "{}", ran.err);
    }
}

#[test]
fn a_reader_that_leaves_early_changes_no_exit_code() {
    let repo = small_fleet();
    repo.write("apps/bad.yaml", namespace("bad").replace("placement", "placment"));
    repo.commit("bad");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ran = Ran::of(berth().args(["run", "--once", "--repo", repo.arg()]).stdout(writer)).expect(1);
    assert!(!ran.err.contains("writing"), "{}", ran.err);
    assert!(!repo.id(RENDERED).is_empty(), "and the work is done");
}

#[test]
fn a_rendered_branch_of_somebody_else_ends_every_command_alike() {
    let repo = small_fleet();
    repo.git(&["branch", "berth/rendered"]);
    for args in [&["run", "--once"][..], &["plan"], &["status"], &["decide"], &["validate"]] {
        let args = [args, &["--repo", repo.arg()]].concat();
        let ran = run(&args).expect(5);
        assert!(ran.err.contains("git branch -m berth/rendered"), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_revision_that_names_nothing_is_usage() {
    let repo = small_fleet();
    let ran = run(&["decide", "--repo", repo.arg(), "--rev", "mian"]).expect(2);
    assert!(ran.err.contains("did you mean `main`?"), "{}", ran.err);
    for odd in ["a..b", "", "HEAD:apps", "ma in", "@{"] {
        run(&["decide", "--repo", repo.arg(), "--rev", odd]).expect(2);
    }
    run(&["plan", "--repo", repo.arg(), "--base", "mian"]).expect(2);
}

#[test]
fn a_bare_repository_is_no_empty_fleet() {
    let repo = small_fleet();
    let bare = tempfile::tempdir().expect("a folder");
    let bare_arg = bare.path().to_string_lossy();
    repo.git(&["clone", "-q", "--bare", ".", &bare_arg]);
    for folder in [&*bare_arg, &format!("{}/.git", repo.arg())] {
        for command in ["decide", "validate"] {
            let ran = run(&[command, "--repo", folder]).expect(2);
            assert!(ran.err.contains("--rev HEAD"), "{}", ran.err);
        }
        let ran = run(&["decide", "--repo", folder, "--rev", "HEAD"]).expect(0);
        assert!(ran.out.contains("shop/web"), "{}", ran.out);
    }
}

#[test]
fn a_folder_inside_a_repository_is_read_alone_and_says_so() {
    let repo = small_fleet();
    let root = repo.path().canonicalize().expect("it is there");
    let apps = format!("{}/apps", repo.arg());
    let ran = run(&["decide", "--repo", &apps]).expect(0);
    assert!(ran.err.contains(&format!("inside the repository {}", root.display())), "{}", ran.err);
    assert!(!run(&["decide", "--repo", repo.arg()]).expect(0).err.contains("inside the repository"));
    let ran = run(&["run", "--once", "--repo", &apps]).expect(6);
    assert!(ran.err.contains(&format!("--repo {}", root.display())), "{}", ran.err);
    assert!(!ran.err.contains("git init"), "{}", ran.err);
}

#[test]
fn a_folder_below_the_root_is_no_fleet_of_its_own() {
    let repo = small_fleet();
    let apps = repo.path().join("apps");
    let below = |arguments: &[&str]| Ran::of(berth().current_dir(&apps).args(arguments));
    for arguments in [&["decide"][..], &["explain", "shop/web"], &["validate"], &["plan"]] {
        let mut at_root = arguments.to_vec();
        at_root.extend(["--repo", repo.arg()]);
        let (ran, root) = (below(arguments).expect(0), run(&at_root).expect(0));
        assert_eq!(ran.out, root.out, "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains("inside the repository"), "{}", ran.err);
    }
    assert_eq!(below(&["validate", "."]).expect(0).out, run(&["validate", repo.arg()]).expect(0).out);
    below(&["run", "--once"]).expect(0);
    assert!(below(&["status"]).expect(0).out.contains("published number 1"));
    // A fleet that is no repository has its root at its berth.yaml.
    std::fs::remove_dir_all(repo.path().join(".git")).expect("a repository");
    assert!(!below(&["decide"]).expect(0).out.contains("a, b, c"));
    repo.write("berth.yaml", "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\n");
    assert!(below(&["decide"]).expect(0).out.contains("a, b, c"));
}

#[test]
fn a_retired_group_removes_no_cluster() {
    let member = "apiVersion: fleet.azure.com/v1alpha1\nkind: MemberCluster\nmetadata: {name: a}\n";
    let other = "apiVersion: fleet.azure.com/v1alpha1\nkind: Membership\nmetadata: {name: a}\n";
    let repo = Repo::with(&[("a.yaml", member), ("b.yaml", other)]);
    let ran = run(&["validate", repo.arg()]).expect(1);
    assert!(
        ran.err.contains("a.yaml:1:1: error: the kind `MemberCluster` is known, but not in"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("did you mean `cluster.kubernetes-fleet.io`?"), "{}", ran.err);
    assert!(ran.err.contains("b.yaml:1:1: warning: no placement selects this `Membership`"), "{}", ran.err);
}

#[test]
fn a_tag_does_not_stand_in_for_the_source_branch() {
    let repo = small_fleet();
    let first = repo.id("HEAD");
    repo.git(&["tag", "main"]);
    repo.write("apps/more.yaml", namespace("more"));
    let second = repo.commit("more");
    let ran = run(&["run", "--once", "--repo", repo.arg(), "--source", "main"]).expect(0);
    assert!(ran.err.contains(&second) && !ran.err.contains(&first), "{}", ran.err);
    run(&["run", "--once", "--repo", repo.arg(), "--source", "refs/heads/main"]).expect(0);
}

#[test]
fn no_spelling_makes_the_rendered_branch_its_own_source() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.git(&["symbolic-ref", "refs/heads/alias", RENDERED]);
    for name in ["berth/rendered", RENDERED, "heads/berth/rendered", "berth/rendered~0", "alias", "@"] {
        let ran = run(&["run", "--once", "--repo", repo.arg(), "--source", name]).expect(2);
        assert!(ran.err.contains("hint"), "{name}: {}", ran.err);
    }
    repo.git(&["checkout", "-q", "berth/rendered"]);
    run(&["run", "--once", "--repo", repo.arg()]).expect(2);
}

#[test]
fn a_misspelt_source_ends_a_daemon_at_once() {
    let repo = small_fleet();
    let ran = run(&["run", "--repo", repo.arg(), "--source", "mian"]).expect(2);
    assert!(ran.err.contains("did you mean `main`?"), "{}", ran.err);
    let fresh = Repo::new();
    let ran = run(&["run", "--once", "--repo", fresh.arg(), "--source", "trunk"]).expect(6);
    assert!(ran.err.contains("no commit yet"), "a daemon waits for the first push: {}", ran.err);
}

#[test]
fn names_and_subjects_can_not_command_a_terminal() {
    let repo = small_fleet();
    repo.write("apps/odd.yaml", namespace("odd").replace("placement:", "\"pl\\e[2Jacement\":"));
    repo.commit("subject \x1b]0;gone\x07");
    for args in [&["decide", "--rev", "HEAD", "--color", "always"][..], &["run", "--once"], &["validate"]] {
        let ran = run(&[args, &["--repo", repo.arg()]].concat()).expect(1);
        let shown = format!("{}{}", ran.out, ran.err);
        assert!(
            !shown.contains("\x1b[2J") && !shown.contains("\x1b]") && !shown.contains('\x07'),
            "{shown:?}"
        );
        assert!(shown.contains("pl\\u{1b}[2Jacement"), "{shown:?}");
    }
}

#[test]
fn json_and_yaml_have_one_shape() {
    let repo = small_fleet();
    repo.write("apps/bad.yaml", namespace("bad").replace("placement", "placment"));
    for args in [&["explain", "web"][..], &["validate"], &["decide"]] {
        let shape = |format: &str| {
            let ran = run(&[args, &["--repo", repo.arg(), "-o", format]].concat());
            serde_yaml::from_str::<serde_json::Value>(&ran.out).expect("JSON is YAML")
        };
        let json = shape("json");
        assert!(json["placements"].is_array() || json["diagnostics"].is_array(), "{json}");
        assert_eq!(json, shape("yaml"), "{args:?}");
    }
    let ran = run(&["plan", "--repo", repo.arg(), "--diff", "-o", "json"]).expect(2);
    assert!(ran.err.contains("--diff"), "{}", ran.err);
}

#[test]
fn a_moment_out_of_range_is_told_the_range() {
    let fleet = fixtures("demo");
    let fleet = fleet.to_string_lossy();
    let ran = run(&["decide", "--repo", &fleet, "--now", "9999-12-31T23:59:59Z"]).expect(2);
    assert!(ran.err.contains("RFC 3339") && ran.err.contains("9999"), "{}", ran.err);
}
