//! Tests of the conversion of a hub's answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::IMPORTER;
use crate::import::{Gathered, Options, objects};
use berth_base::model::Key;
use berth_member::live::{Host, LiveError, Query, Resource};

/// A hub that answers from lists by plural and version.
struct Fake(BTreeMap<(&'static str, &'static str), Vec<Json>>);

impl Host for Fake {
    fn server(&self) -> &str {
        "https://hub.example.com"
    }

    fn groups(&self) -> Result<BTreeSet<String>, LiveError> {
        Ok(["", super::CLUSTERS, super::WORKS].map(str::to_owned).into())
    }

    fn resources(&self) -> Result<Vec<Resource>, LiveError> {
        Ok(Vec::new())
    }

    fn list(&self, queries: &[Query]) -> Vec<Result<Vec<Json>, LiveError>> {
        let answer = |query: &Query| {
            assert_ne!(query.resource.kind, "Secret", "Secrets are never asked for");
            let resource = (query.resource.plural.as_str(), query.resource.version.as_str());
            let found = self.0.iter().find(|((plural, version), _)| (*plural, *version) == resource);
            found.map(|(_, objects)| objects.clone()).ok_or(LiveError::NotServed { what: query.to_string() })
        };
        queries.iter().map(answer).collect()
    }
}

fn object(kind: &str, version: &str, metadata: Json, rest: Json) -> Json {
    let group = if kind.starts_with("ManifestWork") { super::WORKS } else { super::CLUSTERS };
    let mut object = json!({"apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": metadata});
    rest.as_object().expect("fields").iter().for_each(|(key, value)| object[key] = value.clone());
    object
}

fn gather(lists: Vec<((&'static str, &'static str), Vec<Json>)>, secrets: bool) -> Gathered {
    (IMPORTER.gather)(&Fake(lists.into_iter().collect()), &Options { namespace: String::new(), secrets })
        .expect("a hub")
}

fn decision(number: usize, placement: &str, group: (&str, &str), clusters: std::ops::Range<usize>) -> Json {
    let label = |key: &str| format!("{}/{key}", super::CLUSTERS);
    let labels = json!({label("placement"): placement, label("decision-group-index"): group.0, label("decision-group-name"): group.1});
    let decisions: Vec<Json> = clusters.map(|n| json!({"clusterName": format!("c{n}")})).collect();
    let metadata =
        json!({"name": format!("{placement}-decision-{number}"), "namespace": "shop", "labels": labels});
    object("PlacementDecision", "v1beta1", metadata, json!({"status": {"decisions": decisions}}))
}

fn placement(name: &str) -> Json {
    object("Placement", "v1beta1", json!({"name": name, "namespace": "shop"}), json!({"spec": {}}))
}

fn key(kind: &str, namespace: &str, name: &str) -> Key {
    let group = if kind.starts_with("ManifestWork") { super::WORKS } else { super::CLUSTERS };
    Key::new(group, kind, namespace, name)
}

#[test]
fn many_decision_objects_make_one_decision_with_its_groups() {
    let old = {
        let mut old = decision(9, "web", ("0", ""), 300..301);
        old["metadata"]["labels"] = json!({});
        old["metadata"]["ownerReferences"] = json!([{"kind": "Placement", "name": "web"}]);
        old
    };
    let stray = decision(1, "nobody", ("0", ""), 0..3);
    let decisions = vec![
        decision(1, "web", ("0", "canary"), 0..100),
        decision(2, "web", ("0", "canary"), 100..130),
        decision(3, "web", ("1", ""), 130..200),
        old,
        stray,
    ];
    let lists = vec![
        (("placements", "v1beta1"), vec![placement("web"), placement("idle")]),
        (("placementdecisions", "v1beta1"), decisions),
    ];
    let gathered = gather(lists, true);
    let web = &gathered.placed[&key("Placement", "shop", "web")];
    assert_eq!(web.clusters.len(), 201);
    assert_eq!((web.groups["c120"].index, web.groups["c120"].name.as_str()), (0, "canary"));
    assert_eq!((web.groups["c130"].index, web.groups["c130"].name.as_str()), (1, ""));
    assert!(gathered.placed[&key("Placement", "shop", "idle")].clusters.is_empty());
    assert_eq!(gathered.placed.len(), 2);
}

