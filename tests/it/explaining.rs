//! `berth explain` where people ask it: after publication, of what is held, of a file that is broken.

use serde_json::Value as Json;

use crate::support::{Repo, cluster, config_map, fleet_member, namespace, run};

const KUBEFLEET: &str = "\
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: two}
spec:
  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: shop}]
  policy:
    placementType: PickN
    numberOfClusters: 2
    affinity:
      clusterAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 20
          preference: {labelSelector: {matchLabels: {env: prod}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";

fn explain(repo: &Repo, args: &[&str]) -> String {
    run(&[&["explain", "--repo", repo.arg()], args].concat()).out
}

#[test]
fn after_publication_scores_and_steps_are_those_of_today() {
    let repo = Repo::with(&[
        ("a.yaml", &fleet_member("a", "prod")),
        ("b.yaml", &fleet_member("b", "prod")),
        ("c.yaml", &fleet_member("c", "dev")),
        ("two.yaml", KUBEFLEET),
    ]);
    repo.publish().expect(0);
    let text = explain(&repo, &["two"]);
    for cluster in ["a", "b"] {
        let row = text.lines().find(|line| line.starts_with(&format!("{cluster}  "))).unwrap_or_default();
        assert!(row.contains("yes") && row.contains("affinityScore 20"), "{text}");
    }
    assert!(text.contains("unchanged: its inputs are equal"), "{text}");
    let steps = explain(&repo, &["two", "--cluster", "a"]);
    for step in ["filter: fit to take work", "filter: every taint is tolerated", "stay: picked earlier"] {
        assert!(steps.contains(step), "no `{step}` in\n{steps}");
    }
    // A cluster stays although a new one would fit better; its steps say what it would be given today.
    repo.write("a.yaml", fleet_member("a", "dev"));
    let text = explain(&repo, &["two"]);
    let row = text.lines().find(|line| line.starts_with("a  ")).unwrap_or_default();
    assert!(row.contains("yes") && row.contains("affinityScore 0"), "{text}");
}

fn fleet() -> Repo {
    Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[("env", "prod")])),
        ("clusters/b.yaml", &cluster("b", &[("env", "prod")])),
        ("clusters/c.yaml", &cluster("c", &[("env", "prod")])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {matchLabels: {env: prod}}}")),
    ])
}

#[test]
fn of_a_held_workload_the_label_and_its_file_are_named() {
    let repo = fleet();
    for name in ["d", "e"] {
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[("env", "prod")]));
    }
    repo.commit("five");
    repo.publish().expect(0);
    // All but one: the gate holds that.
    for name in ["a", "b", "d", "e"] {
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[("env", "prd")]));
    }
    repo.commit("a slip");
    repo.publish().expect(5);
    // Another publication in between changes nothing of it.
    repo.write("apps/other.yaml", config_map("other", "one", "{clusters: [{name: c}]}"));
    repo.commit("another");
    repo.publish().expect(5);
    let text = explain(&repo, &["web"]);
    assert!(
        text.contains("held: the current decision stays until approved")
            && text.contains("Berth-Allow-Delete: "),
        "{text}"
    );
    for name in ["a", "b"] {
        let cause = format!("  - {name}: label env was `prod`, is `prd` (clusters/{name}.yaml)");
        assert!(text.contains(&cause), "{text}");
    }
    let json: Json = serde_json::from_str(&explain(&repo, &["web", "-o", "json"])).unwrap();
    let difference = &json["placements"][0]["difference"];
    assert!(difference["held"].as_str().is_some_and(|held| held.starts_with("Berth-Allow-Delete: ")));
    assert_eq!(difference["clusters"][0]["change"], "removed");
}

#[test]
fn a_placement_that_left_the_source_and_is_held_is_explained() {
    let repo = fleet();
    repo.publish().expect(0);
    repo.git(&["rm", "-q", "apps/web.yaml"]);
    repo.commit("without");
    repo.publish().expect(5);
    let ran = run(&["explain", "--repo", repo.arg(), "web"]).expect(0);
    for words in [
        "FederatedConfigMap shop/web (was in apps/web.yaml)",
        "published in 3 clusters; the source no longer describes it",
        "held: the current decision stays until approved",
        "FederatedConfigMap shop/web is no longer described; it was in apps/web.yaml",
    ] {
        assert!(ran.out.contains(words), "no `{words}` in\n{}", ran.out);
    }
    run(&["explain", "--repo", repo.arg(), "nothing"]).expect(2);
}

#[test]
fn an_edit_of_a_placement_and_a_new_cluster_are_named() {
    let repo = fleet();
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: a}, {name: d}]}"));
    repo.write("clusters/d.yaml", cluster("d", &[]));
    let text = explain(&repo, &["web"]);
    assert!(text.contains("  - b, c: FederatedConfigMap shop/web was edited in apps/web.yaml:1:1"), "{text}");
    assert!(text.contains("the cluster is new in clusters/d.yaml"), "{text}");
}

#[test]
fn of_a_broken_file_the_fault_is_named_and_nothing_is_called_unchanged() {
    let repo = fleet();
    repo.publish().expect(0);
    let good = config_map("web", "one", "{clusterSelector: {matchLabels: {env: prod}}}");
    repo.write("apps/web.yaml", format!("{good}oops: [\n"));
    let text = run(&["explain", "--repo", repo.arg(), "web"]).expect(1).out;
    assert!(text.contains("its file cannot be read") && text.contains("apps/web.yaml:"), "{text}");
    assert!(!text.contains("unchanged") && !text.contains("stands as it was"), "{text}");
}

#[test]
fn an_edit_after_a_broken_file_is_named_although_the_broken_one_was_published() {
    let repo = fleet();
    repo.publish().expect(0);
    let good = config_map("web", "one", "{clusterSelector: {matchLabels: {env: prod}}}");
    repo.write("apps/web.yaml", format!("{good}oops: [\n"));
    repo.commit("broken");
    repo.publish().expect(1);
    repo.write("apps/web.yaml", config_map("web", "one", "{clusterSelector: {matchLabels: {evn: prod}}}"));
    repo.commit("mended, with a slip");
    repo.publish().expect(5);
    let text = explain(&repo, &["web"]);
    assert!(
        text.contains("  - a, b, c: FederatedConfigMap shop/web was edited in apps/web.yaml:1:1"),
        "{text}"
    );
}
