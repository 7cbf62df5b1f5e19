//! The page on a branch: `berth run --site`.

use std::path::Path;

use super::Page;
use crate::daemon::Daemon;
use crate::support::remote::{Fleet, Folder, Running};
use crate::support::removals::report;
use crate::support::wait::until;
use crate::support::{Ran, Repo, config_map, hermetic, run, run_at, small_fleet};
use berth_base::model::Timestamp;
use berth_site::{CellState, Site};

const BRANCH: &str = "refs/heads/berth/site";

/// Runs a pass that keeps the page on this branch.
fn pass(repo: &Repo, branch: &str) -> Ran {
    run(&["run", "--once", "--repo", repo.arg(), "--site", branch])
}

/// Returns the files of the branch in a folder, read as a page.
fn page(git_dir: &Path) -> (tempfile::TempDir, Page) {
    let folder = tempfile::tempdir().expect("a folder");
    let archive =
        hermetic("git").arg("--git-dir").arg(git_dir).args(["archive", BRANCH]).output().expect("git");
    let file = folder.path().join("page.tar");
    std::fs::write(&file, archive.stdout).expect("a file");
    let unpacked = hermetic("tar").current_dir(folder.path()).args(["xf", "page.tar"]).status();
    assert!(unpacked.expect("tar").success());
    std::fs::remove_file(file).expect("removed");
    let page = Page::read(folder.path());
    (folder, page)
}

fn tip(repo: &Repo) -> String {
    repo.git(&["rev-parse", BRANCH])
}

fn edit(repo: &Repo, value: &str) {
    repo.write("apps/web.yaml", config_map("web", value, "{clusterSelector: {}}"));
    repo.commit(value);
}

