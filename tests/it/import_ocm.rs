//! A live Open Cluster Management hub becomes a fleet repository, and nothing moves.

use serde_json::json;

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::kubefleet::{Hub, NAMESPACE};
use crate::support::ocm::{BINDING, SCORE, SET, config_map, hub_on, managed, placed, work, work_set};
use crate::support::{Ran, Repo, berth, run};

fn import(hub: &Hub, repo: &Repo, more: &[&str]) -> Ran {
    let mut command = berth();
    command.args(["import", "ocm", "--out", repo.arg(), "--repo", repo.arg()]);
    command.args(["--context", ControlPlane::CONTEXT, "--kubeconfig"]);
    Ran::of(command.arg(hub.plane.kubeconfig()).args(more))
}

/// The usual hub: five clusters in two sets, placements of many sorts, works of both kinds.
async fn stocked(plane: ControlPlane) -> Hub {
    let hub = hub_on(plane).await;
    let blue =
        |region: &str| json!({"cluster.open-cluster-management.io/clusterset": "blue", "region": region});
    let taint =
        |key: &str, since: serde_json::Value| json!([{"key": key, "effect": "NoSelect", "timeAdded": since}]);
    let unreachable = "cluster.open-cluster-management.io/unreachable";
    managed(&hub, "bergen", blue("north"), "64Gi", json!([])).await;
    managed(&hub, "lyon", blue("south"), "16Gi", taint(unreachable, json!("2026-01-01T00:00:00Z"))).await;
    managed(&hub, "nice", blue("south"), "24Gi", taint("disk", json!(null))).await;
    managed(&hub, "oslo", blue("north"), "32Gi", json!([])).await;
    managed(&hub, "turin", blue("south"), "8Gi", json!([])).await;
    let exclusive = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
    for set in ["blue", "default"] {
        hub.make(SET, json!({"name": set}), json!({"spec": exclusive})).await;
    }
    let all = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
    hub.make(SET, json!({"name": "global"}), json!({"spec": all})).await;
    hub.make(NAMESPACE, json!({"name": "shop"}), json!({})).await;
    hub.make(BINDING, json!({"name": "blue", "namespace": "shop"}), json!({"spec": {"clusterSet": "blue"}}))
        .await;
    hub.make(
        SCORE,
        json!({"name": "network", "namespace": "turin"}),
        json!({"status": {"scores": [{"name": "rtt", "value": 90}], "conditions": []}}),
    )
    .await;
    // Every untainted cluster, in two groups.
    let groups = json!({"groupStrategy": {"decisionGroups": [
        {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"region": "north"}}}},
    ]}});
    placed(
        &hub,
        "everywhere",
        json!({"decisionStrategy": groups}),
        &[(0, "canary", &["bergen", "oslo"]), (1, "", &["turin"])],
    )
    .await;
    // Decided when the others were busy: on its own, berth would pick bergen.
    placed(&hub, "one", json!({"numberOfClusters": 1}), &[(0, "", &["turin"])]).await;
    let memory = json!({"mode": "Exact", "configurations": [{"scoreCoordinate": {"builtIn": "ResourceAllocatableMemory"}}]});
    placed(
        &hub,
        "large",
        json!({"numberOfClusters": 2, "prioritizerPolicy": memory}),
        &[(0, "", &["bergen", "oslo"])],
    )
    .await;
    let near = json!({"mode": "Exact", "configurations": [
        {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "network", "scoreName": "rtt"}}},
    ]});
    placed(&hub, "near", json!({"numberOfClusters": 1, "prioritizerPolicy": near}), &[(0, "", &["turin"])])
        .await;
    // For a hub, a taint that does not say since when is there since the year 1.
    let patient = json!({"tolerations": [{"key": "disk", "operator": "Exists", "tolerationSeconds": 0}]});
    placed(&hub, "patient", patient, &[(0, "", &["bergen", "oslo", "turin"])]).await;
    work_set(&hub, "web", "everywhere", json!({"type": "All"}), &["bergen", "oslo", "turin"]).await;
    work_set(&hub, "solo", "one", json!({"type": "All"}), &["turin"]).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}, "data": {"a": "Yg=="}});
    work(&hub, "oslo", "by-hand", json!({}), json!([config_map("by-hand"), secret])).await;
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bootstrap-hub-kubeconfig", "namespace": "agent"}, "data": {"kubeconfig": "c2VjcmV0LXRva2Vu"}});
    work(&hub, "oslo", "oslo-klusterlet", json!({}), json!([token])).await;
    let of_add_on = json!({"open-cluster-management.io/addon-name": "network"});
    work(&hub, "oslo", "addon-network-deploy-0", of_add_on, json!([config_map("agent")])).await;
    hub
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_whole_hub_becomes_files_and_a_first_commit_and_nothing_moves() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let hub = stocked(plane).await;
    let repo = Repo::new();
    let ran = import(&hub, &repo, &[]).expect(0);
    assert!(ran.out.contains("5  ManagedCluster.cluster.open-cluster-management.io"), "{}", ran.out);
    assert!(ran.out.contains("all as berth places them"), "{}\n{}", ran.out, ran.err);
    for said in [
        "cluster `lyon` has the hub's taint `cluster.open-cluster-management.io/unreachable`",
        "a taint of cluster `nice` has no timeAdded",
        "clusters join with them: ManifestWork oslo/oslo-klusterlet",
        "controllers of the hub made them: ManifestWork oslo/addon-network-deploy-0",
        "THE DATA OF 1 SECRET WAS WRITTEN",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    let path = |path: &str| repo.path().join(path);
    let text = std::fs::read_to_string(path("clusters/oslo.yaml")).expect("a cluster");
    for gone in ["finalizers", "uid", "conditions", "creationTimestamp"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    for kept in ["memory: 32Gi", "id.k8s.io", "kubernetes: v1.30.1", "hubAcceptsClient: true"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(!path("cluster-scoped/managedclusterset/default.yaml").exists(), "it is there by itself");
    let grep = Ran::of(crate::support::hermetic("grep").args(["-rl", "c2VjcmV0LXRva2Vu", repo.arg()]));
    assert_eq!(grep.out, "", "what clusters join with is in no file");

    let rendered = repo.files("berth/rendered");
    let has = |cluster: &str, name: &str| {
        rendered.contains_key(&format!("clusters/{cluster}/shop/ConfigMap_{name}.yaml"))
    };
    assert!(has("bergen", "web") && has("oslo", "web") && has("turin", "web") && !has("lyon", "web"));
    assert!(has("turin", "solo") && !has("bergen", "solo"), "what is in force stays");
    assert!(has("oslo", "by-hand") && !has("oslo", "agent"));

    let verified = repo.commit_import();
    assert!(verified.out.contains("imported from ocm https://"), "{}", verified.out);

    // A day later one cluster grows: what looks at memory is decided again, and nothing else.
    let oslo = text.replace("memory: 32Gi", "memory: 1Gi");
    repo.write("clusters/oslo.yaml", oslo);
    repo.commit("oslo shrinks");
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert!(plan.out.contains("large") && !plan.out.contains("shop/one"), "{}", plan.out);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn what_a_hub_has_left_lying_about_is_named_and_stops_nothing() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let hub = hub_on(plane).await;
    for number in 0..4 {
        managed(&hub, &format!("c{number}"), json!({}), "8Gi", json!([])).await;
    }
    hub.make(NAMESPACE, json!({"name": "shop"}), json!({})).await;
    hub.make(
        BINDING,
        json!({"name": "global", "namespace": "shop"}),
        json!({"spec": {"clusterSet": "global"}}),
    )
    .await;
    let legacy = json!({"clusterSelector": {"selectorType": "LegacyClusterSetLabel"}});
    hub.make(SET, json!({"name": "old"}), json!({"spec": legacy})).await;
    // Nobody decided yet; a cluster that is gone; a work set whose rollout has just begun.
    placed(&hub, "undecided", json!({"numberOfClusters": 1}), &[]).await;
    placed(&hub, "gone", json!({}), &[(0, "", &["c0", "c1"]), (0, "", &["c2", "c3", "c9"])]).await;
    let slowly = json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}});
    work_set(&hub, "web", "gone", slowly, &["c0", "c1"]).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}, "data": {"a": "Yg=="}});
    work(&hub, "c0", "only-a-secret", json!({}), json!([secret])).await;
    let repo = Repo::new();
    let ran = import(&hub, &repo, &["--no-secrets"]).expect(0);
    assert!(
        ran.err.contains("no Secret was imported (--no-secrets); 1 are in the manifests of works"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("shop/undecided differs from berth's decision: it is not on `c0`"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("on `c9`, which is not a cluster of the fleet"), "{}", ran.err);
    assert!(ran.out.contains("1 workload different from berth's decisions"), "{}", ran.out);
    let set = std::fs::read_to_string(repo.path().join("cluster-scoped/managedclusterset/old.yaml"))
        .expect("a set");
    assert!(set.contains("ExclusiveClusterSetLabel"), "{set}");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "import"]);
    run(&["validate", repo.arg()]).expect(0);
    let rendered = repo.files("berth/rendered");
    let has = |cluster: &str| rendered.contains_key(&format!("clusters/{cluster}/shop/ConfigMap_web.yaml"));
    assert_eq!(
        ["c0", "c1", "c2", "c3"].map(has),
        [true, true, false, false],
        "the rollout stays where it is"
    );
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert!(plan.out.contains("undecided"), "{}", plan.out);
    assert!(plan.out.contains("+ ConfigMap shop/web in c2 and c3"), "the rollout goes on: {}", plan.out);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_cluster_without_ocm_is_no_hub() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let out = tempfile::tempdir().expect("a folder");
    let mut command = berth();
    command.args(["import", "ocm", "--kubeconfig"]).arg(plane.kubeconfig()).arg("--out").arg(out.path());
    let ran = Ran::of(&mut command).expect(6);
    assert!(ran.err.contains("so there is no Open Cluster Management on it"), "{}", ran.err);
}
