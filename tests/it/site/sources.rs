//! Pages of past publications, of clones that lack something, and of remotes.

use std::collections::BTreeMap;
use std::path::Path;

use super::{arg, demo, page, rolling, site};
use crate::support::small_fleet;
use berth_site::CellState;
use berth_site::form::{PublicationDetails, RolloutDetails};

#[test]
fn a_past_publication_is_shown_by_its_record() {
    let (folder, fleet) = demo();
    let then = page(&fleet, &folder.path().join("then"), &["--at", "1"]);
    assert_eq!((then.head.shown.sequence, then.head.has_reports), (1, false));
    assert!(then.head.attention.is_empty() && then.head.publications.len() == 1);
    let web = &then.placements()["FederatedDeployment/shop/web"];
    assert!(web.reasons.iter().any(|reason| reason.contains("tier=prod")), "{:?}", web.reasons);
    site(&fleet, &folder.path().join("all"), &["--history", &usize::MAX.to_string()]).expect(0);
    let missing = site(&fleet, &folder.path().join("none"), &["--at", "99"]).expect(2);
    assert!(missing.err.contains("no publication has the number 99"), "{}", missing.err);
}

#[test]
fn a_fresh_clone_shows_the_state_without_reports() {
    let (folder, fleet) = demo();
    let clone = folder.path().join("clone");
    let cloned = crate::support::hermetic("git").args(["clone", "-q", arg(&fleet), arg(&clone)]).status();
    assert!(cloned.expect("git").success());
    let page = page(&clone, &folder.path().join("page"), &[]);
    assert_eq!((page.head.shown.sequence, page.head.has_reports, page.head.has_source), (3, false, true));
    assert_eq!(page.head.numbers.copies, 14);
    assert!(!page.head.sentence.contains("Every"), "{}", page.head.sentence);
}

#[test]
fn a_remote_is_read_without_a_clone() {
    let (folder, fleet) = demo();
    let nowhere = folder.path().join("nowhere");
    std::fs::create_dir(&nowhere).expect("a folder");
    let address = format!("file://{}", fleet.display());
    let out = folder.path().join("page");
    let far = page(&nowhere, &out, &["--rendered", &address]);
    assert_eq!((far.head.shown.sequence, far.head.has_reports, far.head.has_source), (3, true, true));
    let near = page(&fleet, &folder.path().join("near"), &[]);
    assert_eq!(far.head.files, near.head.files);
    assert!(!nowhere.join(".git").exists());
    // A second run finds that nothing changed, though its repository is another one.
    let again = site(&nowhere, &out, &["--rendered", &address]).expect(0);
    assert!(again.err.contains("is up to date"), "{}", again.err);
    // The branch that people edit may be gone.
    let branches =
        crate::support::hermetic("git").current_dir(&fleet).args(["branch", "-m", "renamed"]).status();
    assert!(branches.expect("git").success());
    let sourceless = page(&nowhere, &folder.path().join("renamed"), &["--rendered", &address]);
    assert_eq!(sourceless.head.shown.sequence, 3);
}

/// Runs git in a folder.
fn git(folder: &Path, args: &[&str]) {
    let status = crate::support::hermetic("git").current_dir(folder).args(args).status().expect("git");
    assert!(status.success(), "git {args:?}");
}

/// Clones the rendered branch of a repository, and nothing else.
fn rendered_alone(of: &Path, at: &Path, more: &[&str]) {
    let address = format!("file://{}", of.display());
    let clone: &[&str] = &["clone", "-q", "--single-branch", "-b", "berth/rendered"];
    git(Path::new("."), &[clone, more, &[&address, arg(at)]].concat());
}

#[test]
fn rollouts_without_the_source_claim_no_strategy() {
    let rollouts = rolling();
    let folder = tempfile::tempdir().expect("a folder");
    let alone = folder.path().join("alone");
    rendered_alone(rollouts.repo.path(), &alone, &[]);
    let page = page(&alone, &folder.path().join("page"), &[]);
    assert!(!page.head.has_source && !page.head.has_reports);
    let rolling = &page.head.rolling[0];
    assert_eq!((rolling.state.as_str(), rolling.release), ("rolling", Some(2)));
    assert_eq!(rolling.reason, "without the source, pauses and stages are unknown");
    let placements = page.placements();
    let rollout = placements["FederatedConfigMap/shop/web"].rollout.as_ref().expect("a rollout");
    assert_eq!(rollout.strategy, None);
    assert_eq!(page.block::<RolloutDetails>(&format!("r-{}", rolling.id)).strategy, None);
    assert!(page.head.totals[CellState::Failing as usize] == 0);
}

#[test]
fn a_page_is_named_after_the_repository_from_each_of_its_work_trees() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let (fleet, tree) = (folder.path().join("fleet.git"), folder.path().join("tree"));
    git(folder.path(), &["clone", "-q", "--bare", repo.arg(), "fleet.git"]);
    git(&fleet, &["worktree", "add", "-q", "--detach", arg(&tree)]);
    for path in [&fleet, &tree] {
        assert_eq!(page(path, &folder.path().join("page"), &[]).head.fleet, "fleet");
    }
}

#[test]
fn changes_that_a_shallow_clone_lacks_are_not_counted_as_none() {
    let (folder, fleet) = demo();
    let shallow = folder.path().join("shallow");
    rendered_alone(&fleet, &shallow, &["--depth", "2"]);
    let page = page(&shallow, &folder.path().join("page"), &[]);
    let known: Vec<bool> = page.head.publications.iter().map(|line| line.changes.is_some()).collect();
    assert_eq!(known, [true, false]);
    let publications: BTreeMap<String, PublicationDetails> = page.blocks("n-");
    assert!(publications["2"].changes.is_none() && publications["3"].changes.is_some());
}