#[test]
fn a_branch_has_the_page_and_moves_only_when_the_page_changes() {
    let repo = small_fleet();
    let ran = pass(&repo, "berth/site").expect(0);
    assert!(ran.out.contains("wrote the page to berth/site ("), "{}", ran.out);
    let git = repo.path().join(".git");
    let (folder, first) = page(&git);
    assert!(folder.path().join(".nojekyll").is_file() && folder.path().join("index.html").is_file());
    assert_eq!((first.head.shown.sequence, first.placements().len()), (1, 2));
    let out = folder.path().join("out");
    run(&["site", "--repo", repo.arg(), "--out", super::arg(&out)]).expect(0);
    assert_eq!(Page::read(&out).head.files, first.head.files, "the folder of `site` has the same page");
    let old = tip(&repo);
    for _ in 0..2 {
        let idle = pass(&repo, "berth/site").expect(0);
        assert!(!idle.out.contains("wrote the page"), "{}", idle.out);
        assert_eq!(tip(&repo), old);
    }
    edit(&repo, "two");
    pass(&repo, "berth/site").expect(0);
    assert_eq!(repo.git(&["rev-parse", &format!("{BRANCH}^")]), old);
    assert_eq!(page(&git).1.head.shown.sequence, 2);
    let changed = repo.changed(&old, BRANCH);
    assert!(changed.contains(&"data/head.js".to_owned()), "{changed:?}");
    assert!(!changed.iter().any(|path| path.starts_with("page/") || path.contains("map-")), "{changed:?}");
    assert_eq!(repo.git(&["log", "-1", "--format=%G? %B", BRANCH]), "N Show publication 2");
    // The branch is nothing that a plan or a proof looks at.
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_page_that_somebody_damaged_is_mended() {
    let repo = small_fleet();
    pass(&repo, "berth/site").expect(0);
    let old = tip(&repo);
    let tree = repo.git(&["rev-parse", &format!("{BRANCH}^{{tree}}")]);
    let entries = repo.git(&["ls-tree", &tree]);
    let fewer: String = entries
        .lines()
        .filter(|line| !line.ends_with("index.html"))
        .map(|line| format!("{line}\n"))
        .collect();
    let tree = crate::support::removals::feed(&repo, &["mktree"], &fewer);
    let damaged = repo.git(&["commit-tree", &tree, "-m", "damaged", "-p", &old]);
    repo.git(&["update-ref", BRANCH, &damaged]);
    let mended = pass(&repo, "berth/site").expect(0);
    assert!(mended.out.contains("1 file"), "{}", mended.out);
    assert_eq!(repo.git(&["diff", "--name-only", &old, BRANCH]), "");
}

#[test]
fn a_page_follows_reports_and_time() {
    let repo = small_fleet();
    pass(&repo, "berth/site").expect(0);
    let git = repo.path().join(".git");
    assert!(!page(&git).1.head.attention.iter().any(|item| item.title.contains("fails")));
    let problem = "  problems: [{kind: ConfigMap, namespace: shop, name: web, message: down}]\n";
    let tree = repo.git(&["rev-parse", "berth/rendered:clusters/a"]);
    report(&repo, "a", 1, &format!("applied:\n  sequence: 1\n  tree: {tree}\n  objects: 2\n{problem}"));
    pass(&repo, "berth/site").expect(0);
    let head = page(&git).1.head;
    assert!(head.attention.iter().any(|item| item.title == "shop/web fails in a"), "{:?}", head.attention);
    let Some(until) = head.stamp.until else { return };
    let old = tip(&repo);
    let later = Timestamp::from_second(until + 1).expect("a moment");
    run_at(later, &["run", "--once", "--repo", repo.arg(), "--site", "berth/site"]).expect(0);
    assert_ne!(tip(&repo), old);
}

#[test]
fn branches_with_another_use_are_refused() {
    let repo = small_fleet();
    for (branch, why) in [
        ("berth/rendered", "berth keeps something else on `berth/rendered`"),
        ("berth/preview/page", "berth keeps something else on `berth/preview/`"),
        ("berth", "berth keeps something else on"),
        ("berth/clusters", "berth keeps something else on"),
        ("refs/tags/page", "is not the name of a branch"),
        ("a..b", "is not the name of a branch"),
    ] {
        let refused = pass(&repo, branch).expect(2);
        assert!(refused.err.contains(why), "{branch}: {}", refused.err);
    }
    let args = ["run", "--once", "--repo", repo.arg(), "--site", "main", "--source", "main"];
    assert!(run(&args).expect(2).err.contains("the branch that people edit"));
    assert_eq!(repo.git(&["for-each-ref", "refs/heads/berth"]), "", "nothing was published");
    // HEAD names the source only at run time, so that the publication is made.
    let refused = pass(&repo, "main").expect(2);
    assert!(refused.out.contains("published ") && refused.err.contains("the branch that people edit"));
    // Branches of people stay as they are.
    repo.git(&["branch", "theirs"]);
    let theirs = repo.id("theirs");
    let refused = pass(&repo, "theirs").expect(2);
    assert!(refused.err.contains("the branch `theirs` is not a page: it has `"), "{}", refused.err);
    assert_eq!(repo.id("theirs"), theirs);
}

#[test]
fn files_of_a_host_stay_and_a_long_chain_begins_anew() {
    let repo = small_fleet();
    pass(&repo, "berth/site").expect(0);
    let git = repo.path().join(".git");
    let name =
        crate::support::removals::feed(&repo, &["hash-object", "-w", "--stdin"], "fleet.example.com\n");
    let mut commit = tip(&repo);
    let entries = repo.git(&["ls-tree", &commit]);
    let tree = crate::support::removals::feed(
        &repo,
        &["mktree"],
        &format!("{entries}\n100644 blob {name}\tCNAME\n"),
    );
    for _ in 0..98 {
        commit = repo.git(&["commit-tree", &tree, "-m", "more", "-p", &commit]);
    }
    repo.git(&["update-ref", BRANCH, &commit]);
    let count = || repo.git(&["rev-list", "--count", BRANCH]);
    edit(&repo, "two");
    pass(&repo, "berth/site").expect(0);
    assert_eq!(count(), "100");
    edit(&repo, "three");
    pass(&repo, "berth/site").expect(0);
    assert_eq!(count(), "1");
    let (folder, page) = page(&git);
    assert!(folder.path().join("CNAME").is_file());
    assert_eq!(page.head.shown.sequence, 3);
}

#[test]
fn a_page_is_pushed_to_a_remote_from_the_value_that_it_has_there() {
    let fleet = Fleet::new();
    let server = Folder::of(&fleet);
    let site = ["--site", "berth/site", "--preview", "*"];
    fleet.run_once(&server, &site).expect(0);
    let (_folder, first) = page(&fleet.bare_path());
    assert_eq!((first.head.shown.sequence, first.head.fleet.as_str()), (1, "fleet"));
    let old = fleet.bare(&["rev-parse", BRANCH]);
    // Another working copy finds that nothing has changed.
    let other = fleet.run_from("other", &server, &site).expect(0);
    assert!(!other.out.contains("wrote the page"), "{}", other.out);
    assert_eq!(fleet.bare(&["rev-parse", BRANCH]), old);
    fleet.edit("two");
    fleet.run_once(&server, &site).expect(0);
    assert_eq!(page(&fleet.bare_path()).1.head.shown.sequence, 2);
    // A branch that somebody has removed at the remote comes back with the next change.
    fleet.bare(&["update-ref", "-d", BRANCH]);
    fleet.edit("three");
    fleet.run_from("other", &server, &site).expect(0);
    assert_eq!(page(&fleet.bare_path()).1.head.shown.sequence, 3);
    assert_eq!(fleet.bare(&["for-each-ref", "refs/heads/berth/preview/"]), "", "a page gets no preview");
}

#[test]
fn a_daemon_keeps_the_page_and_its_faults_stop_no_publication() {
    let fleet = Fleet::new();
    let server = Folder::of(&fleet);
    let daemon = Running::daemon(&fleet, &server, &["--site", "gh-pages", "--preview", "*"]);
    let shown = || {
        let head = "refs/heads/gh-pages:data/head.js";
        if fleet.has(head) { fleet.bare(&["show", head]) } else { String::new() }
    };
    until("the page is there", || shown().contains("\"sequence\":1,"));
    fleet.hook("update", "case $1 in refs/heads/gh-pages) exit 1;; esac");
    fleet.edit("two");
    until("an edit is published", || {
        fleet.bare(&["show", "berth/rendered:clusters/a/shop/ConfigMap_web.yaml"]).contains("two")
    });
    daemon.wait_for(&["the page could not be written; retrying"]);
    fleet.edit("three");
    until("the next edit is published", || {
        fleet.bare(&["show", "berth/rendered:clusters/a/shop/ConfigMap_web.yaml"]).contains("three")
    });
    assert!(shown().contains("\"sequence\":1,"));
    std::fs::remove_file(fleet.bare_path().join("hooks/update")).unwrap();
    until("the page follows", || shown().contains("\"sequence\":3,"));
    let (code, log) = daemon.stop();
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains("previewed gh-pages"), "{log}");
}

