//! Small pushes that unfold to more than any machine holds: each costs its sender the place it stands at, and nobody else
//! anything.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::support::remote::{Fleet, Folder};
use crate::support::{RENDERED, Ran, Repo, config_map, hermetic, run, small_fleet};

/// Writes a tree of these lines, as `git ls-tree` prints them.
fn tree(folder: &Path, lines: &str) -> String {
    let mut git = hermetic("git");
    let git = git.current_dir(folder).arg("mktree").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut git = git.spawn().expect("git starts");
    git.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("git reads");
    let out = git.wait_with_output().expect("git ends");
    String::from_utf8(out.stdout).expect("an id").trim().to_owned()
}

/// Writes a tree of ten entries, each of ten, and so on: 10^10 files.
fn bomb(folder: &Path, blob: &str) -> String {
    let lines = |entry: &str| (0..10).map(|name| format!("{entry}\t{name}\n")).collect::<String>();
    let mut id = tree(folder, &lines(&format!("100644 blob {blob}")));
    for _ in 1..10 {
        id = tree(folder, &lines(&format!("040000 tree {id}")));
    }
    id
}

/// Commits the tree of a revision with a folder more, on top of it.
fn with_folder(repo: &Repo, revision: &str, name: &str, id: &str, message: &str) -> String {
    let lines = format!("{}\n040000 tree {id}\t{name}\n", repo.git(&["ls-tree", revision]));
    let id = tree(repo.path(), &lines);
    repo.git(&["commit-tree", &id, "-p", revision, "-m", message])
}

const TOO_LARGE: &str = "with this folder the tree is too large; it is not read";

#[test]
fn a_tree_that_unfolds_without_end_is_an_error_with_its_path_and_all_else_counts() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let id = bomb(repo.path(), &repo.git(&["rev-parse", "HEAD:apps/web.yaml"]));
    let bad = with_folder(&repo, "HEAD", "x", &id, "bomb");
    repo.git(&["update-ref", "refs/heads/bad", &bad]);
    for args in [&["validate", "--rev", "bad"][..], &["plan", "--base", "HEAD", "--head", "bad"]] {
        let ran = run(&[args, &["--repo", repo.arg()]].concat()).expect(1);
        assert!(ran.err.contains(&format!("x: error: {TOO_LARGE}")), "{}", ran.err);
    }
    // A branch that must be merged first is refused as a whole.
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("two");
    let ran = run(&["plan", "--base", "HEAD", "--head", "bad", "--repo", repo.arg()]).expect(1);
    assert!(ran.err.contains("`x`: the tree is too large"), "{}", ran.err);
    // What was merged anyway stops no other change, and removes nothing.
    let both = with_folder(&repo, "HEAD", "x", &id, "merged");
    repo.git(&["update-ref", "refs/heads/main", &both]);
    repo.publish().expect(1);
    let text = repo.git(&["show", &format!("{RENDERED}:clusters/a/shop/ConfigMap_web.yaml")]);
    assert!(text.contains("value: two"), "{text}");
}

#[test]
fn what_stood_in_a_folder_that_is_too_large_keeps_its_last_good_form() {
    let repo = small_fleet();
    repo.write("team/extra.yaml", config_map("extra", "one", "{clusterSelector: {}}"));
    repo.commit("extra");
    repo.publish().expect(0);
    let id = bomb(repo.path(), &repo.git(&["rev-parse", "HEAD:apps/web.yaml"]));
    let top = repo.git(&["ls-tree", "HEAD"]);
    let lines: String =
        top.lines().filter(|line| !line.ends_with("\tteam")).map(|line| format!("{line}\n")).collect();
    let bad = tree(repo.path(), &format!("{lines}040000 tree {id}\tteam\n"));
    let bad = repo.git(&["commit-tree", &bad, "-p", "HEAD", "-m", "bomb in its place"]);
    repo.git(&["update-ref", "refs/heads/main", &bad]);
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains(&format!("team: error: {TOO_LARGE}")), "{}", ran.err);
    let text = repo.git(&["show", &format!("{RENDERED}:clusters/a/shop/ConfigMap_extra.yaml")]);
    assert!(text.contains("value: one"), "{text}");
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_preview_of_a_tree_that_unfolds_without_end_says_why_there_is_none() {
    let fleet = Fleet::new();
    let server = Folder::of(&fleet);
    fleet.run_once(&server, &[]).expect(0);
    let blob = fleet.people.git(&["rev-parse", "HEAD:apps/web.yaml"]);
    let id = bomb(fleet.people.path(), &blob);
    let bad = with_folder(&fleet.people, "HEAD", "x", &id, "bomb");
    let url = fleet.bare_path().display().to_string();
    fleet.people.git(&["push", "-q", &url, &format!("{bad}:refs/heads/bad")]);
    fleet.edit("two");
    let ran = fleet.run_once(&server, &["--preview", "*"]).expect(0);
    assert!(ran.out.contains("previewed bad on berth/preview/bad"), "{}", ran.out);
    let message = fleet.bare(&["log", "-1", "--format=%B", "refs/heads/berth/preview/bad"]);
    assert!(message.contains("There is no state to show: `x`: the tree is too large"), "{message}");
    let text = fleet.bare(&["show", &format!("{RENDERED}:clusters/a/shop/ConfigMap_web.yaml")]);
    assert!(text.contains("value: two"), "{text}");
}

