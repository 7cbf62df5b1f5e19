//! A live KubeFed host for tests: its CRDs and objects with statuses, made in a control plane. No
//! controller of KubeFed runs; what they would have written is written here.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value as Json, json};

use super::kube::ControlPlane;
use super::wait::eventually_async;

pub const SYSTEM: &str = "kube-federation-system";
const CORE: &str = "core.kubefed.io";
const TYPES: &str = "types.kubefed.io";

/// Group, version, kind, plural, scope.
pub type Kind<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

pub const CONFIG: Kind<'_> = (CORE, "v1beta1", "KubeFedConfig", "kubefedconfigs", "Namespaced");
pub const TYPE_CONFIG: Kind<'_> =
    (CORE, "v1beta1", "FederatedTypeConfig", "federatedtypeconfigs", "Namespaced");
pub const CLUSTER: Kind<'_> = (CORE, "v1beta1", "KubeFedCluster", "kubefedclusters", "Namespaced");
pub const PREFERENCE: Kind<'_> = (
    "scheduling.kubefed.io",
    "v1alpha1",
    "ReplicaSchedulingPreference",
    "replicaschedulingpreferences",
    "Namespaced",
);
pub const NAMESPACE: Kind<'_> = (TYPES, "v1beta1", "FederatedNamespace", "federatednamespaces", "Namespaced");
pub const DEPLOYMENT: Kind<'_> =
    (TYPES, "v1beta1", "FederatedDeployment", "federateddeployments", "Namespaced");
pub const CONFIG_MAP: Kind<'_> =
    (TYPES, "v1beta1", "FederatedConfigMap", "federatedconfigmaps", "Namespaced");
pub const SECRET: Kind<'_> = (TYPES, "v1beta1", "FederatedSecret", "federatedsecrets", "Namespaced");
pub const CLUSTER_ROLE: Kind<'_> =
    (TYPES, "v1beta1", "FederatedClusterRole", "federatedclusterroles", "Cluster");
/// A type of somebody's own, in a group of their own.
pub const BOAT: Kind<'_> = ("types.example.com", "v1", "FederatedBoat", "federatedboats", "Namespaced");

