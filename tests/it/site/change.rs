//! The page of a change: `berth plan --site` and `berth review --site`.

use std::path::PathBuf;

use super::{Page, arg};
use crate::support::rollouts::{Rollouts, WAVES};
use crate::support::{Repo, cluster, config_map, namespace, run, small_fleet};
use berth_site::form::{ChangeDetails, Names};

/// A fleet of three clusters whose branch `propose` begins a rollout and takes another workload from a cluster; and the
/// folder of the page of that branch.
pub fn proposed() -> (Repo, PathBuf) {
    let repo = Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[("env", "prod")])),
        ("clusters/b.yaml", &cluster("b", &[("env", "prod")])),
        ("clusters/c.yaml", &cluster("c", &[("env", "test")])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
        ("apps/api.yaml", &config_map("api", "one", "{clusterSelector: {}}")),
        ("waves.yaml", WAVES),
    ]);
    repo.commit("begin");
    // The release that all have is proven before the next one begins.
    let rollouts = Rollouts::of(repo);
    for _ in 0..4 {
        rollouts.succeed(&["a", "b", "c"]);
        rollouts.publish();
        rollouts.wait(20);
    }
    let repo = rollouts.repo;
    repo.git(&["switch", "--quiet", "--create", "propose"]);
    repo.write("apps/web.yaml", config_map("web", "<b>two</b>", "{clusterSelector: {}}"));
    repo.write("apps/api.yaml", config_map("api", "one", "{clusterSelector: {matchLabels: {env: prod}}}"));
    repo.commit("web two, and api in production alone");
    let out = repo.path().join(".git/page");
    run(&["plan", "--repo", repo.arg(), "--source", "main", "--site", arg(&out)]).expect(0);
    (repo, out)
}

#[test]
fn the_first_step_stands_beside_the_end() {
    let (repo, out) = proposed();
    let page = Page::read(&out);
    let plan = run(&["plan", "--repo", repo.arg(), "--source", "main", "-o", "json"]).expect(0).json();
    let change: ChangeDetails = page.block("change");
    let title = &page.head.change.as_ref().expect("a change").title;
    let comment = run(&["plan", "--repo", repo.arg(), "--source", "main", "-o", "markdown"]).expect(0).out;
    assert!(comment.contains(title.as_str()), "{title}: {comment}");
    assert_eq!(change.source, plan["head"]["commit"].as_str().expect("a commit"));
    let [web, api] = ["web", "api"].map(|name| {
        let file = format!("apps/{name}.yaml");
        let is_own = |row: &&berth_site::form::StepsForm| {
            row.causes.iter().any(|cause| cause.at.as_ref().is_some_and(|at| at.0 == file))
        };
        change.rows.iter().find(is_own).unwrap_or_else(|| panic!("no row of {file}: {:#?}", change.rows))
    });
    // The removal happens at once; the rollout reaches one cluster first, and all of them in the end.
    assert_eq!(api.now, api.end);
    assert_eq!(api.end.consequences[0].move_, "leaves");
    assert_eq!(api.end.consequences[0].places[0].clusters, ["c"]);
    let clusters = |step: &berth_site::form::StepForm| step.consequences[0].places[0].clusters.clone();
    assert_eq!((clusters(&web.now).len(), clusters(&web.end)), (1, vec!["a".into(), "b".into(), "c".into()]));
    assert_eq!((change.now.changed, change.end.changed), (1, 3));
    assert!(change.remarks.iter().any(|remark| remark.heading.contains("rollout")), "{:#?}", change.remarks);
    // The rest of the page is the fleet as it is.
    assert_eq!(page.block::<Names>("names").clusters.len(), 3);
    let index = std::fs::read_to_string(out.join("index.html")).expect("a page");
    assert!(index.contains("<h2>The fleet as it is</h2>"), "{index}");
}

#[test]
fn a_page_of_the_fleet_replaces_that_of_a_change() {
    let (repo, out) = proposed();
    run(&["site", "--repo", repo.arg(), "--out", arg(&out)]).expect(0);
    let page = Page::read(&out);
    assert_eq!(page.head.change, None);
    let files = std::fs::read_dir(out.join("data")).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    assert!(names.into_iter().all(|name| !name.starts_with("change.")));
}

#[test]
fn review_writes_the_page_and_says_where_it_is() {
    let (repo, _) = proposed();
    let out = repo.path().join(".git/review");
    let ran =
        run(&["review", "--repo", repo.arg(), "--base", "main", "--head", "propose", "--site", arg(&out)]);
    let ran = ran.expect(0);
    assert!(ran.err.contains("the change as a page: "), "{}", ran.err);
    let change: ChangeDetails = Page::read(&out).block("change");
    assert_eq!(change.end.changed, 3);
}

#[test]
fn a_change_before_the_first_publication_has_no_page() {
    let repo = small_fleet();
    let out = repo.path().join(".git/page");
    let ran = run(&["plan", "--repo", repo.arg(), "--first", "--site", arg(&out)]).expect(0);
    assert!(ran.err.contains("nothing is published yet"), "{}", ran.err);
    assert!(!out.exists());
}

#[test]
fn a_held_removal_has_the_line_to_paste() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "one", "{clusterSelector: {matchLabels: {env: prd}}}"));
    repo.commit("nowhere");
    let out = repo.path().join(".git/page");
    run(&["plan", "--repo", repo.arg(), "--site", arg(&out)]).expect(0);
    let change: ChangeDetails = Page::read(&out).block("change");
    assert_eq!(change.held.len(), 1, "{:#?}", change.held);
    assert!(change.held[0].approval.starts_with("Berth-Allow-Delete: "), "{:#?}", change.held);
    assert!(change.rows.iter().any(|row| row.end.consequences.iter().any(|one| one.held)));
    assert!(change.rows.iter().all(|row| row.now.consequences.iter().all(|one| one.move_ != "leaves")));
}
