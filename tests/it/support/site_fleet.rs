//! Source files of a site: a fleet of `oslo`, which another program applies, and `turin`, which berth applies.

use serde_json::{Value as Json, json};

use super::Repo;
use super::removals::GLOBAL_SET;
use super::site::image;

const EVERYWHERE: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
     metadata: {name: web, namespace: shop}\nspec: {}\n";

/// A fleet whose cluster `oslo` is applied by this program.
pub fn people(applier: &str, workload: &str) -> Repo {
    let repo = Repo::new();
    let annotations = format!("annotations: {{berth.dev/applier: {applier}}}");
    repo.write("clusters/oslo.yaml", cluster("oslo", &annotations));
    repo.write("clusters/turin.yaml", cluster("turin", "labels: {a: b}"));
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write("apps/placement.yaml", EVERYWHERE);
    repo.write("apps/web.yaml", workload);
    repo.commit("begin");
    repo
}

pub fn cluster(name: &str, more: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}, {more}}}\n\
         spec: {{hubAcceptsClient: true}}\n"
    )
}

pub fn work(manifests: &[Json]) -> String {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "placementRefs": [{"name": "web", "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}}],
            "manifestWorkTemplate": {"workload": { "manifests": manifests }},
        },
    })
    .to_string()
}

pub fn namespace(name: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub fn deployment(tag: &str) -> Json {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image(tag), "ports": [{"containerPort": 80}]}]},
            },
        },
    })
}

/// Objects of several kinds, with values that readers of YAML like to change.
pub fn several() -> Vec<Json> {
    vec![
        namespace("shop"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd", "namespace": "shop"},
            "data": {"yes": "on", "number": "012", "date": "2001-01-01", "dollar": "${HOME} $(x)", "empty": "", "lines": "a\nb\n"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "shop"}, "data": {"a": "aHVudGVyMg=="}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "shop:reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
        deployment("1"),
    ]
}

pub fn settings() -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": {"a": "b"}})
}
