//! A repository scattered over many packs is packed by berth itself, unless its owner minds.

use berth_git::{Repo as GitRepo, Writer};

use crate::support::{RENDERED, Repo, config_map, run, small_fleet};

/// More packs than slow nobody down, of objects that nothing leads to.
fn scatter(repo: &Repo) {
    let git = GitRepo::open(repo.path()).unwrap();
    for number in 0..45 {
        let mut writer = Writer::new(&git).unwrap();
        for blob in 0..30 {
            writer.blob(format!("{number} {blob}").as_bytes()).unwrap();
        }
        git.flush().unwrap();
    }
}

fn packs(repo: &Repo) -> usize {
    let said = repo.git(&["count-objects", "-v"]);
    said.lines().find_map(|line| line.strip_prefix("packs: ")).unwrap().trim().parse().unwrap()
}

fn edit(repo: &Repo, value: &str) {
    repo.write("apps/web.yaml", config_map("web", value, "{clusterSelector: {}}"));
    repo.commit(value);
    repo.publish_ungated().expect(0);
}

#[test]
fn many_packs_become_few_and_nothing_is_lost() {
    let repo = small_fleet();
    repo.publish_ungated().expect(0);
    scatter(&repo);
    assert!(packs(&repo) >= 45);
    edit(&repo, "two");
    assert!(packs(&repo) < 5, "{}", packs(&repo));
    repo.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]);
    let before = repo.id(RENDERED);
    edit(&repo, "three");
    assert_ne!(repo.id(RENDERED), before);
    run(&["verify", "--repo", repo.arg()]).expect(0);
    // Young as they are, objects that nothing leads to stay.
    let blob = repo.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objecttype)"]);
    assert!(blob.lines().filter(|kind| *kind == "blob").count() > 45 * 30);
}

#[test]
fn an_owner_who_packs_alone_is_left_alone() {
    let repo = small_fleet();
    repo.git(&["config", "gc.auto", "0"]);
    scatter(&repo);
    edit(&repo, "two");
    assert!(packs(&repo) >= 45);
}
