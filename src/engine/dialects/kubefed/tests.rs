//! KubeFed's objects in the neutral model, through the dialect's table.

use serde_json::{Value as Json, json};

use super::*;
use crate::dialects::{Claim, DIALECTS, Document, ParsedDocument};
use crate::testing::node;
use berth_base::diag::{Pos, Severity};
use berth_base::model::cluster::Readiness;
use berth_base::model::object::{group_of, version_of};
use berth_base::model::placement::{Policy, Rule, Source};
use berth_base::model::{Applies, Key};

fn document(object: &Json) -> Document {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let (api_version, metadata) = (text(&object["apiVersion"]), &object["metadata"]);
    let kind = text(&object["kind"]);
    ParsedDocument {
        key: Key::new(group_of(&api_version), &kind, &text(&metadata["namespace"]), &text(&metadata["name"])),
        version: version_of(&api_version).to_owned(),
        at: Pos::new("a.yaml", 1, 1),
        root: node(object).pack(),
        ..ParsedDocument::default()
    }
    .into()
}

fn lowered(objects: &[Json]) -> Lowered {
    let documents: Vec<Document> = objects.iter().map(document).collect();
    let input = Input {
        documents: documents.iter().collect(),
        plain: &[],
        unknown_fields: Severity::Error,
        switched_off: Vec::new(),
        dialects: DIALECTS,
        contexts: &crate::dialects::ReadingContexts::default(),
        asked: None,
    };
    let mut lowered = Lowered::default();
    (DIALECT.lower)(&input, &mut lowered);
    lowered
}

/// Returns all diagnostics, as text.
fn found(objects: &[Json]) -> String {
    lowered(objects).diagnostics.iter().map(|one| format!("{one}\n")).collect()
}

fn cluster(spec: Json) -> Json {
    let metadata = json!({"name": "oslo", "namespace": "kube-federation-system"});
    json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster", "metadata": metadata, "spec": spec})
}

fn federated(kind: &str, name: &str, spec: Json) -> Json {
    let metadata = json!({"name": name, "namespace": "shop"});
    json!({"apiVersion": "types.kubefed.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec})
}

fn config(namespace: &str, spec: Json) -> Json {
    let metadata = json!({"name": "kubefed", "namespace": namespace});
    json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedConfig", "metadata": metadata, "spec": spec})
}

fn type_config(spec: Json) -> Json {
    let metadata = json!({"name": "widgets.example.com", "namespace": "kube-federation-system"});
    json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "FederatedTypeConfig", "metadata": metadata, "spec": spec})
}

fn widgets(propagation: &str) -> Json {
    type_config(json!({
        "targetType": {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"},
        "federatedType": {"group": "own.example.com", "version": "v1", "kind": "Spread", "pluralName": "spreads", "scope": "Namespaced"},
        "propagation": propagation,
    }))
}

fn everywhere() -> Json {
    json!({"clusterSelector": {}})
}

fn policy<'a>(lowered: &'a Lowered, kind: &str) -> &'a Policy {
    let placement = lowered.placements.iter().find(|one| *one.key.kind == *kind).expect("it is placed");
    let Source::Own(policy) = &placement.source else { panic!("it has a policy of its own") };
    policy
}

fn own_rule(placement: Json) -> Rule {
    let lowered = lowered(&[federated("FederatedNamespace", "shop", json!({ "placement": placement }))]);
    assert!(!lowered.diagnostics.has_errors(), "{:?}", lowered.diagnostics);
    policy(&lowered, "FederatedNamespace").filters[0].rule.clone()
}

#[test]
fn documents_are_claimed_by_what_they_are_for() {
    let of = |api_version: &str, kind: &str| {
        document(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}))
    };
    let documents = [
        of("core.kubefed.io/v1beta1", "KubeFedCluster"),
        of("types.kubefed.io/v1beta1", "FederatedNamespace"),
        of("types.kubefed.io/v1beta1", "FederatedWhatever"),
        of("core.kubefed.io/v1alpha1", "PropagatedVersion"),
        of("core.kubefed.io/v1beta1", "KubefedCluster"),
        of("apps/v1", "Deployment"),
        of("own.example.com/v1", "Spread"),
        document(&widgets("Enabled")),
    ];
    let claims = [
        Claim::Inventory,
        Claim::Policy,
        Claim::Workload,
        Claim::Bookkeeping,
        Claim::Unknown,
        Claim::Foreign,
        Claim::Workload,
        Claim::Policy,
    ];
    assert_eq!((DIALECT.claim)(&documents), claims);
}

