//! Going back to an earlier state: at once where that is safe, and with an approval that reaches members where
//! a namespace goes with all that is in it.

use std::path::Path;

use crate::support::{Ran, Repo, berth, config_map, namespace, small_fleet};

const EVERYWHERE: &str = "{clusterSelector: {}}";

fn sync(repo: &Repo, target: &Path) -> Ran {
    let mut command = berth();
    command.args(["sync", "--once", "--cluster", "a", "--repo", repo.arg(), "--target"]);
    Ran::of(command.arg(format!("dir:{}", target.display())))
}

#[test]
fn a_rollback_that_takes_a_namespace_is_held_and_its_approval_reaches_the_member() {
    let (repo, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    let target = folder.path().join("a");
    repo.publish().expect(0);
    repo.write("apps/extra.yaml", namespace("extra"));
    repo.commit("add a namespace");
    repo.publish().expect(0);
    sync(&repo, &target).expect(0);
    let there = target.join("_cluster/Namespace_extra.yaml");
    assert!(there.exists());

    // Whoever goes back is asked, since nobody knows what else is in it by now.
    repo.git(&["revert", "--no-edit", "HEAD"]);
    let ran = repo.publish().expect(5);
    let approval = ran.out.lines().find(|line| line.starts_with("Berth-Allow-Delete: "));
    let approval = approval.unwrap_or_else(|| panic!("nothing to paste in\n{}\n{}", ran.out, ran.err));
    sync(&repo, &target).expect(0);
    assert!(there.exists());

    repo.git(&["commit", "-q", "--allow-empty", "-m", &format!("yes\n\n{approval}")]);
    repo.publish().expect(0);
    let ran = sync(&repo, &target).expect(0);
    assert!(!there.exists(), "the member is not left with it: {}\n{}", ran.out, ran.err);
}

#[test]
fn a_rollback_without_anything_risky_passes_at_once() {
    let (repo, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    let target = folder.path().join("a");
    repo.publish().expect(0);
    repo.write("apps/new.yaml", config_map("new", "one", EVERYWHERE));
    repo.commit("add a map");
    repo.publish().expect(0);
    sync(&repo, &target).expect(0);
    repo.git(&["revert", "--no-edit", "HEAD"]);
    repo.publish().expect(0);
    sync(&repo, &target).expect(0);
    assert!(!target.join("shop/ConfigMap_new.yaml").exists());
}

#[test]
fn what_a_flag_let_go_is_kept_by_members_with_the_way_to_let_it_go() {
    let (repo, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    let target = folder.path().join("a");
    repo.write("apps/extra.yaml", namespace("extra"));
    repo.commit("with a namespace");
    repo.publish().expect(0);
    sync(&repo, &target).expect(0);
    repo.git(&["rm", "-q", "apps/extra.yaml"]);
    repo.commit("without");
    repo.publish_ungated().expect(0);
    let ran = sync(&repo, &target).expect(7);
    assert!(ran.err.contains("with `--allow-risky-prune`"), "{}", ran.err);
    let mut command = berth();
    command.args([
        "sync",
        "--once",
        "--allow-risky-prune",
        "--cluster",
        "a",
        "--repo",
        repo.arg(),
        "--target",
    ]);
    Ran::of(command.arg(format!("dir:{}", target.display()))).expect(0);
    assert!(!target.join("_cluster/Namespace_extra.yaml").exists());
}