#[test]
fn a_rendered_branch_that_unfolds_without_end_is_undone_and_disproved() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let good = repo.id(RENDERED);
    let id = bomb(repo.path(), &repo.git(&["rev-parse", "HEAD:apps/web.yaml"]));
    let clusters = repo.git(&["ls-tree", &format!("{RENDERED}:clusters")]);
    let clusters = tree(repo.path(), &format!("{clusters}\n040000 tree {id}\tz\n"));
    let top = repo.git(&["ls-tree", RENDERED]);
    let lines = top.lines().filter(|line| !line.ends_with("\tclusters")).map(|line| format!("{line}\n"));
    let bad = tree(repo.path(), &format!("{}040000 tree {clusters}\tclusters\n", lines.collect::<String>()));
    let claims = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    for message in ["a change by hand", &claims] {
        let bad = repo.git(&["commit-tree", &bad, "-p", &good, "-m", message]);
        repo.git(&["update-ref", RENDERED, &bad]);
        run(&["verify", &bad, "--most", "3", "--repo", repo.arg()]).expect(3);
        run(&["status", "--repo", repo.arg()]);
        let ran = repo.publish();
        assert!([0, 5].contains(&ran.code), "{}", ran.err);
        repo.git(&["update-ref", RENDERED, &good]);
    }
}

/// Points a cluster's ref to a commit of this tree that claims to be berth's.
fn forge(repo: &Repo, id: &str) -> Ran {
    let message = "berth: objects of a\n\nBerth-Cluster: a\nBerth-Seq: 9\n";
    let commit = repo.git(&["commit-tree", id, "-m", message]);
    repo.git(&["update-ref", "refs/berth/clusters/a", &commit]);
    let target = tempfile::tempdir().expect("a folder");
    repo.sync("a", target.path(), &[])
}

#[test]
fn a_member_refuses_a_folder_that_is_too_large_and_a_file_that_is_too_long() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let small = repo.git(&["rev-parse", "HEAD:apps/web.yaml"]);
    let ran = forge(&repo, &bomb(repo.path(), &small)).expect(5);
    assert!(ran.err.contains("the folder of the cluster exceeds the limit at `"), "{}", ran.err);
    repo.write(".git/large", vec![b'#'; 9 << 20]);
    let large = repo.git(&["hash-object", "-w", ".git/large"]);
    let many: String = (0..300).map(|name| format!("100644 blob {large}\tConfigMap_{name}.yaml\n")).collect();
    let many = tree(repo.path(), &many);
    let ran = forge(&repo, &tree(repo.path(), &format!("040000 tree {many}\tshop\n"))).expect(5);
    assert!(
        ran.err.contains("the folder of the cluster exceeds the limit at `shop/ConfigMap_"),
        "{}",
        ran.err
    );
}

#[test]
fn of_thousands_of_errors_the_first_hundred_are_shown_with_a_count() {
    let repo = small_fleet();
    let bad = |number: usize| config_map(&format!("m{number}"), "one", "{clusterSelectr: {}}") + "---\n";
    repo.write("apps/bad.yaml", (0..150).map(bad).collect::<String>());
    let ran = run(&["validate", "--repo", repo.arg()]).expect(1);
    assert_eq!(ran.err.matches(": error: ").count(), 100, "{}", ran.err);
    assert!(ran.err.contains("and 50 more errors"), "{}", ran.err);
    let all = run(&["validate", "-o", "json", "--repo", repo.arg()]).expect(1).json();
    assert_eq!(all["diagnostics"].as_array().map(Vec::len), Some(150), "programs get all of them");
}
