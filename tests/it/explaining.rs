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

/// The edits that `explain` names for a cluster that is not picked, as text.
fn remedies(repo: &Repo, placement: &str, cluster: &str) -> Vec<String> {
    let form: Json =
        serde_json::from_str(&explain(repo, &[placement, "--cluster", cluster, "-o", "json"])).unwrap();
    let found = form["placements"][0]["clusters"][0]["wouldBePickedBy"].as_array().expect("edits").clone();
    let edit = |one: &Json| {
        let line = one["line"].as_u64().map_or("new".to_owned(), |line| line.to_string());
        format!("{}:{line}: {}", one["file"].as_str().unwrap(), one["words"].as_str().unwrap())
    };
    let words =
        |one: &Json| one["edits"].as_array().unwrap().iter().map(edit).collect::<Vec<_>>().join(" and ");
    found.iter().map(words).collect()
}

#[test]
fn the_label_that_a_cluster_lacks_is_named_with_all_that_it_changes() {
    let repo = Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[("env", "prod")])),
        ("clusters/oslo.yaml", &cluster("oslo", &[("env", "prd")])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {matchLabels: {env: prod}}}")),
        ("apps/api.yaml", &config_map("api", "one", "{clusterSelector: {matchLabels: {env: prod}}}")),
        ("apps/only.yaml", &config_map("only", "one", "{clusters: [{name: a}]}")),
    ]);
    repo.publish().expect(0);
    let found = remedies(&repo, "web", "oslo");
    assert!(found.contains(&"clusters/oslo.yaml:8: label env: prd → prod".to_owned()), "{found:?}");
    let text = explain(&repo, &["web", "--cluster", "oslo"]);
    assert!(text.contains("it would be picked with"), "{text}");
    assert!(text.contains("  * clusters/oslo.yaml:8: label env: prd → prod\n"), "{text}");
    assert!(text.contains("1 other placement picks or loses clusters by it: shop/api"), "{text}");
    // What is named is true: made in the file, it lets the placement pick the cluster.
    repo.write("clusters/oslo.yaml", cluster("oslo", &[("env", "prod")]));
    assert!(explain(&repo, &["web"]).contains("picks 2 of 2 clusters"));
    // A list of names asks for one more name.
    assert_eq!(remedies(&repo, "only", "oslo"), ["apps/only.yaml:8: spec.placement.clusters: oslo added"]);
    // Nothing to say of a cluster that is picked, or where nobody asks for one.
    assert!(!explain(&repo, &["web", "--cluster", "oslo"]).contains("would be picked"));
    assert!(!explain(&repo, &["only"]).contains("would be picked"));
}

#[test]
fn a_misspelt_key_of_a_selector_is_corrected_first() {
    let repo = Repo::with(&[
        ("a.yaml", &cluster("a", &[("region", "south")])),
        ("shop.yaml", &namespace("shop")),
        ("web.yaml", &config_map("web", "one", "{clusterSelector: {matchLabels: {regoin: south}}}")),
        (
            "api.yaml",
            &config_map(
                "api",
                "one",
                "{clusterSelector: {matchExpressions: [{key: regoin, operator: In, values: [south]}]}}",
            ),
        ),
    ]);
    let selector = "spec.placement.clusterSelector";
    let first = |workload: &str| remedies(&repo, workload, "a").swap_remove(0);
    assert_eq!(first("web"), format!("web.yaml:8: {selector}.matchLabels.regoin → region"));
    assert_eq!(first("api"), format!("api.yaml:8: {selector}.matchExpressions[0].key: regoin → region"));
}

#[test]
fn numbers_tolerations_and_pairs_of_edits_are_tried() {
    let tainted = "\
apiVersion: cluster.kubernetes-fleet.io/v1
kind: MemberCluster
metadata: {name: gpu, labels: {env: prod}}
spec:
  identity: {kind: ServiceAccount, name: hub, namespace: fleet-system}
  taints:
  - {key: dedicated, value: gpu, effect: NoSchedule}
";
    let repo = Repo::with(&[
        ("a.yaml", &fleet_member("a", "prod")),
        ("b.yaml", &fleet_member("b", "prod")),
        ("c.yaml", &fleet_member("c", "prod")),
        ("gpu.yaml", tainted),
        ("two.yaml", KUBEFLEET),
    ]);
    repo.publish().expect(0);
    assert_eq!(remedies(&repo, "two", "a"), ["two.yaml:8: spec.policy.numberOfClusters: 2 → 3"]);
    // The taint alone is not enough, since others are picked; nor is the number.
    let found = remedies(&repo, "two", "gpu");
    assert!(found.iter().all(|one| one.contains(" and ")), "{found:?}");
    for words in [
        "gpu.yaml:7: taint dedicated=gpu:NoSchedule removed and two.yaml:8: spec.policy.numberOfClusters: 2 → 3",
        "two.yaml:7: spec.policy.tolerations: a toleration of dedicated added and two.yaml:8: spec.policy.numberOfClusters: 2 → 3",
    ] {
        assert!(found.contains(&words.to_owned()), "no `{words}` in {found:?}");
    }
}