#[test]
fn names_beat_a_selector_and_an_empty_list_beats_it_too() {
    let named = |names: &[&str]| Rule::Named(names.iter().map(|name| (*name).to_owned()).collect());
    let bad = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let names = json!([{"name": "b"}, {"name": "a"}, {"name": "b"}]);
    assert_eq!(own_rule(json!({"clusters": names, "clusterSelector": bad})), named(&["a", "b"]));
    assert!(matches!(own_rule(json!({"clusters": [], "clusterSelector": {}})), Rule::Nowhere(_)));
    assert!(matches!(own_rule(json!({"clusters": null, "clusterSelector": null})), Rule::Nowhere(_)));
    assert!(matches!(own_rule(Json::Null), Rule::Nowhere(_)));
    assert_eq!(own_rule(json!({"clusters": null, "clusterSelector": {}})), Rule::Labels(Default::default()));
}

#[test]
fn a_namespace_narrows_what_is_in_it() {
    let map = federated("FederatedConfigMap", "m", json!({"placement": everywhere()}));
    let namespace =
        federated("FederatedNamespace", "shop", json!({"placement": {"clusters": [{"name": "a"}]}}));
    let inside = lowered(&[map.clone(), namespace]);
    let filter = &policy(&inside, "FederatedConfigMap").filters[1];
    assert_eq!(filter.by, Some(Key::new("types.kubefed.io", "FederatedNamespace", "shop", "shop")));
    assert!(matches!(&filter.rule, Rule::Named(names) if names.contains("a")));

    let alone = lowered(std::slice::from_ref(&map));
    let reason = &policy(&alone, "FederatedConfigMap").filters[1].rule;
    assert!(matches!(reason, Rule::Nowhere(reason) if reason.contains("NamespaceNotFederated")));
    let condition = (policy(&alone, "FederatedConfigMap").condition.function)(&Default::default());
    assert_eq!(condition.map(|one| one.reason).as_deref(), Some("NamespaceNotFederated"));

    let own_plane = lowered(&[config("shop", json!({"scope": "Namespaced"})), map]);
    assert_eq!(policy(&own_plane, "FederatedConfigMap").filters.len(), 1);
}

#[test]
fn a_faulty_namespace_leaves_what_is_in_it_where_it_is() {
    let map = federated("FederatedConfigMap", "m", json!({"placement": everywhere()}));
    let namespace = federated("FederatedNamespace", "shop", json!({"placement": {"clusters": "all"}}));
    let lowered = lowered(&[map, namespace]);
    assert!(lowered.faulty.contains(&1) && !lowered.faulty.contains(&0));
    assert!(
        policy(&lowered, "FederatedConfigMap").blocked.as_ref().is_some_and(|blocked| blocked.keep_earlier)
    );
}

#[test]
fn a_namespace_under_another_name_is_ignored_with_a_warning() {
    let lowered = lowered(&[federated("FederatedNamespace", "front", json!({"placement": everywhere()}))]);
    assert!(lowered.placements.is_empty() && !lowered.diagnostics.has_errors());
    assert!(lowered.diagnostics.iter().any(|one| one.hint.as_deref() == Some("write `name: shop`")));
}

#[test]
fn system_namespaces_are_placed_and_never_made() {
    let mut namespace = federated("FederatedNamespace", "default", json!({"placement": everywhere()}));
    namespace["metadata"]["namespace"] = "default".into();
    let lowered = lowered(&[namespace]);
    assert_eq!((lowered.placements.len(), lowered.workloads.len()), (1, 0));
}

#[test]
fn a_type_config_names_the_target_and_may_stop_it() {
    let mut spread = federated("Spread", "s", json!({"placement": everywhere(), "template": {"spec": {}}}));
    spread["apiVersion"] = "own.example.com/v1".into();
    let running = lowered(&[widgets("Enabled"), spread.clone()]);
    assert_eq!(running.workloads[0].templates[0].object.id.to_string(), "Widget.example.com shop/s");
    assert!(policy(&running, "Spread").blocked.is_none());
    let stopped = lowered(&[widgets("Disabled"), spread]);
    assert!(policy(&stopped, "Spread").blocked.as_ref().is_some_and(|blocked| blocked.keep_earlier));
}

