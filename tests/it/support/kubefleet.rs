//! A live KubeFleet hub for tests: its CRDs and objects with statuses, made in a control plane. No
//! controller of KubeFleet runs; what they would have written is written here.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value as Json, json};

use super::kube::ControlPlane;
use super::wait::eventually_async;

const CLUSTERS: &str = "cluster.kubernetes-fleet.io";
const PLACEMENTS: &str = "placement.kubernetes-fleet.io";

/// Group, version, kind, plural, whether in a namespace.
pub type Kind = (&'static str, &'static str, &'static str, &'static str, bool);

pub const MEMBER: Kind = (CLUSTERS, "v1beta1", "MemberCluster", "memberclusters", false);
pub const CRP: Kind = (PLACEMENTS, "v1beta1", "ClusterResourcePlacement", "clusterresourceplacements", false);
pub const RP: Kind = (PLACEMENTS, "v1beta1", "ResourcePlacement", "resourceplacements", true);
pub const CRO: Kind = (PLACEMENTS, "v1beta1", "ClusterResourceOverride", "clusterresourceoverrides", false);
pub const BINDING: Kind = (PLACEMENTS, "v1beta1", "ClusterResourceBinding", "clusterresourcebindings", false);
pub const RP_BINDING: Kind = (PLACEMENTS, "v1beta1", "ResourceBinding", "resourcebindings", true);

const KINDS: [Kind; 6] = [MEMBER, CRP, RP, CRO, BINDING, RP_BINDING];

pub const NAMESPACE: Kind = ("", "v1", "Namespace", "namespaces", false);
pub const CONFIG_MAP: Kind = ("", "v1", "ConfigMap", "configmaps", true);
pub const SERVICE: Kind = ("", "v1", "Service", "services", true);
pub const DEPLOYMENT: Kind = ("apps", "v1", "Deployment", "deployments", true);
pub const CLUSTER_ROLE: Kind = ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false);

/// A hub with KubeFleet's definitions.
pub struct Hub {
    pub plane: ControlPlane,
    client: Client,
    /// Set where KubeFleet's kinds are served in this version only; bindings in namespaces stay v1beta1.
    version: Option<&'static str>,
}

impl Hub {
    pub async fn on(plane: ControlPlane) -> Hub {
        Hub::with(plane, &KINDS.map(|kind| (kind, vec![kind.1]))).await
    }

    /// A hub with definitions of these kinds, each in these versions, the last one stored.
    pub async fn with(plane: ControlPlane, kinds: &[(Kind, Vec<&str>)]) -> Hub {
        Hub::start(plane, kinds, None).await
    }

    async fn start(plane: ControlPlane, kinds: &[(Kind, Vec<&str>)], version: Option<&'static str>) -> Hub {
        let client = plane.client().await;
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        for (kind, versions) in kinds {
            let definition = definition(*kind, versions);
            definitions.create(&PostParams::default(), &definition).await.expect("a definition");
        }
        let hub = Hub { plane, client, version };
        for kind in kinds.iter().map(|(kind, _)| *kind) {
            // A definition is served a moment after it was made.
            let api = hub.api(kind, kind.4.then_some("default"));
            eventually_async(kind.3, async || api.list(&Default::default()).await.ok()).await;
        }
        hub
    }

    fn served(&self, kind: Kind) -> Kind {
        match self.version {
            Some(version) if [CLUSTERS, PLACEMENTS].contains(&kind.0) && kind != RP_BINDING => {
                (kind.0, version, kind.2, kind.3, kind.4)
            }
            _ => kind,
        }
    }

