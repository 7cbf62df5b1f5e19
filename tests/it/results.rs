//! `-o json`: every command's result has a version, a kind, and a schema that it is held against as it is read.

use std::collections::BTreeSet;

use crate::support::results::SCHEMAS;
use crate::support::{Ran, Repo, config_map, fixtures, run, small_fleet};

/// Runs a command and returns the kind of its result.
fn kind(repo: &Repo, args: &[&str]) -> String {
    let ran = run(&[args, &["-o", "json", "--repo", repo.arg()]].concat());
    kind_of(&ran)
}

fn kind_of(ran: &Ran) -> String {
    assert!(ran.out.starts_with('{'), "{}{}", ran.out, ran.err);
    let result = ran.json();
    assert_eq!(result["apiVersion"], "berth.dev/v1alpha1", "{}{}", ran.out, ran.err);
    result["kind"].as_str().expect("a kind").to_owned()
}

#[test]
fn every_result_has_a_kind_with_a_schema_on_the_page() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("two");
    let mut kinds = BTreeSet::new();
    for args in [
        &["plan"][..],
        &["decide"],
        &["explain", "shop/web", "--cluster", "a"],
        &["describe", "shop/web"],
        &["validate"],
        &["status"],
        &["status", "a"],
        &["log", "shop/web"],
        &["why", "shop/web"],
        &["why", "shop/web", "--cluster", "a"],
        &["verify"],
        &["doctor"],
        &["rollout", "list"],
        &["label", "a", "tier=web"],
        &["unjoin", "a"],
        &["simulate", "--lose", "a"],
        &["orphan", "status", "cm", "web"],
        &["disable", "configmaps"],
    ] {
        kinds.insert(kind(&repo, args));
    }
    repo.publish().expect(0);
    kinds.insert(kind(&repo, &["diff", "1..2"]));
    kinds.insert(kind_of(&run(&["test", repo.arg(), "-o", "json"])));
    let target = tempfile::tempdir().expect("a folder");
    kinds.insert(kind_of(&repo.sync("a", &target.path().join("a"), &["-o", "json"])));
    let page = std::fs::read_to_string(fixtures("../docs/results.md")).expect("a page");
    for kind in &kinds {
        assert!(SCHEMAS.contains_key(kind), "no schema of {kind}");
    }
    for kind in SCHEMAS.keys() {
        assert!(page.contains(&format!("[{kind}](schemas/")), "{kind} is not on the page");
    }
}
