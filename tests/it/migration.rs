//! What somebody who comes from KubeFed runs into: settings that would be lost in silence, and the words
//! of KubeFed's status.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use crate::support::{Repo, cluster, config_map, namespace, run, small_fleet};

fn config(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedConfig\n\
         metadata: {{name: {name}, namespace: kube-federation-system}}\nspec:\n  scope: Cluster\n{spec}"
    )
}

fn found(repo: &Repo) -> String {
    run(&["validate", repo.arg()]).err
}

#[test]
fn settings_that_say_nothing_here_are_told_of() {
    let repo = small_fleet();
    let gates = |name: &str, state: &str| {
        config("kubefed", &format!("  featureGates: [{{name: {name}, configuration: {state}}}]\n"))
    };
    for (text, part) in [
        (config("kubefed-old", ""), "config/planes.yaml:3:18: warning: a KubeFedConfig must be named"),
        (gates("SchedulerPreference", "Enabled"), "did you mean `SchedulerPreferences`?"),
        (gates("PushReconciler", "Disabled"), "berth propagates without the gate PushReconciler too"),
    ] {
        repo.write("config/planes.yaml", &text);
        assert!(found(&repo).contains(part), "{part} is not in\n{}", found(&repo));
    }
    for harmless in [gates("PushReconciler", "Enabled"), gates("RawResourceStatusCollection", "Enabled")] {
        repo.write("config/planes.yaml", &harmless);
        assert!(!found(&repo).contains("warning"), "{}", found(&repo));
    }
}

#[test]
fn replicas_are_retained_only_where_there_can_be_some() {
    let repo = small_fleet();
    let with = |kind: &str| {
        format!(
            "apiVersion: types.kubefed.io/v1beta1\nkind: Federated{kind}\nmetadata: {{name: other, namespace: shop}}\n\
             spec:\n  placement: {{clusterSelector: {{}}}}\n  retainReplicas: true\n"
        )
    };
    for kind in ["ConfigMap", "Job", "Service"] {
        repo.write("apps/other.yaml", with(kind));
        let wanted = format!(
            "apps/other.yaml:6:19: warning: spec.retainReplicas has no effect: a {kind} has no replicas"
        );
        assert!(found(&repo).contains(&wanted), "{}", found(&repo));
    }
    for kind in ["Deployment", "ReplicaSet"] {
        repo.write("apps/other.yaml", with(kind));
        assert!(!found(&repo).contains("warning"), "{}", found(&repo));
    }
}

#[test]
fn an_object_that_was_being_deleted_does_not_come_back_in_silence() {
    let repo = small_fleet();
    let hung = "namespace: shop, deletionTimestamp: '2022-11-20T10:00:00Z', finalizers: [kubefed.io/sync-controller]";
    repo.write(
        "apps/web.yaml",
        config_map("web", "one", "{clusterSelector: {}}").replace("namespace: shop", hung),
    );
    let told = found(&repo);
    let wanted =
        "apps/web.yaml:3:59: warning: FederatedConfigMap shop/web was being deleted when it was exported";
    assert!(told.contains(wanted), "{told}");
}

