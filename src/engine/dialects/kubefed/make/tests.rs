use serde_json::{Value as Json, json};

use super::*;
use berth_base::diag::Pos;

fn subjects(objects: &[Json]) -> Vec<FederateSubject> {
    objects
        .iter()
        .map(|object| FederateSubject { object: object.clone(), at: Pos::new("in.yaml", 1, 1) })
        .collect()
}

fn federated(objects: &[Json], options: &FederateOptions) -> (Vec<Json>, Vec<String>) {
    let done = federate(&subjects(objects), options);
    let documents = done.documents.into_iter().map(|made| made.document).collect();
    (documents, done.diagnostics.iter().map(ToString::to_string).collect())
}

fn config_map(namespace: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace}, "data": {"a": "b"}})
}

#[test]
fn a_live_service_becomes_what_a_person_would_write() {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "5", "finalizers": ["x"],
            "labels": {"app": "web"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "shop"},
        },
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30000}]},
        "status": {"loadBalancer": {}},
    });
    let (documents, _) = federated(&[service], &FederateOptions::default());
    assert_eq!(
        documents,
        [json!({
            "apiVersion": "types.kubefed.io/v1beta1", "kind": "FederatedService",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": {"team": "shop"}},
                    "spec": {"ports": [{"port": 80}]},
                },
                "placement": {"clusterSelector": {"matchLabels": {}}},
            },
        })]
    );
}

#[test]
fn a_headless_service_stays_headless_and_another_version_is_named() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "n"}, "spec": {"clusterIP": "None"}});
    let (documents, _) = federated(&[service], &FederateOptions::default());
    assert_eq!(documents[0]["spec"]["template"]["spec"], json!({"clusterIP": "None"}));
    let older = json!({"apiVersion": "apps/v1beta2", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}});
    let (documents, _) = federated(&[older], &FederateOptions::default());
    assert_eq!(documents[0]["spec"]["template"], json!({"apiVersion": "apps/v1beta2"}));
}

#[test]
fn a_namespace_with_its_contents_takes_what_stands_in_it_and_no_more() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"a": "b"}}, "spec": {"finalizers": ["kubernetes"]}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}});
    let objects = [config_map("shop"), role, config_map("other"), namespace];
    let options = FederateOptions { contents: true, ..FederateOptions::default() };
    let (documents, found) = federated(&objects, &options);
    let kinds: Vec<_> = documents.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["FederatedNamespace", "FederatedConfigMap"]);
    assert_eq!(documents[0]["metadata"], json!({"name": "shop", "namespace": "shop"}));
    assert_eq!(documents[0]["spec"]["template"], json!({"metadata": {"labels": {"a": "b"}}}));
    assert!(found.iter().any(|one| one.contains("namespace: 2")), "{found:?}");
}

#[test]
fn what_each_cluster_makes_for_itself_is_named_and_left_out() {
    let owned = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1", "namespace": "n",
        "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": true}]}});
    let endpoints =
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web", "namespace": "n"}});
    let token = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": {"name": "t", "namespace": "n"}});
    let mut root = config_map("n");
    root["metadata"]["name"] = "kube-root-ca.crt".into();
    let already = json!({"apiVersion": "types.kubefed.io/v1beta1", "kind": "FederatedSecret", "metadata": {"name": "t", "namespace": "n"}});
    let (documents, found) =
        federated(&[owned, endpoints, token, root, already], &FederateOptions::default());
    assert!(documents.is_empty());
    assert_eq!(found.iter().filter(|one| one.contains("is not federated: ")).count(), 5, "{found:#?}");
    assert!(found.iter().any(|one| one.contains("Deployment web makes it")), "{found:#?}");
}

#[test]
fn a_type_without_a_federated_kind_is_an_error_with_the_way_out_or_gets_a_config() {
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "spec": {"size": 1}});
    let (documents, found) = federated(std::slice::from_ref(&widget), &FederateOptions::default());
    assert!(documents.is_empty() && found[0].contains("--enable-type"), "{found:?}");
    let enabling = FederateOptions { enable_types: true, ..FederateOptions::default() };
    let (documents, _) = federated(&[widget.clone(), widget.clone()], &enabling);
    assert_eq!(documents.len(), 2, "the second of one name is an error");
    assert_eq!(documents[0]["metadata"]["name"], "widgets.example.com");
    assert_eq!(documents[1]["kind"], "FederatedWidget");
    let skipping = FederateOptions { skip_api_resources: ["widget".to_owned()].into(), ..enabling };
    assert!(federated(&[widget], &skipping).0.is_empty());
}

#[test]
fn types_are_found_by_every_name_kubectl_knows() {
    let mut resources = Resources::default();
    for name in ["deploy", "Deployment", "deployments", "deployments.apps", "deployment.apps"] {
        let found = resources.called(name);
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].full_name(), "deployments.apps");
    }
    assert_eq!(resources.called("ingresses")[0].kind, "Ingress");
    assert_eq!(resources.called("netpol")[0].plural, "networkpolicies");
    assert!(resources.called("gw").is_empty());
    resources.learn(
        &json!({"kind": "CustomResourceDefinition", "spec": {"group": "g.io", "scope": "Cluster",
        "names": {"kind": "Gateway", "plural": "gateways", "shortNames": ["gw"]},
        "versions": [{"name": "v1"}, {"name": "v2", "storage": true}]}}),
    );
    let found = resources.called("gw");
    assert_eq!((found[0].version.as_str(), found[0].namespaced), ("v2", false));
}

#[test]
fn a_type_config_is_read_as_it_is_written() {
    let widget = ApiResource::guessed("example.com", "v1", "Widget", true);
    let made = federated_names(&widget, Some("fed.example.com"), Some("v1"));
    let mut types = KnownTypes::default();
    types.learn(&type_config(&made));
    assert_eq!(types.of_target("example.com", "Widget"), Some(&made));
    assert!(types.of_federated("types.kubefed.io", "FederatedConfigMap").is_some());
}
