//! `berth simulate`: its answer is the decision after a real loss, and it writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use crate::support::removals::{GLOBAL_SET, managed, work};
use crate::support::{Repo, fleet_member, run};

const PAGE: &str = include_str!("../../docs/policy-tests.md");

/// The clusters, each with its region.
const CLUSTERS: [(&str, &str); 3] = [("a", "north"), ("b", "north"), ("c", "south")];

fn placement(name: &str, policy: &str) -> String {
    format!(
        "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {{name: {name}}}\nspec:\n  \
         resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: {name}}}]\n  policy: {policy}\n"
    )
}

/// A published fleet with placements of these policies, each with a namespace of its name.
fn people(placements: &[(&str, &str)]) -> Repo {
    let repo = Repo::new();
    for (name, region) in CLUSTERS {
        let member = fleet_member(name, region).replace("env:", "region:");
        repo.write(&format!("clusters/{name}.yaml"), member);
    }
    for (name, policy) in placements {
        repo.write(
            &format!("apps/{name}.yaml"),
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"),
        );
        repo.write(&format!("placements/{name}.yaml"), placement(name, policy));
    }
    repo.commit("begin");
    run(&["run", "--once", "--repo", repo.arg()]).expect(0);
    repo
}

fn simulated(repo: &Repo, args: &[&str]) -> Json {
    run(&[&["simulate", "--repo", repo.arg(), "-o", "json"], args].concat()).expect(0).json()
}

/// The clusters of each placement, as `berth decide` gives them for the files as they are.
fn decided(repo: &Repo) -> BTreeMap<String, BTreeSet<String>> {
    let all = run(&["decide", "--repo", repo.arg(), "-o", "json"]).json();
    let one = |placement: &Json| {
        let clusters = placement["clusters"].as_array().expect("clusters").iter();
        let names = clusters.map(|pick| pick["name"].as_str().expect("a name").to_owned()).collect();
        (placement["name"].as_str().expect("a name").to_owned(), names)
    };
    all["placements"].as_array().expect("placements").iter().map(one).collect()
}

#[test]
fn the_example_of_the_page_is_what_the_command_prints() {
    let repo = people(&[("two", "{placementType: PickN, numberOfClusters: 2}")]);
    let (_, example) = PAGE.split_once("$ berth simulate --each region\n").expect("the example");
    let example = example.split("```").next().expect("its end");
    let shown = run(&["simulate", "--each", "region", "--repo", repo.arg()]).expect(0);
    assert_eq!(shown.out, example);
}

#[test]
fn a_simulated_loss_is_the_decision_after_a_real_one() {
    let repo = people(&[
        ("two", "{placementType: PickN, numberOfClusters: 2}"),
        ("all", "{placementType: PickAll}"),
        ("fixed", "{placementType: PickFixed, clusterNames: [b]}"),
    ]);
    let before = decided(&repo);
    for lost in [&["a"][..], &["b"], &["c"], &["a", "b"], &["a", "c"]] {
        let args: Vec<&str> = lost.iter().flat_map(|name| ["--lose", name]).collect();
        let scenario = simulated(&repo, &args)["scenarios"][0].clone();
        lost.iter()
            .for_each(|name| drop(std::fs::remove_file(repo.path().join(format!("clusters/{name}.yaml")))));
        let after = decided(&repo);
        repo.git(&["checkout", "--", "clusters"]);
        let named = |value: &Json| -> BTreeSet<String> {
            value
                .as_array()
                .expect("names")
                .iter()
                .map(|name| name.as_str().expect("a name").to_owned())
                .collect()
        };
        let affected = scenario["placements"].as_array().expect("placements");
        for (name, old) in &before {
            let new = &after[name];
            let found = affected
                .iter()
                .find(|one| one["placement"].as_str().is_some_and(|key| key.ends_with(name.as_str())));
            let Some(found) = found else {
                assert_eq!(old, new, "{lost:?} {name}: {scenario:#}");
                continue;
            };
            assert_eq!(named(&found["from"]), old.difference(new).cloned().collect(), "{lost:?} {name}");
            assert_eq!(named(&found["to"]), new.difference(old).cloned().collect(), "{lost:?} {name}");
            let fate = match new.len() {
                0 => "noneLeft",
                left if left < old.len() => "fewer",
                _ => "moved",
            };
            assert_eq!(found["fate"], fate, "{lost:?} {name}");
        }
    }
}

