//! A rendered branch that somebody wrote anew is neither proven nor gone on from.

use std::path::Path;

use crate::support::fake_host::{FakeHost, small_host};
use crate::support::{RENDERED, Ran, Repo, berth, config_map, hermetic, run, small_fleet};

const EVERYWHERE: &str = "{clusterSelector: {}}";
const ROOT: &str = "refs/berth/root";

fn verify(repo: &Repo, args: &[&str]) -> Ran {
    run(&[&["verify", "--repo", repo.arg()], args].concat())
}

fn import(repo: &Repo) -> Ran {
    let host = FakeHost::serving(small_host());
    let mut command = berth();
    command.args(["import", "kubefed", "--out", repo.arg(), "--repo", repo.arg(), "--kubeconfig"]);
    Ran::of(command.arg(host.kubeconfig("")))
}

/// A fleet that was imported, its files committed.
pub fn imported() -> (Repo, Ran) {
    let repo = Repo::new();
    let ran = import(&repo).expect(0);
    repo.commit("import");
    (repo, ran)
}

/// A branch of another repository, as berth itself makes it, in place of this one's.
fn forge(repo: &Repo, other: &Repo) {
    repo.git(&["fetch", "-q", other.arg(), &format!("+{RENDERED}:{RENDERED}")]);
}

#[test]
fn an_import_is_pinned_once_and_says_how_to_prove_what_follows() {
    let (repo, ran) = imported();
    let root = repo.id(RENDERED);
    assert_eq!(repo.id(ROOT), root);
    assert!(ran.out.contains(&format!("berth verify --root {root}\n")), "{}", ran.out);
    let proof = verify(&repo, &[]).expect(0);
    assert!(proof.out.starts_with("root "), "{}", proof.out);
    // It is neither begun anew nor overwritten, not even where the branch was deleted.
    repo.git(&["update-ref", "-d", RENDERED]);
    let again = import(&repo).expect(5);
    assert!(again.err.contains(&format!("git update-ref {RENDERED} {root}")), "{}", again.err);
    assert_eq!(repo.id(ROOT), root);
    repo.git(&["update-ref", RENDERED, &root]);
    repo.publish().expect(0);
}

#[test]
fn a_forged_root_fails_its_proof_with_or_without_an_import_of_ones_own() {
    let (other, _) = imported();
    let forged = other.id(RENDERED);
    // A fleet that was never imported.
    let repo = small_fleet();
    repo.publish().expect(0);
    forge(&repo, &other);
    let proof = verify(&repo, &["berth/rendered"]).expect(3);
    assert!(
        proof.out.contains("`refs/berth/root`") && proof.out.contains(&format!("--root {forged}")),
        "{}",
        proof.out
    );
    verify(&repo, &["berth/rendered", "--root", &forged]).expect(0);
    // One that was, from another host.
    let (repo, _) = imported();
    let root = repo.id(ROOT);
    repo.git(&["fetch", "-q", other.arg(), RENDERED]);
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    let tree = repo.git(&["rev-parse", &format!("{RENDERED}^{{tree}}")]);
    // The same commit of another date: as good as any, and not the one.
    let mut git = hermetic("git");
    git.current_dir(repo.path()).env("GIT_COMMITTER_DATE", "1767225601 +0000");
    let later = Ran::of(git.args(["commit-tree", &tree, "-m", &message])).expect(0).out;
    repo.git(&["update-ref", RENDERED, later.trim()]);
    let proof = verify(&repo, &[]).expect(3);
    assert!(proof.out.contains(&format!("but only the import {root} may")), "{}", proof.out);
}

#[test]
fn a_root_is_pinned_by_an_id_and_never_by_a_name() {
    let (repo, _) = imported();
    let root = repo.id(ROOT);
    for id in [root.as_str(), &root[..12]] {
        verify(&repo, &["--root", id]).expect(0);
    }
    // A branch that is called like an id is a name still.
    repo.git(&["branch", "deadbeef", "berth/rendered"]);
    for name in ["berth/rendered", RENDERED, "HEAD", "deadbeef", "refs/berth/root", &root[..6]] {
        let ran = verify(&repo, &["--root", name]).expect(2);
        assert!(
            ran.err.contains("is not the id of one commit") && ran.err.contains("the full id"),
            "{}",
            ran.err
        );
    }
    verify(&repo, &["--root", &"1".repeat(40)]).expect(3);
}

