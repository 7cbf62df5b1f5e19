//! ClusterProfiles as the inventory: placements of every system pick them, and commands make and mark them.

use serde_json::{Value as Json, json};

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::kubefleet::{Hub, Kind, NAMESPACE};
use crate::support::{Ran, Repo, berth, run};

fn profile(name: &str, labels: &str, healthy: &str, location: &str) -> String {
    format!(
        "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ClusterProfile\n\
         metadata: {{name: {name}, namespace: fleet, labels: {labels}}}\n\
         spec: {{displayName: {name}, clusterManager: {{name: hub}}}}\nstatus:\n  \
         conditions: [{{type: ControlPlaneHealthy, status: '{healthy}', reason: Seen, message: '', lastTransitionTime: '2026-11-01T00:00:00Z'}}]\n  \
         properties: [{{name: location, value: {location}}}, {{name: nodes, value: '5'}}]\n---\n"
    )
}

const NAMESPACES: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, namespace: shop}
data: {a: b}
";

const FEDERATED: &str = "\
apiVersion: types.kubefed.io/v1beta1
kind: FederatedNamespace
metadata: {name: shop, namespace: shop}
spec: {placement: {clusterSelector: {}}}
---
apiVersion: types.kubefed.io/v1beta1
kind: FederatedConfigMap
metadata: {name: federated, namespace: shop}
spec: {template: {data: {a: b}}, placement: {clusterSelector: {matchLabels: {env: prod}}}}
";

const FLEET: &str = "\
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourcePlacement
metadata: {name: fleet, namespace: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: plain}]
  policy:
    placementType: PickAll
    affinity:
      clusterAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          clusterSelectorTerms:
          - propertySelector: {matchExpressions: [{name: nodes, operator: Ge, values: ['5']}]}
";

const OCM: &str = "\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: global}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: shop}
spec: {clusterSet: global}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: ocm, namespace: shop}
spec:
  clusterSets: [global]
  predicates:
  - requiredClusterSelector: {claimSelector: {matchExpressions: [{key: location, operator: In, values: [eu]}]}}
";

fn fleet() -> Repo {
    let repo = Repo::new();
    let profiles = [
        profile("ams", "{env: prod}", "True", "eu"),
        profile("ber", "{env: dev}", "True", "eu"),
        profile("chi", "{env: prod}", "False", "us"),
    ];
    repo.write("clusters/profiles.yaml", profiles.concat());
    for (file, text) in [("plain", NAMESPACES), ("federated", FEDERATED), ("fleet", FLEET), ("ocm", OCM)] {
        repo.write(&format!("apps/{file}.yaml"), text);
    }
    repo.commit("profiles");
    repo
}