#[test]
fn sets_come_in_the_version_that_the_hub_has() {
    let set = |version: &str, name: &str| {
        object("ManagedClusterSet", version, json!({"name": name}), json!({"spec": {}}))
    };
    let gathered = gather(
        vec![(("managedclustersets", "v1beta1"), vec![set("v1beta1", "blue"), set("v1beta1", "global")])],
        true,
    );
    assert_eq!(gathered.objects.keys().map(|key| &*key.name).collect::<Vec<_>>(), ["blue"]);
    let mut own = set("v1beta2", "global");
    own["metadata"]["annotations"] = json!({"cluster.open-cluster-management.io/autoupdate": "false"});
    let gathered = gather(vec![(("managedclustersets", "v1beta2"), vec![own])], true);
    assert_eq!(gathered.objects.len(), 1, "it is not kept by the hub");
    assert!(gathered.missing.is_empty());
}

#[test]
fn works_are_input_unless_something_of_the_hub_made_them() {
    let work = |name: &str, labels: Json, owners: Json, manifests: Json| {
        let metadata =
            json!({"name": name, "namespace": "oslo", "labels": labels, "ownerReferences": owners});
        object("ManifestWork", "v1", metadata, json!({"spec": {"workload": {"manifests": manifests}}}))
    };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}});
    let agent = json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": {"name": "k"}});
    let works = || {
        vec![
            work("own", json!({}), json!([]), json!([map, secret])),
            work("owned", json!({}), json!([{"kind": "Boat", "name": "b"}]), json!([map])),
            work("add-on", json!({"open-cluster-management.io/addon-name": "x"}), json!([]), json!([map])),
            work("joins", json!({}), json!([]), json!([agent])),
            work("oslo-klusterlet", json!({}), json!([]), json!([secret])),
        ]
    };
    let with = gather(vec![(("manifestworks", "v1"), works())], true);
    assert_eq!(with.objects.keys().collect::<Vec<_>>(), [&key("ManifestWork", "oslo", "own")]);
    assert_eq!(with.secrets, 1);
    let standing = &with.placed[&key("ManifestWork", "oslo", "own")].clusters["oslo"];
    assert!(standing.there && standing.doubtful && standing.word == "nothing yet");
    let without = gather(vec![(("manifestworks", "v1"), works())], false);
    let text = &objects::files(&without.objects)["namespaces/oslo/manifestwork/own.yaml"];
    assert!(text.contains("ConfigMap") && !text.contains("Secret") && without.secrets == 0, "{text}");
}