    fn api(&self, kind: Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version, kind, plural, _) = self.served(kind);
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        let resource = ApiResource { group, version, api_version, kind, plural };
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Makes an object of these fields beside its metadata, and writes its status.
    pub async fn make(&self, kind: Kind, metadata: Json, fields: Json) {
        let kind = self.served(kind);
        let api_version =
            if kind.0.is_empty() { kind.1.to_owned() } else { format!("{}/{}", kind.0, kind.1) };
        let mut object = json!({"apiVersion": api_version, "kind": kind.2, "metadata": metadata});
        let status = fields.get("status").cloned();
        for (key, value) in fields.as_object().expect("a mapping") {
            object[key] = value.clone();
        }
        let name = metadata["name"].as_str().expect("a name").to_owned();
        let api = self.api(kind, metadata["namespace"].as_str());
        let object: DynamicObject = serde_json::from_value(object).expect("a well-formed object");
        api.create(&PostParams::default(), &object).await.expect("an object");
        if let Some(status) = status {
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&name, &PatchParams::default(), &patch).await.expect("a status");
        }
    }

    /// A member whose agent is well.
    pub async fn member(&self, name: &str, labels: Json, cpu: &str) {
        let time = "2026-01-01T00:00:00Z";
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Well", "message": "", "lastTransitionTime": time});
        let status = json!({
            "conditions": [condition("Joined"), condition("ReadyToJoin")],
            "properties": {"kubernetes-fleet.io/node-count": {"value": "3", "observationTime": time}},
            "resourceUsage": {"capacity": {"cpu": cpu}, "available": {"cpu": cpu}, "observationTime": time},
            "agentStatus": [{"type": "MemberAgent", "conditions": [condition("Joined"), condition("Healthy")], "lastReceivedHeartbeat": time}],
        });
        let spec = json!({
            "identity": {"kind": "ServiceAccount", "name": format!("{name}-agent"), "namespace": "fleet-system", "apiGroup": ""},
            "heartbeatPeriodSeconds": 60,
        });
        let metadata = json!({"name": name, "labels": labels, "finalizers": ["work.fleet.azure.com/membercluster-finalizer"]});
        self.make(MEMBER, metadata, json!({"spec": spec, "status": status})).await;
    }

    /// What the scheduler decided for one cluster of a placement.
    pub async fn bind(
        &self,
        namespace: Option<&str>,
        placement: &str,
        cluster: &str,
        state: &str,
        scores: (i64, i64),
    ) {
        let kind = if namespace.is_some() { RP_BINDING } else { BINDING };
        let mut metadata = json!({
            "name": format!("{placement}-{cluster}-0a1b2c3d"),
            "labels": {"kubernetes-fleet.io/parent-CRP": placement},
        });
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        let spec = json!({
            "state": state, "targetCluster": cluster, "schedulingPolicySnapshotName": format!("{placement}-0"),
            "resourceSnapshotName": format!("{placement}-0-snapshot"),
            "clusterDecision": {
                "clusterName": cluster, "selected": true, "reason": "picked by scheduling policy",
                "clusterScore": {"affinityScore": scores.0, "priorityScore": scores.1},
            },
        });
        self.make(kind, metadata, json!({"spec": spec})).await;
    }

    /// The usual hub: three members; a namespace everywhere, a role on two clusters by choice, one config map
    /// of a ResourcePlacement.
    pub async fn stocked(plane: ControlPlane) -> Hub {
        Hub::stock(Hub::on(plane).await).await
    }

    /// The same, with all of KubeFleet's kinds in this version.
    pub async fn stocked_in(version: &'static str, plane: ControlPlane) -> Hub {
        let served = |kind: Kind| if kind == RP_BINDING { kind.1 } else { version };
        let kinds = KINDS.map(|kind| (kind, vec![served(kind)]));
        Hub::stock(Hub::start(plane, &kinds, Some(version)).await).await
    }

    async fn stock(hub: Hub) -> Hub {
        hub.member("oslo", json!({"region": "north"}), "4").await;
        hub.member("paris", json!({"region": "south"}), "8").await;
        hub.member("turin", json!({"region": "south"}), "6").await;
        hub.make(NAMESPACE, json!({"name": "shop", "labels": {"team": "sales"}}), json!({})).await;
        hub.make(
            CONFIG_MAP,
            json!({"name": "settings", "namespace": "shop"}),
            json!({"data": {"mode": "fast"}}),
        )
        .await;
        let ports = json!([{"port": 80, "nodePort": 30080}]);
        let spec = json!({"type": "NodePort", "selector": {"app": "web"}, "ports": ports});
        hub.make(SERVICE, json!({"name": "web", "namespace": "shop"}), json!({"spec": spec})).await;
        let containers = json!([{"name": "web", "image": "example.com/web:1"}]);
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}});
        let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template});
        hub.make(DEPLOYMENT, json!({"name": "web", "namespace": "shop"}), json!({"spec": spec})).await;
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        hub.make(CLUSTER_ROLE, json!({"name": "viewer"}), json!({"rules": rules})).await;
        hub.make(NAMESPACE, json!({"name": "tools"}), json!({})).await;
        hub.make(CONFIG_MAP, json!({"name": "own", "namespace": "tools"}), json!({"data": {"a": "b"}})).await;
        hub.make(CONFIG_MAP, json!({"name": "unplaced", "namespace": "tools"}), json!({"data": {"a": "b"}}))
            .await;
        let everywhere = json!({
            "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}],
            "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%", "unavailablePeriodSeconds": 60}},
        });
        hub.make(CRP, json!({"name": "shop"}), json!({"spec": everywhere})).await;
        for cluster in ["oslo", "paris", "turin"] {
            hub.bind(None, "shop", cluster, "Bound", (0, 0)).await;
        }
        let chosen = json!({
            "resourceSelectors": [{"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "viewer"}],
            "policy": {
                "placementType": "PickN", "numberOfClusters": 2,
                "affinity": {"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "preference": {"propertySorter": {"name": "resources.kubernetes-fleet.io/available-cpu", "sortOrder": "Descending"}}},
                ]}},
            },
        });
        hub.make(CRP, json!({"name": "viewers"}), json!({"spec": chosen})).await;
        // Decided when oslo was the largest: what is in force stays.
        hub.bind(None, "viewers", "oslo", "Bound", (10, 0)).await;
        hub.bind(None, "viewers", "turin", "Scheduled", (5, 0)).await;
        let own = json!({
            "resourceSelectors": [{"group": "", "version": "v1", "kind": "ConfigMap", "name": "own"}],
            "policy": {"placementType": "PickFixed", "clusterNames": ["paris"]},
        });
        hub.make(RP, json!({"name": "own", "namespace": "tools"}), json!({"spec": own})).await;
        hub.bind(Some("tools"), "own", "paris", "Bound", (0, 0)).await;
        let over = json!({
            "clusterResourceSelectors": [{"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "viewer"}],
            "policy": {"overrideRules": [{
                "clusterSelector": {"clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"region": "north"}}}]},
                "jsonPatchOverrides": [{"op": "add", "path": "/metadata/labels", "value": {"at": "${MEMBER-CLUSTER-NAME}"}}],
            }]},
        });
        hub.make(CRO, json!({"name": "viewer"}), json!({"spec": over})).await;
        hub
    }
}

/// A definition that keeps whatever it is given, with a status of its own.
fn definition((group, _, kind, plural, namespaced): Kind, versions: &[&str]) -> CustomResourceDefinition {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let last = versions.last().copied().unwrap_or_default();
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": *name == last, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
        })
    };
    let versions: Vec<Json> = versions.iter().map(version).collect();
    let definition = json!({
        "metadata": {
            "name": format!("{plural}.{group}"),
            // The group is Kubernetes' own by its name, and its definitions are not reviewed there.
            "annotations": {"api-approved.kubernetes.io": "unapproved, test"},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "versions": versions,
        },
    });
    serde_json::from_value(definition).expect("a definition")
}