#[test]
fn a_set_is_bound_where_the_placement_may_not_use_it() {
    let managed = |name: &str, set: &str| {
        format!(
            "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: {name}\n  labels:\n    \
             cluster.open-cluster-management.io/clusterset: {set}\nspec: {{hubAcceptsClient: true}}\n"
        )
    };
    let set = |name: &str| {
        format!(
            "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {{name: {name}}}\n\
             spec: {{clusterSelector: {{selectorType: ExclusiveClusterSetLabel}}}}\n"
        )
    };
    let bound = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
                 metadata: {name: blue, namespace: shop}\nspec: {clusterSet: blue}\n";
    let placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                     metadata: {name: everywhere, namespace: shop}\nspec: {}\n";
    let repo = Repo::with(&[
        ("clusters/a.yaml", &managed("a", "blue")),
        ("clusters/b.yaml", &managed("b", "red")),
        ("sets.yaml", &[set("blue"), set("red")].join("---\n")),
        ("shop/binding.yaml", bound),
        ("shop/placement.yaml", placement),
    ]);
    let found = remedies(&repo, "everywhere", "b");
    let binding = "shop/shop-red-binding.yaml:new: ManagedClusterSetBinding shop/red".to_owned();
    assert!(found.contains(&binding), "{found:?}");
    let label =
        "clusters/b.yaml:6: label cluster.open-cluster-management.io/clusterset: red → blue".to_owned();
    assert!(found.contains(&label), "{found:?}");
}

#[test]
fn where_no_edit_helps_that_is_said_with_the_reason() {
    let placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                     metadata: {name: fast, namespace: shop}\nspec:\n  predicates:\n  - requiredClusterSelector:\n      \
                     claimSelector: {matchExpressions: [{key: speed, operator: Exists}]}\n";
    let repo = Repo::with(&[
        (
            "a.yaml",
            "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: a}\n",
        ),
        (
            "binding.yaml",
            "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
             metadata: {name: default, namespace: shop}\nspec: {clusterSet: default}\n",
        ),
        ("placement.yaml", placement),
    ]);
    let text = explain(&repo, &["fast", "--cluster", "a"]);
    assert!(
        text.contains("no edit of the fleet's files was found that makes it picked (0 edits tried)"),
        "{text}"
    );
    assert!(remedies(&repo, "fast", "a").is_empty());
}

#[test]
fn what_changed_since_a_revision_is_told_cluster_by_cluster() {
    let repo = fleet();
    repo.publish().expect(0);
    let first = repo.id("main");
    repo.write("clusters/d.yaml", cluster("d", &[("env", "prod")]));
    repo.commit("d joins");
    repo.publish().expect(0);
    repo.write("clusters/a.yaml", cluster("a", &[("env", "dev")]));
    repo.commit("a is for developers");
    let text = explain(&repo, &["web", "--since", &first]);
    for words in [
        &format!("since {} (start), number 1, when it picked 3 clusters\n", &first[..12]),
        "  - a\n      then: ",
        "      cause: label env was `prod`, is `dev` (clusters/a.yaml)\n",
        "  + d\n      then: not in the fleet\n",
        "      cause: the cluster is new in clusters/d.yaml\n",
    ] {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
    let of_d = explain(&repo, &["web", "--since", &first, "--cluster", "d"]);
    assert!(of_d.contains("  + d\n") && !of_d.contains("  - a\n"), "{of_d}");
    assert!(explain(&repo, &["web", "--since", "HEAD"]).contains("  the same clusters\n"));
    let form: Json =
        serde_json::from_str(&explain(&repo, &["web", "--since", "HEAD~1", "-o", "json"])).unwrap();
    let since = &form["placements"][0]["since"];
    assert_eq!((&since["publication"], &since["picked"]), (&2.into(), &4.into()));
    assert_eq!(since["clusters"][0]["change"], "removed");
    // A revision from before the placement, and one that was never published.
    repo.write("apps/new.yaml", config_map("new", "one", "{clusterSelector: {}}"));
    repo.commit("new");
    let text = explain(&repo, &["new", "--since", &first]);
    assert!(text.contains("when it did not exist\n  + b, c\n"), "{text}");
}