#[test]
fn a_branch_that_was_imported_can_not_begin_without_the_import() {
    let (repo, _) = imported();
    repo.publish().expect(0);
    // What a first run would make of the same source, in a repository that knows of no import.
    let fresh = Repo::new();
    fresh.git(&["fetch", "-q", repo.arg(), "+refs/heads/main:refs/heads/main", "--update-head-ok"]);
    fresh.git(&["reset", "-q", "--hard"]);
    fresh.publish().expect(0);
    forge(&repo, &fresh);
    let proof = verify(&repo, &[]).expect(3);
    assert!(proof.out.contains("it begins the branch, but only the import"), "{}", proof.out);
}

/// A fleet of two rendered commits.
fn published() -> (Repo, String, String) {
    let repo = small_fleet();
    repo.publish().expect(0);
    let first = repo.id(RENDERED);
    repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    repo.commit("an addition");
    repo.publish().expect(0);
    let second = repo.id(RENDERED);
    (repo, first, second)
}

#[test]
fn a_rewritten_rendered_branch_is_refused_foreseen_and_allowed_once() {
    let (repo, first, second) = published();
    let message = repo.git(&["log", "-1", "--format=%B", &second]);
    let tree = repo.git(&["rev-parse", &format!("{second}^{{tree}}")]);
    let beside = repo.git(&["commit-tree", &tree, "-p", &first, "-m", &message]);
    // An old copy that was put back, and a commit of somebody else in the last one's place.
    for tip in [&first, &beside] {
        repo.git(&["update-ref", RENDERED, tip]);
        let ran = repo.publish().expect(5);
        for said in [tip, &second, "does not come after", "--allow-rewritten"] {
            assert!(ran.err.contains(said), "{said}: {}", ran.err);
        }
        assert_eq!(repo.id(RENDERED), *tip);
        let plan = run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(5);
        assert!(
            plan.out.contains("berth run would refuse this") && plan.out.contains("--allow-rewritten"),
            "{}",
            plan.out
        );
    }
    run(&["run", "--once", "--repo", repo.arg(), "--allow-rewritten"]).expect(0);
    repo.publish().expect(0);
}

#[test]
fn what_was_processed_may_be_older_than_the_branch() {
    let (repo, _, _) = published();
    let before = repo.id("refs/berth/processed");
    repo.write("apps/more.yaml", config_map("more", "one", EVERYWHERE));
    repo.commit("more");
    repo.publish().expect(0);
    // A pass that was cut short, or that ended after another one's.
    repo.git(&["update-ref", "refs/berth/processed", &before]);
    repo.publish().expect(0);
    // And somebody else's commit on top.
    repo.git(&["checkout", "-q", "berth/rendered"]);
    repo.write("README.md", "notes\n");
    repo.commit("a note");
    repo.git(&["checkout", "-q", "main"]);
    repo.publish().expect(0);
}

#[test]
fn a_shallow_clone_that_ends_before_what_was_processed_goes_on() {
    let (repo, first, _) = published();
    let processed = repo.id("refs/berth/processed");
    repo.write("apps/more.yaml", config_map("more", "one", EVERYWHERE));
    repo.commit("more");
    repo.publish().expect(0);
    // What was processed is the commit before the last, which a clone of depth one does not have.
    repo.git(&["update-ref", "refs/berth/processed", &processed]);
    let clone = Repo::new();
    let url = format!("file://{}", repo.arg());
    for (depth, refs) in
        [("100", "+refs/heads/main:refs/heads/main"), ("1", "+refs/heads/berth/*:refs/heads/berth/*")]
    {
        clone.git(&[
            "fetch",
            "-q",
            "--update-head-ok",
            "--depth",
            depth,
            &url,
            refs,
            "+refs/berth/*:refs/berth/*",
        ]);
    }
    clone.git(&["reset", "-q", "--hard"]);
    assert!(Path::new(clone.arg()).join(".git/shallow").exists());
    let ran = clone.publish().expect(0);
    assert!(ran.out.contains("nothing to publish"), "{}", ran.out);
    assert_eq!(clone.git(&["rev-list", "--count", RENDERED]), "1", "{first}");
}
