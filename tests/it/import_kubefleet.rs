//! A live KubeFleet hub becomes a fleet repository, and nothing moves.

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::kubefleet::Hub;
use crate::support::{Ran, Repo, berth, run};

fn import(hub: &Hub, repo: &Repo) -> Ran {
    let mut command = berth();
    command.args(["import", "kubefleet", "--out", repo.arg(), "--repo", repo.arg()]);
    command.args(["--context", ControlPlane::CONTEXT, "--kubeconfig"]);
    Ran::of(command.arg(hub.plane.kubeconfig()))
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_whole_hub_becomes_files_and_a_first_commit_and_nothing_moves() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let hub = Hub::stocked(plane).await;
    let repo = Repo::new();
    let ran = import(&hub, &repo).expect(0);
    assert!(ran.out.contains("3  MemberCluster.cluster.kubernetes-fleet.io"), "{}", ran.out);
    assert!(ran.out.contains("all as berth places them"), "{}\n{}", ran.out, ran.err);
    assert!(ran.err.contains("the host reports Scheduled for 1 object on `turin`"), "{}", ran.err);
    let path = |path: &str| repo.path().join(path);
    assert!(!path("namespaces/tools/configmap/unplaced.yaml").exists());
    let text = std::fs::read_to_string(path("clusters/oslo.yaml")).expect("a cluster");
    for gone in ["agentStatus", "conditions", "finalizers", "uid"] {
        assert!(!text.contains(gone), "{text}");
    }

    let rendered = repo.files("berth/rendered");
    let shop = |cluster: &str| format!("clusters/{cluster}/shop/Deployment.apps_web.yaml");
    assert!(["oslo", "paris", "turin"].iter().all(|cluster| rendered.contains_key(&shop(cluster))));
    assert!(!rendered["clusters/oslo/shop/Service_web.yaml"].contains("nodePort"));
    let role = "ClusterRole.rbac.authorization.k8s.io_viewer.yaml";
    assert!(rendered[&format!("clusters/oslo/_cluster/{role}")].contains("at: oslo"));
    assert!(!rendered.contains_key(&format!("clusters/paris/_cluster/{role}")), "what is in force stays");
    assert!(rendered.contains_key("clusters/paris/tools/ConfigMap_own.yaml"));

    let verified = repo.commit_import();
    assert!(verified.out.contains("imported from kubefleet https://"), "{}", verified.out);

    // What was not rolled out yet is the first to go.
    let viewers = "cluster-scoped/clusterresourceplacement/viewers.yaml";
    let text = std::fs::read_to_string(path(viewers)).expect("a placement");
    repo.write(viewers, text.replace("numberOfClusters: 2", "numberOfClusters: 1"));
    repo.commit("fewer");
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert!(plan.out.contains("spec.policy.numberOfClusters: 2 → 1\n"), "{}", plan.out);
    assert!(plan.out.contains("viewers leaves turin") && !plan.out.contains("oslo"), "{}", plan.out);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_hub_that_serves_v1_only_is_read_as_well() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let hub = Hub::stocked_in("v1", plane).await;
    let repo = Repo::new();
    let ran = import(&hub, &repo).expect(0);
    assert!(ran.out.contains("3  MemberCluster.cluster.kubernetes-fleet.io"), "{}", ran.out);
    assert!(ran.out.contains("all as berth places them"), "{}\n{}", ran.out, ran.err);
    let text = |path: &str| std::fs::read_to_string(repo.path().join(path)).expect("a file");
    assert!(text("clusters/oslo.yaml").contains("apiVersion: cluster.kubernetes-fleet.io/v1\n"));
    let placement = text("cluster-scoped/clusterresourceplacement/viewers.yaml");
    assert!(placement.contains("apiVersion: placement.kubernetes-fleet.io/v1\n"), "{placement}");
    let rendered = repo.files("berth/rendered");
    assert!(rendered.contains_key("clusters/paris/tools/ConfigMap_own.yaml"), "bindings are read");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "import"]);
    let plan = run(&["plan", "--repo", repo.arg(), "--fail-on", "any"]).expect(0);
    assert_eq!(plan.out, "no changes\n");
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_cluster_without_kubefleet_is_no_hub() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let out = tempfile::tempdir().expect("a folder");
    let mut command = berth();
    command
        .args(["import", "kubefleet", "--kubeconfig"])
        .arg(plane.kubeconfig())
        .arg("--out")
        .arg(out.path());
    let ran = Ran::of(&mut command).expect(6);
    assert!(ran.err.contains("so there is no KubeFleet on it"), "{}", ran.err);
}