const KINDS: [Kind<'_>; 10] =
    [CONFIG, TYPE_CONFIG, CLUSTER, PREFERENCE, NAMESPACE, DEPLOYMENT, CONFIG_MAP, SECRET, CLUSTER_ROLE, BOAT];

/// What the chart's type configs say: target group, version, kind, plural, scope, and the federated kind.
const TARGETS: [(Kind<'_>, Kind<'_>); 6] = [
    (("", "v1", "Namespace", "namespaces", "Cluster"), NAMESPACE),
    (("apps", "v1", "Deployment", "deployments", "Namespaced"), DEPLOYMENT),
    (("", "v1", "ConfigMap", "configmaps", "Namespaced"), CONFIG_MAP),
    (("", "v1", "Secret", "secrets", "Namespaced"), SECRET),
    (("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "Cluster"), CLUSTER_ROLE),
    (("harbour.example.com", "v1", "Boat", "boats", "Namespaced"), BOAT),
];

/// A host cluster with KubeFed's definitions.
pub struct Host {
    pub plane: ControlPlane,
    client: Client,
}

impl Host {
    /// Makes the definitions, the settings, the type configs and the namespace `shop`.
    pub async fn on(plane: ControlPlane) -> Host {
        let client = plane.client().await;
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        for kind in KINDS {
            let made = definitions.create(&PostParams::default(), &definition(kind)).await;
            made.expect("a definition");
        }
        let host = Host { plane, client };
        for kind in KINDS {
            // A definition is served a moment after it was made.
            let api = host.api(kind, (kind.4 == "Namespaced").then_some("default"));
            eventually_async(kind.3, async || api.list(&Default::default()).await.ok()).await;
        }
        host.namespace(SYSTEM, json!({})).await;
        host.namespace("shop", json!({"team": "sales"})).await;
        let settings = json!({"scope": "Cluster", "syncController": {"adoptResources": "Enabled"}});
        host.make(CONFIG, SYSTEM, "kubefed", settings, json!({})).await;
        for (target, federated) in TARGETS {
            let (group, version, kind, plural, scope) = target;
            let name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
            let side = |group: &str, version: &str, kind: &str, plural: &str, scope: &str| {
                let mut side =
                    json!({"version": version, "kind": kind, "pluralName": plural, "scope": scope});
                if !group.is_empty() {
                    side["group"] = json!(group);
                }
                side
            };
            let spec = json!({
                "targetType": side(group, version, kind, plural, scope),
                "federatedType": side(federated.0, federated.1, federated.2, federated.3, federated.4),
                "propagation": "Enabled",
            });
            let status = json!({"observedGeneration": 1, "propagationController": "Running"});
            host.make(TYPE_CONFIG, SYSTEM, &name, spec, status).await;
        }
        host
    }

    fn api(&self, kind: Kind<'_>, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version, kind, plural, _) = kind;
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        let resource = ApiResource { group, version, api_version, kind, plural };
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    pub async fn namespace(&self, name: &str, labels: Json) {
        let api = self.api(("", "v1", "Namespace", "namespaces", "Cluster"), None);
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        api.create(&PostParams::default(), &typed(object)).await.expect("a namespace");
    }

    /// Makes an object, and writes its status as its controller would have. An empty namespace is none.
    pub async fn make(&self, kind: Kind<'_>, namespace: &str, name: &str, spec: Json, status: Json) {
        self.make_with(kind, json!({"name": name, "namespace": namespace}), spec, status).await;
    }

    pub async fn make_with(&self, kind: Kind<'_>, mut metadata: Json, spec: Json, status: Json) {
        let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        if namespace.is_empty() {
            metadata.as_object_mut().expect("a mapping").remove("namespace");
        }
        let api = self.api(kind, Some(namespace.as_str()).filter(|namespace| !namespace.is_empty()));
        let api_version = format!("{}/{}", kind.0, kind.1);
        let object = json!({"apiVersion": api_version, "kind": kind.2, "metadata": metadata, "spec": spec});
        api.create(&PostParams::default(), &typed(object)).await.expect("an object");
        if status.as_object().is_some_and(|status| !status.is_empty()) {
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&name, &PatchParams::default(), &patch).await.expect("a status");
        }
    }

    /// A member that KubeFed has probed.
    pub async fn cluster(&self, name: &str, labels: Json, ready: bool) {
        let metadata = json!({"name": name, "namespace": SYSTEM, "labels": labels});
        let spec = json!({
            "apiEndpoint": format!("https://{name}.example.com:6443"), "caBundle": "Y2E=", "secretRef": {"name": format!("{name}-abc12")},
        });
        let now = "2026-01-01T00:00:00Z";
        let word = if ready { ("Ready", "ClusterReady") } else { ("Offline", "ClusterNotReachable") };
        let status = json!({
            "conditions": [{
                "type": word.0, "status": "True", "reason": word.1, "message": "/healthz responded with ok",
                "lastProbeTime": now, "lastTransitionTime": now,
            }],
            "kubernetesVersion": "v1.24.0",
        });
        self.make_with(CLUSTER, metadata, spec, status).await;
    }

    /// A federated object, in sync on these clusters; `name (Word)` is one that is not.
    pub async fn placed(&self, kind: Kind<'_>, namespace: &str, name: &str, spec: Json, clusters: &[&str]) {
        let cluster = |cluster: &&str| match cluster.split_once(" (") {
            Some((name, word)) => json!({"name": name, "status": word.trim_end_matches(')')}),
            None => json!({"name": cluster}),
        };
        let clusters: Vec<Json> = clusters.iter().map(cluster).collect();
        let time = "2026-01-01T00:00:00Z";
        let status = json!({
            "observedGeneration": 1,
            "conditions": [{"type": "Propagation", "status": "True", "lastUpdateTime": time, "lastTransitionTime": time}],
            "clusters": clusters,
        });
        self.make(kind, namespace, name, spec, status).await;
    }

    /// The usual host: three clusters, a namespace everywhere, one object of most types.
    pub async fn stocked(plane: ControlPlane) -> Host {
        let host = Host::on(plane).await;
        host.cluster("oslo", json!({"region": "north"}), true).await;
        host.cluster("turin", json!({"region": "south"}), true).await;
        host.cluster("paris", json!({"region": "south"}), true).await;
        let everywhere = json!({"clusterSelector": {}});
        let all = ["oslo", "paris", "turin"];
        host.placed(NAMESPACE, "shop", "shop", json!({"placement": everywhere}), &all).await;
        let web = json!({
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]}},
            }},
            "placement": {"clusterSelector": {"matchLabels": {"region": "south"}}},
            "overrides": [{"clusterName": "turin", "clusterOverrides": [{"path": "/spec/replicas", "value": 5}]}],
        });
        host.placed(DEPLOYMENT, "shop", "web", web, &["paris", "turin"]).await;
        let settings =
            json!({"template": {"data": {"mode": "fast"}}, "placement": {"clusters": [{"name": "oslo"}]}});
        host.placed(CONFIG_MAP, "shop", "settings", settings, &["oslo"]).await;
        let viewer = json!({
            "template": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
            "placement": everywhere,
        });
        host.placed(CLUSTER_ROLE, "", "viewer", viewer, &all).await;
        let ferry =
            json!({"template": {"spec": {"length": 30}}, "placement": {"clusters": [{"name": "turin"}]}});
        host.placed(BOAT, "shop", "ferry", ferry, &["turin"]).await;
        host
    }
}

fn typed(value: Json) -> DynamicObject {
    serde_json::from_value(value).expect("a well-formed object")
}

/// A definition that keeps whatever it is given, with a status of its own.
fn definition((group, version, kind, plural, scope): Kind<'_>) -> CustomResourceDefinition {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "scope": scope,
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
            }],
        },
    });
    serde_json::from_value(definition).expect("a definition")
}
