//! A live Open Cluster Management hub for tests: its CRDs and objects with statuses, made in a control plane.
//! No controller of OCM runs; what they would have written is written here.

use serde_json::{Value as Json, json};

use super::kube::ControlPlane;
use super::kubefleet::{Hub, Kind, NAMESPACE};

const CLUSTERS: &str = "cluster.open-cluster-management.io";
const WORKS: &str = "work.open-cluster-management.io";

pub const MANAGED: Kind = (CLUSTERS, "v1", "ManagedCluster", "managedclusters", false);
pub const SET: Kind = (CLUSTERS, "v1beta2", "ManagedClusterSet", "managedclustersets", false);
pub const BINDING: Kind =
    (CLUSTERS, "v1beta2", "ManagedClusterSetBinding", "managedclustersetbindings", true);
pub const PLACEMENT: Kind = (CLUSTERS, "v1beta1", "Placement", "placements", true);
pub const DECISION: Kind = (CLUSTERS, "v1beta1", "PlacementDecision", "placementdecisions", true);
pub const SCORE: Kind = (CLUSTERS, "v1alpha1", "AddOnPlacementScore", "addonplacementscores", true);
pub const WORK_SET: Kind = (WORKS, "v1alpha1", "ManifestWorkReplicaSet", "manifestworkreplicasets", true);
pub const WORK: Kind = (WORKS, "v1", "ManifestWork", "manifestworks", true);

/// A hub with OCM's definitions; sets and bindings in an older version as well.
pub async fn hub_on(plane: ControlPlane) -> Hub {
    let two = |kind: Kind| (kind, vec!["v1beta1", "v1beta2"]);
    let kinds = [MANAGED, PLACEMENT, DECISION, SCORE, WORK_SET, WORK].map(|kind| (kind, vec![kind.1]));
    Hub::with(plane, &[&[two(SET), two(BINDING)][..], &kinds[..]].concat()).await
}

/// A cluster that has joined, with the namespace a hub keeps for it.
pub async fn managed(hub: &Hub, name: &str, labels: Json, memory: &str, taints: Json) {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Well", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let spec = json!({
        "hubAcceptsClient": true, "leaseDurationSeconds": 60, "taints": taints,
        "managedClusterClientConfigs": [{"url": format!("https://{name}.example.com:6443"), "caBundle": "Y2E="}],
    });
    let status = json!({
        "conditions": [condition("HubAcceptedManagedCluster"), condition("ManagedClusterJoined"), condition("ManagedClusterConditionAvailable")],
        "allocatable": {"cpu": "8", "memory": memory}, "capacity": {"cpu": "8", "memory": memory, "pods": "250"},
        "clusterClaims": [{"name": "id.k8s.io", "value": name}, {"name": "product.open-cluster-management.io", "value": "OpenShift"}],
        "version": {"kubernetes": "v1.30.1"},
    });
    let metadata = json!({"name": name, "labels": labels, "finalizers": ["cluster.open-cluster-management.io/api-resource-cleanup"]});
    hub.make(MANAGED, metadata, json!({"spec": spec, "status": status})).await;
    hub.make(NAMESPACE, json!({"name": name}), json!({})).await;
}

/// A placement with its decisions: one object for each group of clusters.
pub async fn placed(hub: &Hub, name: &str, spec: Json, groups: &[(usize, &str, &[&str])]) {
    hub.make(PLACEMENT, json!({"name": name, "namespace": "shop"}), json!({"spec": spec})).await;
    for (number, (index, group, clusters)) in groups.iter().enumerate() {
        let label = |key: &str| format!("cluster.open-cluster-management.io/{key}");
        let labels = json!({
            label("placement"): name, label("decision-group-index"): index.to_string(), label("decision-group-name"): group,
        });
        let metadata =
            json!({"name": format!("{name}-decision-{}", number + 1), "namespace": "shop", "labels": labels});
        let decisions: Vec<Json> =
            clusters.iter().map(|cluster| json!({"clusterName": cluster, "reason": ""})).collect();
        hub.make(DECISION, metadata, json!({"status": {"decisions": decisions}})).await;
    }
}

/// A config map among manifests.
pub fn config_map(name: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"mode": "fast"}})
}

/// A work in a cluster's namespace, applied there, with these labels.
pub async fn work(hub: &Hub, cluster: &str, name: &str, labels: Json, manifests: Json) {
    let applied = json!({"type": "Applied", "status": "True", "reason": "AppliedManifestWorkComplete", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let metadata = json!({"name": name, "namespace": cluster, "labels": labels});
    let fields = json!({"spec": {"workload": {"manifests": manifests}}, "status": {"conditions": [applied]}});
    hub.make(WORK, metadata, fields).await;
}

/// A set of works that follows a placement, with its work in each of these clusters.
pub async fn work_set(hub: &Hub, name: &str, placement: &str, strategy: Json, clusters: &[&str]) {
    let manifests = json!([config_map(name)]);
    let spec = json!({
        "placementRefs": [{"name": placement, "rolloutStrategy": strategy}],
        "manifestWorkTemplate": {"workload": {"manifests": manifests}},
    });
    hub.make(WORK_SET, json!({"name": name, "namespace": "shop"}), json!({"spec": spec})).await;
    for cluster in clusters {
        let labels =
            json!({"work.open-cluster-management.io/manifestworkreplicaset": format!("shop.{name}")});
        work(hub, cluster, &format!("{name}-x7k2p"), labels, manifests.clone()).await;
    }
}
