//! Tests of the conversion of a hub's answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::{IMPORTER, condition_name};
use crate::import::{Gathered, Options, objects};
use berth_base::model::Key;
use berth_member::live::{Host, LiveError, Query, Resource};

/// A hub that answers from lists by plural, within the queried namespace.
struct Fake(BTreeMap<&'static str, Vec<Json>>);

impl Host for Fake {
    fn server(&self) -> &str {
        "https://hub.example.com"
    }

    fn groups(&self) -> Result<BTreeSet<String>, LiveError> {
        Ok(["", "cluster.kubernetes-fleet.io", "placement.kubernetes-fleet.io"].map(str::to_owned).into())
    }

    fn resources(&self) -> Result<Vec<Resource>, LiveError> {
        Ok(vec![
            Resource::new("", "v1", "namespaces", "Namespace", false),
            Resource::new("", "v1", "configmaps", "ConfigMap", true),
            Resource::new("", "v1", "services", "Service", true),
            Resource::new("", "v1", "endpoints", "Endpoints", true),
            Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false),
        ])
    }

    fn list(&self, queries: &[Query]) -> Vec<Result<Vec<Json>, LiveError>> {
        let answer = |query: &Query| match self.0.get(query.resource.plural.as_str()) {
            Some(objects) => {
                let wanted = |one: &&Json| {
                    query.namespace.as_deref().is_none_or(|wanted| one["metadata"]["namespace"] == wanted)
                };
                Ok(objects.iter().filter(wanted).cloned().collect())
            }
            None => Err(LiveError::NotServed { what: query.to_string() }),
        };
        queries.iter().map(answer).collect()
    }
}

fn placement(selectors: Json, status: Json) -> Json {
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterResourcePlacement",
        "metadata": {"name": "web", "uid": "1"}, "spec": {"resourceSelectors": selectors}, "status": status,
    })
}

fn binding(cluster: &str, state: &str) -> Json {
    json!({
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterResourceBinding",
        "metadata": {"name": format!("web-{cluster}"), "labels": {"kubernetes-fleet.io/parent-CRP": "web"}},
        "spec": {
            "state": state, "targetCluster": cluster,
            "clusterDecision": {"clusterName": cluster, "selected": true, "clusterScore": {"affinityScore": 7, "priorityScore": -1}},
        },
    })
}

fn core(kind: &str, namespace: &str, name: &str, labels: Json) -> Json {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace, "labels": labels}})
}

fn gather(lists: Vec<(&'static str, Vec<Json>)>) -> Gathered {
    let options = Options { namespace: String::new(), secrets: true };
    (IMPORTER.gather)(&Fake(lists.into_iter().collect()), &options).expect("a hub")
}

fn key() -> Key {
    Key::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement", "", "web")
}

#[test]
fn bindings_become_picks_with_their_state_and_scores() {
    let status = json!({"placementStatuses": [{"clusterName": "a", "conditions": [
        {"type": "ResourceApplied", "status": "False", "reason": "ApplyFailed"},
    ]}]});
    let gathered = gather(vec![
        ("clusterresourceplacements", vec![placement(json!([]), status)]),
        (
            "clusterresourcebindings",
            vec![binding("a", "Bound"), binding("b", "Scheduled"), binding("c", "Unscheduled")],
        ),
    ]);
    let placed = &gathered.placed[&key()];
    let there: Vec<_> =
        placed.clusters.iter().filter(|(_, one)| one.there).map(|(name, _)| &**name).collect();
    assert_eq!(there, ["a", "b"]);
    assert!(placed.clusters["a"].doubtful && placed.clusters["a"].word == "ApplyFailed");
    assert_eq!(placed.pending, ["b".to_owned()].into());
    assert_eq!(placed.scores["a"]["topologySpreadScore"], -1);
    assert!(gathered.diagnostics.iter().any(|one| one.message.contains("from `c`")));
}

#[test]
fn what_is_selected_comes_along_and_nothing_else() {
    let web = placement(
        json!([
            {"group": "", "version": "v1", "kind": "Namespace", "labelSelector": {"matchLabels": {"team": "sales"}}},
            {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "viewer"},
            {"group": "example.com", "version": "v1", "kind": "Boat"},
        ]),
        json!({}),
    );
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}});
    let namespace = |name: &str, labels: Json| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let mut service = core("Service", "shop", "web", json!({}));
    service["spec"] = json!({"clusterIP": "10.0.0.1", "ports": []});
    let gathered = gather(vec![
        ("clusterresourceplacements", vec![web]),
        ("namespaces", vec![namespace("shop", json!({"team": "sales"})), namespace("other", json!({}))]),
        (
            "configmaps",
            vec![
                core("ConfigMap", "shop", "settings", json!({})),
                core("ConfigMap", "shop", "kube-root-ca.crt", json!({})),
                core("ConfigMap", "other", "settings", json!({})),
            ],
        ),
        ("services", vec![service]),
        (
            "endpoints",
            vec![core("Endpoints", "shop", "web", json!({})), core("Endpoints", "shop", "own", json!({}))],
        ),
        ("clusterroles", vec![role("viewer"), role("admin")]),
    ]);
    let files = objects::files(&gathered.objects);
    let paths: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(
        paths,
        [
            "cluster-scoped/clusterresourceplacement/web.yaml",
            "cluster-scoped/clusterrole.rbac.authorization.k8s.io/viewer.yaml",
            "namespaces/shop/configmap/settings.yaml",
            "namespaces/shop/endpoints/own.yaml",
            "namespaces/shop/namespace.yaml",
            "namespaces/shop/service/web.yaml",
        ]
    );
    assert!(!files["namespaces/shop/service/web.yaml"].contains("clusterIP"));
    assert!(gathered.diagnostics.iter().any(|one| one.message.contains("Boat.example.com")));
}

#[test]
fn a_member_keeps_what_policies_measure_and_no_word_of_its_agent() {
    let member = json!({
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
        "metadata": {"name": "a", "labels": {"region": "east"}, "finalizers": ["x"]},
        "spec": {"identity": {"kind": "ServiceAccount", "name": "a"}},
        "status": {
            "conditions": [{"type": "Joined", "status": "True"}], "agentStatus": [],
            "properties": {"kubernetes-fleet.io/node-count": {"value": "3", "observationTime": "2026-01-01T00:00:00Z"}},
            "resourceUsage": {"capacity": {"cpu": "4"}, "observationTime": "2026-01-01T00:00:00Z"},
        },
    });
    let gathered = gather(vec![("memberclusters", vec![member])]);
    let file = &objects::files(&gathered.objects)["clusters/a.yaml"];
    assert!(file.contains("node-count") && file.contains("cpu: \"4\""), "{file}");
    for gone in ["conditions", "agentStatus", "observationTime", "finalizers"] {
        assert!(!file.contains(gone), "{file}");
    }
    assert!(gathered.diagnostics.iter().any(|one| one.message.contains("not healthy")));
}

#[test]
fn old_names_of_conditions_are_known() {
    for (name, today) in [
        ("ClusterResourcePlacementSynchronized", "WorkSynchronized"),
        ("ClusterResourcePlacementApplied", "Applied"),
        ("ResourcePlacementScheduled", "Scheduled"),
        ("ResourceScheduled", "Scheduled"),
        ("WorkSynchronizeSucceeded", "WorkSynchronized"),
        ("Available", "Available"),
    ] {
        assert_eq!(condition_name(name), today, "{name}");
    }
}