#[test]
fn placements_of_every_system_pick_cluster_profiles() {
    let repo = fleet();
    let decided = run(&["decide", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    let picked = |kind: &str, name: &str| -> Vec<String> {
        let all = decided["placements"].as_array().expect("placements");
        let is = |one: &&serde_json::Value| one["kind"] == kind && one["name"] == name;
        let one = all.iter().find(is).unwrap_or_else(|| panic!("{kind} {name} in {decided:#}"));
        let clusters = one["clusters"].as_array().expect("clusters");
        clusters.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
    };
    // KubeFleet looks at a cluster's health, KubeFed's selectors and OCM do not.
    assert_eq!(picked("FederatedConfigMap", "federated"), ["ams", "chi"]);
    assert_eq!(picked("ResourcePlacement", "fleet"), ["ams", "ber"]);
    assert_eq!(picked("Placement", "ocm"), ["ams", "ber"]);
    let why = run(&["explain", "fleet", "--repo", repo.arg()]).expect(0).out;
    assert!(why.contains("chi") && why.contains("not ready"), "{why}");
}

#[test]
fn a_profile_is_made_and_labelled_by_commands() {
    let repo = fleet();
    run(&["join", "dub", "--dialect", "inventory", "--label", "env=prod", "--repo", repo.arg()]).expect(0);
    let made = std::fs::read_to_string(repo.path().join("clusters/dub.yaml")).expect("a file");
    for line in ["kind: ClusterProfile", "x-k8s.io/cluster-manager: berth", "displayName: dub"] {
        assert!(made.contains(line), "{line}\n{made}");
    }
    run(&["validate", repo.arg()]).expect(0);
    run(&["label", "dub", "env=dev", "--overwrite", "--repo", repo.arg()]).expect(0);
    let marked = std::fs::read_to_string(repo.path().join("clusters/dub.yaml")).expect("a file");
    assert!(marked.contains("env: dev"), "{marked}");
    let cordoned = run(&["cordon", "dub", "--repo", repo.arg()]);
    assert_ne!(cordoned.code, 0);
    assert!(cordoned.err.contains("ClusterProfile") || cordoned.err.contains("taint"), "{}", cordoned.err);
}

const PROFILE: Kind = ("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile", "clusterprofiles", true);

async fn make(hub: &Hub, namespace: &str, name: &str, manager: &str, location: &str) {
    let seen = "2026-11-01T00:00:00Z";
    let status = json!({
        "version": {"kubernetes": "v1.34.2"},
        "conditions": [{"type": "ControlPlaneHealthy", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": seen}],
        "properties": [{"name": "location", "value": location, "lastObservedTime": seen}],
        "accessProviders": [{"name": "kubeconfig", "cluster": {"server": "https://10.0.0.1"}}],
    });
    let spec = json!({"displayName": name, "clusterManager": {"name": manager}});
    let metadata =
        json!({"name": name, "namespace": namespace, "labels": {"x-k8s.io/cluster-manager": manager}});
    hub.make(PROFILE, metadata, json!({"spec": spec, "status": status})).await;
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_hubs_profiles_are_imported_once_for_each_cluster() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let hub = Hub::with(plane, &[(PROFILE, vec!["v1alpha1"])]).await;
    for namespace in ["one", "two"] {
        hub.make(NAMESPACE, json!({"name": namespace}), json!({})).await;
        make(&hub, namespace, "ams", "open-cluster-management", "eu").await;
    }
    make(&hub, "one", "chi", "open-cluster-management", "us").await;
    make(&hub, "two", "chi", "gke", "us").await;
    let out = tempfile::tempdir().expect("a folder");
    let import = || {
        let mut command = berth();
        command.args(["import", "clusterprofiles", "--context", ControlPlane::CONTEXT, "--out"]);
        command.arg(out.path());
        Ran::of(command.arg("--kubeconfig").arg(hub.plane.kubeconfig())).expect(0)
    };
    let ran = import();
    let said = "`chi` has profiles of `open-cluster-management` and of `gke`; that of `open-cluster-management` was imported";
    assert!(ran.err.contains(said), "{}", ran.err);
    let ams = std::fs::read_to_string(out.path().join("clusters/ams.yaml")).expect("a file");
    for gone in ["conditions", "accessProviders", "lastObservedTime", "uid", "10.0.0.1"] {
        assert!(!ams.contains(gone), "{gone}\n{ams}");
    }
    assert!(ams.contains("value: eu") && ams.contains("kubernetes: v1.34.2"), "{ams}");
    // Once more changes nothing, and what came is a fleet.
    import();
    let validated = run(&["validate", out.path().to_str().expect("text"), "-o", "json"]).expect(0).json();
    assert_eq!(validated["diagnostics"], Json::Array(Vec::new()), "{validated:#}");
    let none = Hub::with(ControlPlane::start(Wanted::SERVER_ONLY).expect("a second one"), &[]).await;
    let mut command = berth();
    command.args(["import", "clusterprofiles", "--out"]).arg(out.path());
    let ran = Ran::of(command.arg("--kubeconfig").arg(none.plane.kubeconfig()));
    assert!(ran.code != 0 && ran.err.contains("the Cluster Inventory API"), "{}", ran.err);
}