#[test]
fn names_of_clusters_that_there_are_not_are_told_of() {
    let repo = small_fleet();
    let clusters = "{clusters: [{name: a}, {name: turn}, {name: u}, {name: v}, {name: w}]}";
    repo.write("clusters/turin.yaml", cluster("turin", &[]));
    repo.write("apps/web.yaml", config_map("web", "one", clusters));
    let told = found(&repo);
    let names = "warning: FederatedConfigMap shop/web names";
    let turn =
        format!("{names} `turn`, which is not a cluster of the fleet\n  hint: did you mean `turin`?\n");
    assert!(told.contains(&turn) && told.contains(&format!("{names} `w`, which")), "{told}");
    let places = told.lines().filter(|line| line.contains(names)).filter_map(|line| line.split_once(": "));
    let places: BTreeSet<&str> = places.map(|(place, _)| place).collect();
    assert!(places.len() == 4 && places.iter().all(|place| !place.ends_with(":1:1")), "{told}");
    let decided = run(&["decide", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    let web = decided["placements"].as_array().expect("placements").iter().find(|one| one["name"] == "web");
    let clusters = web.expect("it is decided")["clusters"].as_array().expect("clusters");
    assert_eq!(clusters.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_preference_for_nobody_says_what_taking_part_takes() {
    let repo = small_fleet();
    repo.write(
        "apps/other.yaml",
        "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedDeployment\nmetadata: {name: other, namespace: shop}\n\
         spec:\n  placement: {clusterSelector: {matchLabels: {env: none}}}\n---\n\
         apiVersion: scheduling.kubefed.io/v1alpha1\nkind: ReplicaSchedulingPreference\n\
         metadata: {name: other, namespace: shop}\n\
         spec: {targetKind: FederatedDeployment, totalReplicas: 3, intersectWithClusterSelector: true}\n",
    );
    let told = found(&repo);
    assert!(
        told.contains("hint: a cluster takes part if it meets all of: ready; label env=none\n"),
        "{told}"
    );
}

/// The status of each Federated object: the condition's reason, and the words by cluster.
fn words(repo: &Repo) -> BTreeMap<String, (Json, Json)> {
    let status = run(&["status", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    let of = |workload: &Json| {
        let status = &workload["status"];
        let clusters = status["clusters"].as_array().expect("clusters").iter();
        let words: serde_json::Map<_, _> = clusters
            .map(|one| (one["name"].as_str().expect("a name").to_owned(), one["status"].clone()))
            .collect();
        let condition = &status["conditions"][0];
        let reason = if condition["status"] == "True" { json!("True") } else { condition["reason"].clone() };
        (workload["name"].as_str().expect("a name").to_owned(), (reason, words.into()))
    };
    status["fleet"]["workloads"].as_array().expect("workloads").iter().map(of).collect()
}

#[test]
fn status_says_in_kubefeds_words_how_propagation_went() {
    let repo = small_fleet();
    repo.write("config/planes.yaml", config("kubefed", "  syncController: {adoptResources: Disabled}\n"));
    repo.write("apps/taken.yaml", config_map("taken", "one", "{clusters: [{name: a}, {name: c}]}"));
    repo.write(
        "apps/unfit.yaml",
        config_map("unfit", "one", "{clusterSelector: {}}")
            + "  overrides:\n  - clusterName: b\n    clusterOverrides: [{op: remove, path: /data/none}]\n",
    );
    repo.write(
        "apps/elsewhere.yaml",
        config_map("elsewhere", "one", "{clusterSelector: {}}")
            .replace("namespace: shop", "namespace: loose"),
    );
    repo.commit("more");
    repo.publish().expect(1);
    let members = tempfile::tempdir().expect("a folder");
    let folder = |cluster: &str| members.path().join(cluster);
    std::fs::create_dir_all(folder("a").join("shop")).expect("a folder");
    std::fs::write(folder("a").join("shop/ConfigMap_taken.yaml"), "somebody's\n").expect("a file");
    repo.sync("a", &folder("a"), &[]);
    repo.sync("b", &folder("b"), &[]).expect(0);
    let now = words(&repo);
    let unheard = json!({"c": "ClusterNotReady"});
    assert_eq!(now["web"], (json!("CheckClusters"), unheard));
    assert_eq!(now["taken"], (json!("CheckClusters"), json!({"a": "AlreadyExists", "c": "ClusterNotReady"})));
    assert_eq!(
        now["unfit"],
        (json!("CheckClusters"), json!({"b": "ApplyOverridesFailed", "c": "ClusterNotReady"}))
    );
    assert_eq!(now["elsewhere"], (json!("NamespaceNotFederated"), json!({})));

    repo.sync("c", &folder("c"), &[]).expect(0);
    assert_eq!(words(&repo)["web"], (json!("True"), json!({})));
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("an edit that members have not seen");
    repo.publish().expect(1);
    let late = json!({"a": "UpdateTimedOut", "b": "UpdateTimedOut", "c": "UpdateTimedOut"});
    assert_eq!(words(&repo)["web"], (json!("CheckClusters"), late));

    let in_sync = |workload: &str| {
        let text = run(&["status", "--repo", repo.arg()]).expect(0).out;
        // Errors of the source come first.
        let line = text.lines().rfind(|line| line.contains(workload)).expect("its line");
        line.rsplit(' ').next().unwrap_or_default().to_owned()
    };
    assert_eq!(in_sync("shop/web"), "0/3");
    assert_eq!(in_sync("shop/unfit"), "2/3", "members have its copies, though not all of their folders");
    for cluster in ["a", "b", "c"] {
        repo.sync(cluster, &folder(cluster), &[]);
    }
    assert_eq!(in_sync("shop/web"), "3/3");
    assert_eq!(in_sync("shop/unfit"), "2/3", "a copy that could not be made is not in sync");
}

#[test]
fn a_namespace_that_members_may_not_remove_waits_for_removal() {
    let repo = Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[])),
        ("clusters/b.yaml", &cluster("b", &[])),
        ("apps/shop.yaml", &namespace("shop")),
    ]);
    repo.publish().expect(0);
    let members = tempfile::tempdir().expect("a folder");
    for name in ["a", "b"] {
        repo.sync(name, &members.path().join(name), &[]).expect(0);
    }
    repo.write(
        "apps/shop.yaml",
        namespace("shop").replace("{clusterSelector: {}}", "{clusters: [{name: a}]}"),
    );
    repo.commit("not in b");
    repo.publish_ungated().expect(0);
    for name in ["a", "b"] {
        repo.sync(name, &members.path().join(name), &[]);
    }
    assert_eq!(words(&repo)["shop"], (json!("CheckClusters"), json!({"b": "WaitingForRemoval"})));
    repo.sync("b", &members.path().join("b"), &["--allow-risky-prune"]).expect(0);
    assert_eq!(words(&repo)["shop"], (json!("True"), json!({})));
}

/// The blocks of YAML on the page.
fn examples(page: &str) -> Vec<String> {
    let mut blocks = page.split("```yaml\n").skip(1);
    let first = |block: &str| block.split("```").next().unwrap_or_default().to_owned();
    blocks.by_ref().map(first).collect()
}

#[test]
fn the_examples_of_the_guide_are_read_without_a_complaint() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubefed.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let examples = examples(&page);
    assert!(examples.len() >= 2, "{}", examples.len());
    let repo = Repo::with(&[
        ("clusters/oslo.yaml", &cluster("oslo", &[("region", "south")])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &deployment_of_web()),
    ]);
    for (index, example) in examples.iter().enumerate() {
        repo.write(&format!("example-{index}.yaml"), example);
    }
    let ran = run(&["validate", repo.arg()]).expect(0);
    assert!(!ran.err.contains("warning") && !ran.err.contains("error:"), "{}", ran.err);
    let decided = run(&["explain", "settings", "--repo", repo.arg()]).expect(0).out;
    assert!(decided.contains("picks 1 of 1 cluster"), "{decided}");
}

fn deployment_of_web() -> String {
    "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedDeployment\nmetadata: {name: web, namespace: shop}\n\
     spec: {placement: {clusterSelector: {}}}\n"
        .to_owned()
}
