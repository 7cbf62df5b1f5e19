use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::{IMPORTER, conversion, plural_of};
use crate::import::{Gathered, Options, objects};
use berth_base::model::Key;
use berth_base::source::{SourceFile, SourceTree};
use berth_engine::load::{self, History};
use berth_member::live::{Host, LiveError, Query, Resource};

/// A host that answers from lists by plural.
struct Fake(BTreeMap<&'static str, Vec<Json>>);

impl Host for Fake {
    fn server(&self) -> &str {
        "https://host.example.com"
    }

    fn groups(&self) -> Result<BTreeSet<String>, LiveError> {
        Ok(["", "core.kubefed.io", "scheduling.kubefed.io", "types.kubefed.io"].map(str::to_owned).into())
    }

    fn resources(&self) -> Result<Vec<Resource>, LiveError> {
        Ok(Vec::new())
    }

    fn list(&self, queries: &[Query]) -> Vec<Result<Vec<Json>, LiveError>> {
        let answer = |query: &Query| match self.0.get(query.resource.plural.as_str()) {
            Some(objects) => Ok(objects.clone()),
            None => Err(LiveError::NotServed { what: query.to_string() }),
        };
        queries.iter().map(answer).collect()
    }
}

const NAMESPACE: &str = "kube-federation-system";

fn type_config(kind: &str, plural: &str, group: &str) -> Json {
    let name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "FederatedTypeConfig",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "propagation": "Enabled",
            "targetType": {"group": group, "version": "v1", "kind": kind, "pluralName": plural, "scope": "Namespaced"},
            "federatedType": {
                "group": "types.kubefed.io", "version": "v1beta1", "kind": format!("Federated{kind}"),
                "pluralName": format!("federated{plural}"), "scope": "Namespaced",
            },
        },
    })
}

fn cluster(name: &str, status: Json) -> Json {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": "1"},
        "spec": {"apiEndpoint": format!("https://{name}.example.com"), "secretRef": {"name": name}},
        "status": status,
    })
}

fn ready() -> Json {
    json!({"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": "2026-01-01T00:00:00Z"}]})
}

fn gather(host: &Fake) -> Gathered {
    let options = Options { namespace: NAMESPACE.to_owned(), secrets: true };
    (IMPORTER.gather)(host, &options).expect("a host")
}

fn warnings(gathered: &Gathered) -> String {
    gathered.diagnostics.iter().map(|one| format!("{one}\n")).collect()
}

/// A host with two clusters, a namespace everywhere, and one deployment that a preference divides.
fn divided(preference: Json) -> Fake {
    let deployment = json!({
        "apiVersion": "types.kubefed.io/v1beta1", "kind": "FederatedDeployment",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "9"},
        "spec": {
            "template": {"spec": {"replicas": 1}},
            "placement": {"clusters": [{"name": "a"}, {"name": "b"}]},
            "overrides": [
                {"clusterName": "a", "clusterOverrides": [{"path": "/spec/replicas", "value": 2}]},
                {"clusterName": "b", "clusterOverrides": [
                    {"path": "/spec/paused", "value": true}, {"path": "/spec/replicas", "value": 1},
                ]},
            ],
        },
        "status": {"clusters": [{"name": "a"}, {"name": "b", "status": "WaitingForRemoval"}]},
    });
    let namespace = json!({
        "apiVersion": "types.kubefed.io/v1beta1", "kind": "FederatedNamespace",
        "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {"placement": {"clusterSelector": {}}},
    });
    Fake(BTreeMap::from([
        ("kubefedconfigs", Vec::new()),
        (
            "federatedtypeconfigs",
            vec![
                type_config("Deployment", "deployments", "apps"),
                type_config("Namespace", "namespaces", ""),
            ],
        ),
        ("kubefedclusters", vec![cluster("a", ready()), cluster("b", ready())]),
        ("federateddeployments", vec![deployment]),
        ("federatednamespaces", vec![namespace]),
        ("replicaschedulingpreferences", vec![preference]),
        ("namespaces", Vec::new()),
    ]))
}

fn preference(kind: &str) -> Json {
    json!({
        "apiVersion": "scheduling.kubefed.io/v1alpha1", "kind": "ReplicaSchedulingPreference",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetKind": kind, "totalReplicas": 3},
    })
}

fn settled(host: &Fake) -> Json {
    let mut gathered = gather(host);
    let files = objects::files(&gathered.objects);
    let files = files.iter().map(|(path, text)| SourceFile::new(path.as_str(), text.as_bytes()));
    let tree = SourceTree { files: files.collect(), ..SourceTree::default() };
    conversion::settle(&mut gathered, &load::load(&tree, History::None).fleet);
    gathered.objects[&Key::new("types.kubefed.io", "FederatedDeployment", "shop", "web")]["spec"].clone()
}

#[test]
fn what_the_scheduler_wrote_is_taken_out_and_the_rest_stays() {
    let spec = settled(&divided(preference("FederatedDeployment")));
    assert_eq!(spec["placement"], json!({"clusterSelector": {}}));
    let rest = json!([{"clusterName": "b", "clusterOverrides": [{"path": "/spec/paused", "value": true}]}]);
    assert_eq!(spec["overrides"], rest);
}

#[test]
fn under_a_preference_without_effect_everything_stays() {
    let spec = settled(&divided(preference("FederatedJob")));
    assert_eq!(spec["placement"], json!({"clusters": [{"name": "a"}, {"name": "b"}]}));
    assert_eq!(spec["overrides"][0]["clusterOverrides"][0]["value"], 2);
}