#[test]
fn a_set_of_works_is_where_its_works_are_and_waits_where_they_are_not() {
    let spec = |mode: &str| json!({"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"mode": mode}}]});
    let template = json!({"spec": {"placementRefs": [{"name": "web"}], "manifestWorkTemplate": {"workload": spec("new")}}});
    let set =
        object("ManifestWorkReplicaSet", "v1alpha1", json!({"name": "a.b", "namespace": "shop"}), template);
    let work = |cluster: &str, mode: &str| {
        let labels = json!({"work.open-cluster-management.io/manifestworkreplicaset": "shop.a.b"});
        let status = json!({"conditions": [{"type": "Applied", "status": "True"}]});
        let metadata = json!({"name": "a-1", "namespace": cluster, "labels": labels});
        object("ManifestWork", "v1", metadata, json!({"spec": {"workload": spec(mode)}, "status": status}))
    };
    let gathered = gather(
        vec![
            (("placements", "v1beta1"), vec![placement("web")]),
            (("placementdecisions", "v1beta1"), vec![decision(1, "web", ("0", ""), 0..3)]),
            (("manifestworkreplicasets", "v1alpha1"), vec![set]),
            (("manifestworks", "v1"), vec![work("c0", "new"), work("c1", "old")]),
        ],
        true,
    );
    let placed = &gathered.placed[&key("ManifestWorkReplicaSet", "shop", "a.b")];
    assert_eq!(placed.pending, ["c2".to_owned()].into());
    assert!(!placed.clusters["c0"].doubtful && placed.clusters["c1"].word == "an earlier version");
}

#[test]
fn a_set_that_loses_its_secrets_is_no_earlier_version_on_its_clusters() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let workload = json!({"manifests": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        secret,
        {"apiVersion": "v1", "kind": "List", "items": [secret]},
    ]});
    let template =
        json!({"spec": {"placementRefs": [{"name": "web"}], "manifestWorkTemplate": {"workload": workload}}});
    let set =
        object("ManifestWorkReplicaSet", "v1alpha1", json!({"name": "a", "namespace": "shop"}), template);
    let labels = json!({"work.open-cluster-management.io/manifestworkreplicaset": "shop.a"});
    let metadata = json!({"name": "a-1", "namespace": "c0", "labels": labels});
    let status = json!({"conditions": [{"type": "Applied", "status": "True"}]});
    let work =
        object("ManifestWork", "v1", metadata, json!({"spec": {"workload": workload}, "status": status}));
    let lists = || {
        vec![
            (("placements", "v1beta1"), vec![placement("web")]),
            (("manifestworkreplicasets", "v1alpha1"), vec![set.clone()]),
            (("manifestworks", "v1"), vec![work.clone()]),
        ]
    };
    let without = gather(lists(), false);
    let placed = &without.placed[&key("ManifestWorkReplicaSet", "shop", "a")];
    assert!(!placed.clusters["c0"].doubtful, "{placed:?}");
    let texts: String = objects::files(&without.objects).into_values().collect();
    assert!(texts.contains("ConfigMap") && !texts.contains("Secret"), "{texts}");
    assert_eq!(gather(lists(), true).secrets, 2);
}

#[test]
fn a_cluster_keeps_what_placements_look_at() {
    let cluster = |taints: Json| {
        object(
            "ManagedCluster",
            "v1",
            json!({"name": "oslo", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}),
            json!({"spec": {"hubAcceptsClient": false, "taints": taints}, "status": {
                "conditions": [{"type": "ManagedClusterConditionAvailable", "status": "Unknown"}],
                "allocatable": {"cpu": "4"}, "capacity": {}, "clusterClaims": [], "version": {"kubernetes": "v1.30.1"},
            }}),
        )
    };
    let taints = json!([{"key": "a", "effect": "NoSelect"}, {"key": "b", "effect": "NoSelect", "timeAdded": "2026-02-02T00:00:00Z"}]);
    let gathered = gather(vec![(("managedclusters", "v1"), vec![cluster(taints.clone())])], true);
    let oslo = &gathered.objects[&key("ManagedCluster", "", "oslo")];
    assert_eq!(oslo["status"], json!({"allocatable": {"cpu": "4"}, "version": {"kubernetes": "v1.30.1"}}));
    assert_eq!(oslo["spec"]["taints"][0]["timeAdded"], "2026-01-01T00:00:00Z");
    assert_eq!(oslo["spec"]["taints"][1]["timeAdded"], "2026-02-02T00:00:00Z");
    let said: Vec<_> = gathered.diagnostics.iter().map(|one| one.message.as_str()).collect();
    assert!(said.iter().any(|one| one.contains("was never accepted")), "{said:?}");
    // An expression reads conditions.
    let mut looks = placement("looks");
    looks["spec"] = json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["managedCluster.status.conditions.size() > 0"]}}}]});
    let gathered = gather(
        vec![(("managedclusters", "v1"), vec![cluster(taints)]), (("placements", "v1beta1"), vec![looks])],
        true,
    );
    assert!(gathered.objects[&key("ManagedCluster", "", "oslo")]["status"]["conditions"].is_array());
}