#[test]
fn a_local_daemon_writes_a_page_of_reports_alone_once_in_a_while() {
    let repo = small_fleet();
    let daemon = Daemon::start_with(&["--repo", repo.arg(), "--poll", "1", "--site", "berth/site"]);
    daemon.wait_for(&["the page was written"]);
    let tree = |cluster: &str| repo.git(&["rev-parse", &format!("berth/rendered:clusters/{cluster}")]);
    let fails = |cluster: &str| {
        let words = format!(
            "  problems: [{{kind: ConfigMap, namespace: shop, name: web, message: bad-{cluster}}}]\n"
        );
        let applied = format!("applied:\n  sequence: 1\n  tree: {}\n  objects: 2\n{words}", tree(cluster));
        report(&repo, cluster, 1, &applied);
    };
    for cluster in ["a", "b", "c"] {
        fails(cluster);
    }
    until("all copies fail", || {
        let head = format!("{}\n", repo.git(&["show", &format!("{BRANCH}:data/head.js")]));
        Site::read_head(&head).is_ok_and(|head| head.totals[CellState::Failing as usize] == 3)
    });
    let count: u32 = repo.git(&["rev-list", "--count", BRANCH]).parse().expect("a number");
    assert!(count <= 3, "{count} pages");
    let (code, _) = daemon.stop_with_log();
    assert_eq!(code, 0);
}