#[test]
fn an_unknown_federated_kind_asks_for_a_type_config() {
    let unknown = lowered(&[federated("FederatedWidget", "w", json!({"placement": everywhere()}))]);
    let error = unknown.diagnostics.errors().next().expect("it is an error");
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("add a FederatedTypeConfig")));
    assert!(unknown.faulty.contains(&0) && unknown.workloads.is_empty());
    assert!(
        found(&[federated("FederatedConfigmap", "w", json!({}))])
            .contains("did you mean `FederatedConfigMap`?")
    );
}

#[test]
fn type_configs_are_checked() {
    let text = found(&[type_config(json!({
        "targetType": {"group": "example.com", "version": "1", "kind": "Widget", "pluralName": "gadgets", "scope": "Namespaced"},
        "federatedType": {"group": "nodots", "version": "v1", "kind": "Spread", "pluralName": "spreads", "scope": "Both"},
        "propagation": "Sometimes", "statusColection": "Enabled",
    }))]);
    for part in [
        "spec.targetType.version must be",
        "spec.federatedType.group must have a dot",
        "spec.federatedType.scope is `Both`",
        "spec.propagation is `Sometimes`",
        "did you mean `statusCollection`?",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let mut misnamed = widgets("Enabled");
    misnamed["metadata"]["name"] = "widget".into();
    assert!(found(&[misnamed]).contains("must be the target's plural name and group, `widgets.example.com`"));
}

#[test]
fn clusters_are_checked_and_ready_as_their_status_says() {
    let good = json!({"apiEndpoint": "https://a:6443", "secretRef": {"name": "a"}});
    let standing = |status: Json| {
        let mut cluster = cluster(good.clone());
        cluster["status"] = status;
        lowered(&[cluster]).clusters[0].standing.clone()
    };
    assert_eq!(standing(Json::Null), Readiness::Assumed);
    let ready = |standing| matches!(standing, Readiness::Reported(report) if report.ready == Some(true));
    assert!(ready(standing(json!({"conditions": [{"type": "Ready", "status": "True"}]}))));
    assert!(!ready(standing(json!({"conditions": [{"type": "Offline", "status": "True"}]}))));
    let text = found(&[cluster(json!({
        "apiEndpoint": "ftp://a", "secretRef": {"name": "A b"}, "caBundle": "?",
        "disabledTLSValidations": ["*", "Everything"], "proxyURL": "a:1", "apiEndpont": "x",
    }))]);
    for part in [
        "apiEndpoint",
        "secretRef.name",
        "caBundle",
        "nothing beside `*`",
        "`Everything`",
        "proxyURL",
        "apiEndpont",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn the_template_gives_way_to_the_objects_name_and_type() {
    let template = json!({
        "apiVersion": "apps/v1beta2", "kind": "StatefulSet", "status": {"x": 1}, "spec": {"replicas": 1},
        "metadata": {
            "name": "other", "namespace": "elsewhere", "uid": "1", "labels": {"a": "b"},
            "annotations": {"note": "carried"}, "finalizers": ["example.com/hold"],
        },
    });
    let lowered = lowered(&[federated(
        "FederatedDeployment",
        "web",
        json!({"template": template, "placement": everywhere()}),
    )]);
    let template = &lowered.workloads[0].templates[0];
    assert_eq!(
        template.object.content.to_json(),
        json!({
            "apiVersion": "apps/v1beta2", "kind": "Deployment", "spec": {"replicas": 1},
            "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}, "annotations": {"note": "carried"}},
        })
    );
    assert_eq!(template.final_labels.get("kubefed.io/managed").map(String::as_str), Some("true"));
    assert!(
        lowered
            .diagnostics
            .iter()
            .any(|one| one.severity == Severity::Warning && one.message.contains("finalizers"))
    );
}

#[test]
fn objects_are_taken_over_unless_adoption_is_disabled() {
    let map = federated("FederatedConfigMap", "m", json!({"placement": everywhere()}));
    let takes_over =
        |objects: &[Json]| !lowered(objects).workloads[0].templates[0].sync_annotations.is_empty();
    assert!(takes_over(std::slice::from_ref(&map)));
    let spec = json!({"scope": "Cluster", "syncController": {"adoptResources": "Disabled"}});
    assert!(!takes_over(&[config("kube-federation-system", spec), map]));
}

#[test]
fn overrides_are_read_in_order_with_their_clusters() {
    let overrides = json!([
        {"clusterName": "a", "clusterOverrides": [{"path": "/x", "value": 1}, {"path": "/x", "value": 2}]},
        {"clusterSelector": {"matchLabels": {"tier": "prod"}}, "clusterOverrides": [{"op": "remove", "path": "/y"}]},
        {"clusterName": "b"},
    ]);
    let lowered = lowered(&[federated("FederatedConfigMap", "m", json!({ "overrides": overrides }))]);
    assert!(lowered.diagnostics.is_empty(), "{:?}", lowered.diagnostics);
    let clusters: Vec<&Applies> = lowered.workloads[0].overrides.iter().map(|one| &one.clusters).collect();
    assert!(
        matches!(clusters.as_slice(), [Applies::To(name), Applies::AnyOf(terms)] if name == "a" && terms.len() == 1)
    );
}

#[test]
fn faulty_overrides_are_all_reported() {
    let overrides = json!([
        {"clusterName": "a", "clusterOverrides": [{"path": "/metadata/name", "value": "x"}, {"path": "/kind", "value": "x"}]},
        {"clusterName": "a", "clusterOverrides": [{"path": "/x", "value": 1}]},
        {"clusterOverrides": [{"path": "/x"}]},
        {"clusterName": "b", "clusterSelector": {}, "clusterOverrides": []},
    ]);
    let text = found(&[federated("FederatedConfigMap", "m", json!({ "overrides": overrides }))]);
    for part in [
        "`/metadata/name` cannot be overridden",
        "`/kind` cannot be overridden",
        "spec.overrides[1].clusterName: `a` already has an entry",
        "spec.overrides[2].clusterName is required",
        "spec.overrides[2].clusterOverrides[0].value is required",
        "exclude each other",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_placement_of_another_system_can_be_followed() {
    let follow = |placement: Json| {
        let namespace = federated("FederatedNamespace", "shop", json!({"placement": everywhere()}));
        let spec = json!({"placement": {"placementRef": placement}});
        lowered(&[namespace, federated("FederatedConfigMap", "m", spec)])
    };
    let sound = follow(json!({"kind": "Placement", "name": "p"}));
    let Source::Follows(follows) = &sound.placements[1].source else { panic!("it follows") };
    assert_eq!((follows.placements[0].namespace.as_str(), follows.filters.len()), ("shop", 1));
    let scoped = follow(json!({"kind": "ClusterResourcePlacement", "name": "p"}));
    let Source::Follows(follows) = &scoped.placements[1].source else { panic!("it follows") };
    assert_eq!(follows.placements[0].namespace, "");
    for bad in [
        json!({"kind": "Placement"}),
        json!({"kind": "Placment", "name": "p"}),
        json!({"kind": "Placement", "name": "p", "namespace": "other"}),
    ] {
        assert!(follow(bad).diagnostics.has_errors());
    }
    let both = json!({"placement": {"placementRef": {"kind": "Placement", "name": "p"}, "clusters": []}});
    assert!(found(&[federated("FederatedConfigMap", "m", both)]).contains("must have no other field"));
}

#[test]
fn a_misspelt_selector_is_an_error_and_makes_the_document_faulty() {
    let object = federated("FederatedConfigMap", "m", json!({"placement": {"clusterselector": {}}}));
    let lowered = lowered(&[object]);
    let error = lowered.diagnostics.errors().next().expect("it is an error");
    assert_eq!(error.hint.as_deref(), Some("did you mean `clusterSelector`?"));
    assert!(lowered.faulty.contains(&0) && lowered.placements.is_empty());
}

#[test]
fn a_newer_version_may_have_fields_berth_does_not_know() {
    let mut object = federated("FederatedConfigMap", "m", json!({"placement": everywhere(), "newField": 1}));
    object["apiVersion"] = "types.kubefed.io/v2".into();
    let lowered = lowered(&[object]);
    assert!(!lowered.diagnostics.has_errors() && !lowered.diagnostics.is_empty());
}

#[test]
fn a_replica_preference_is_checked_and_needs_its_workload() {
    let preference = |spec: Json| {
        json!({"apiVersion": "scheduling.kubefed.io/v1alpha1", "kind": "ReplicaSchedulingPreference",
            "metadata": {"name": "m", "namespace": "shop"}, "spec": spec})
    };
    let sound =
        json!({"targetKind": "FederatedDeployment", "totalReplicas": 9, "clusters": {"*": {"weight": 1}}});
    assert!(found(&[preference(sound)]).contains("warning: there is no FederatedDeployment shop/m"));
    let text = found(&[preference(json!({"clusters": {"a": {"wieght": 1}}}))]);
    for part in ["spec.targetKind is required", "spec.totalReplicas is required", "did you mean `weight`?"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}