#[test]
fn the_status_says_where_an_object_is_and_the_overrides_with_how_many_replicas() {
    let gathered = gather(&divided(preference("FederatedDeployment")));
    let placed = &gathered.placed[&Key::new("types.kubefed.io", "FederatedDeployment", "shop", "web")];
    assert!(placed.clusters.values().all(|standing| standing.there && !standing.doubtful));
    assert_eq!(placed.clusters["b"].word, "WaitingForRemoval");
    assert_eq!(placed.replicas, BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]));
}

#[test]
fn a_type_that_is_not_served_is_named_and_stops_nothing() {
    let mut host = divided(preference("FederatedDeployment"));
    host.0.remove("federateddeployments");
    let gathered = gather(&host);
    assert!(
        warnings(&gathered).contains("does not serve federateddeployments.types.kubefed.io"),
        "{}",
        warnings(&gathered)
    );
    assert!(gathered.missing.is_empty());
    assert!(gathered.objects.contains_key(&Key::new(
        "types.kubefed.io",
        "FederatedNamespace",
        "shop",
        "shop"
    )));
}

#[test]
fn a_namespace_scoped_control_plane_is_read_in_its_namespace_alone() {
    struct Narrow(Fake);
    impl Host for Narrow {
        fn server(&self) -> &str {
            self.0.server()
        }
        fn groups(&self) -> Result<BTreeSet<String>, LiveError> {
            self.0.groups()
        }
        fn resources(&self) -> Result<Vec<Resource>, LiveError> {
            self.0.resources()
        }
        fn list(&self, queries: &[Query]) -> Vec<Result<Vec<Json>, LiveError>> {
            assert!(queries.iter().all(|query| query.namespace.as_deref() == Some(NAMESPACE)), "{queries:?}");
            self.0.list(queries)
        }
    }
    let mut host = divided(preference("FederatedDeployment"));
    let settings = json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedConfig",
        "metadata": {"name": "kubefed", "namespace": NAMESPACE}, "spec": {"scope": "Namespaced"},
    });
    host.0.insert("kubefedconfigs", vec![settings]);
    let options = Options { namespace: NAMESPACE.to_owned(), secrets: true };
    let gathered = (IMPORTER.gather)(&Narrow(host), &options).expect("a host");
    assert!(gathered.missing.is_empty());
}

#[test]
fn an_object_that_is_being_deleted_is_left_out_by_name() {
    let mut host = divided(preference("FederatedDeployment"));
    let deployments = host.0.get_mut("federateddeployments").expect("some");
    deployments[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let gathered = gather(&host);
    assert!(warnings(&gathered).contains("FederatedDeployment shop/web is being deleted on the host"));
    assert!(gathered.placed.keys().all(|key| &*key.kind == "FederatedNamespace"));
}

#[test]
fn a_cluster_keeps_of_its_status_only_what_counts() {
    let tidied = |status: Json| {
        let mut object = cluster("a", status);
        conversion::cluster(&mut object);
        object.get("status").cloned()
    };
    assert_eq!(tidied(ready()), None);
    let mut placed = ready();
    placed["region"] = json!("north");
    placed["zones"] = json!([]);
    let condition = |status: &str| json!([{"type": "Ready", "status": status}]);
    assert_eq!(tidied(placed), Some(json!({"conditions": condition("True"), "region": "north"})));
    assert_eq!(
        tidied(json!({"conditions": [{"type": "Offline", "status": "True"}]})),
        Some(json!({"conditions": condition("False")}))
    );
    assert_eq!(tidied(json!({})), Some(json!({"conditions": condition("False")})));
}

#[test]
fn addresses_of_a_cluster_are_written_without_credentials() {
    let mut object = cluster("a", ready());
    object["spec"]["apiEndpoint"] = json!("https://bob:hunter2@a.example.com:6443/");
    object["spec"]["proxyURL"] = json!("http://bob:hunter2@proxy:3128");
    conversion::cluster(&mut object);
    assert_eq!(object["spec"]["apiEndpoint"], "https://a.example.com:6443");
    assert_eq!(object["spec"]["proxyURL"], "http://proxy:3128");
}

#[test]
fn a_missing_value_is_spelt_out_as_null() {
    let mut object = json!({"metadata": {"name": "x"}, "spec": {"overrides": [{"clusterName": "a", "clusterOverrides": [
        {"path": "/data/x"}, {"op": "remove", "path": "/data/y"},
    ]}]}});
    conversion::federated(&mut object);
    let operations = &object["spec"]["overrides"][0]["clusterOverrides"];
    assert_eq!(operations, &json!([{"path": "/data/x", "value": null}, {"op": "remove", "path": "/data/y"}]));
}

#[test]
fn plurals_are_those_that_kubefed_makes() {
    for (kind, plural) in [
        ("FederatedIngress", "federatedingresses"),
        ("FederatedPolicy", "federatedpolicies"),
        ("FederatedJob", "federatedjobs"),
    ] {
        assert_eq!(plural_of(kind), plural);
    }
}

#[test]
fn a_cluster_without_kubefed_is_said_to_have_none() {
    struct Bare;
    impl Host for Bare {
        fn server(&self) -> &str {
            "https://host.example.com"
        }
        fn groups(&self) -> Result<BTreeSet<String>, LiveError> {
            Ok([String::new()].into())
        }
        fn resources(&self) -> Result<Vec<Resource>, LiveError> {
            Ok(Vec::new())
        }
        fn list(&self, _: &[Query]) -> Vec<Result<Vec<Json>, LiveError>> {
            Vec::new()
        }
    }
    let options = Options { namespace: NAMESPACE.to_owned(), secrets: true };
    let error = (IMPORTER.gather)(&Bare, &options).expect_err("no KubeFed");
    assert!(error.to_string().contains("serves no `core.kubefed.io`"), "{error}");
}