#[test]
fn a_loss_shows_what_would_be_held_and_which_policy_tests_fail_and_writes_nothing() {
    let repo = people(&[("fixed", "{placementType: PickFixed, clusterNames: [c]}")]);
    repo.write(
        "policy-tests/somewhere.yaml",
        "apiVersion: berth.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: somewhere}\nspec:\n  for: workloads\n  \
         message: it has no cluster\n  rule: workload.clusters.size() > 0\n",
    );
    repo.commit("a policy test");
    run(&["run", "--once", "--repo", repo.arg()]).expect(0);
    let state = || {
        (repo.git(&["for-each-ref"]), repo.git(&["count-objects", "-v"]), repo.git(&["status", "--short"]))
    };
    let before = state();
    let shown = run(&["simulate", "--lose", "region=south", "--repo", repo.arg()]).expect(0).out;
    for line in [
        "without region=south: 1 cluster lost\n",
        "  no cluster is left for: 1\n",
        "fixed: leaves c; 1 → 0 clusters",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(shown.contains("held until approved: "), "{shown}");
    assert!(shown.contains("policy: "), "{shown}");
    assert_eq!(state(), before);
}

#[test]
fn all_unknown_clusters_and_labels_are_named_at_once() {
    let repo = people(&[]);
    let refused = run(&["simulate", "--lose", "aa", "--lose", "zone=1", "--lose", "=", "--repo", repo.arg()])
        .expect(2)
        .err;
    for part in ["no cluster is named `aa`", "no cluster is named `zone=1`", "`=`: "] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let refused = run(&["simulate", "--each", "zone", "--repo", repo.arg()]).expect(2).err;
    assert!(refused.contains("no cluster has the label `zone`") && refused.contains("region"), "{refused}");
    run(&["simulate", "--repo", repo.arg()]).expect(2);
}

#[test]
fn cordons_taints_and_labels_are_edits_like_those_of_their_commands() {
    let north = "{placementType: PickAll, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
        {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: north}}}]}}}}";
    let repo = people(&[("two", "{placementType: PickN, numberOfClusters: 2}"), ("north", north)]);
    let moved = simulated(&repo, &["--lose", "c"])["scenarios"][0]["placements"][0].clone();
    assert_eq!((&moved["fate"], &moved["to"]), (&json!("moved"), &json!(["a"])), "{moved:#}");
    // A cordoned cluster gets no new work.
    let fewer = simulated(&repo, &["--lose", "c", "--cordon", "a"])["scenarios"][0]["placements"][0].clone();
    assert_eq!((&fewer["fate"], &fewer["to"]), (&json!("fewer"), &json!([])), "{fewer:#}");
    let tainted = simulated(&repo, &["--lose", "c", "--taint", "a gpu=broken:NoSchedule"]);
    assert_eq!(tainted["scenarios"][0]["placements"][0], fewer);
    let scenario = simulated(&repo, &["--label", "c region=north"])["scenarios"][0].clone();
    assert_eq!((&scenario["name"], &scenario["lost"]), (&json!("label c region=north"), &json!([])));
    let more = &scenario["placements"][0];
    assert_eq!((&more["fate"], &more["to"]), (&json!("more"), &json!(["c"])), "{scenario:#}");
    let refused = run(&["simulate", "--taint", "a gpu=broken:Sometimes", "--repo", repo.arg()]).expect(2).err;
    assert!(refused.contains("no taint has the effect `Sometimes`"), "{refused}");
}

#[test]
fn a_taint_that_is_tolerated_for_a_while_has_a_deadline() {
    let repo = Repo::new();
    for name in ["a", "b"] {
        repo.write(&format!("clusters/{name}.yaml"), managed(name, ""));
    }
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write(
        "apps/placement.yaml",
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: web, namespace: shop}\n\
         spec:\n  numberOfClusters: 1\n  tolerations: [{key: gpu, operator: Exists, tolerationSeconds: 60}]\n",
    );
    repo.write("apps/work.yaml", work(1));
    repo.commit("begin");
    run(&["run", "--once", "--repo", repo.arg()]).expect(0);
    let simulate = ["simulate", "--taint", "a gpu=broken:NoSelect", "--repo", repo.arg()];
    let shown = run(&simulate).expect(0).out;
    assert!(
        shown.contains("\n  at 2") && shown.contains("ManifestWorkReplicaSet shop/web leaves a\n"),
        "{shown}"
    );
    assert!(!shown.contains("a → b"), "{shown}");
    let later = run(&[&simulate[..], &["--now", "2100-01-01T00:00:00Z"]].concat()).expect(0).out;
    assert!(later.contains("Placement shop/web: a → b\n") && !later.contains("\n  at 2"), "{later}");
}
