//! Tests of the stored forms, and a strategy for decisions that other tests may use.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use berth_base::model::{Condition, Digest, Failure, Group, ObjectId, Pick, PickDetails, Refused};
use berth_base::packed::Packed;
use berth_base::yaml;

fn decision(kind: &str, namespace: &str, name: &str, clusters: &[&str]) -> Decision {
    let details = PickDetails { reason: "matches".to_owned(), ..PickDetails::default() };
    let picks = clusters.iter().map(|name| Pick::new(*name, details.clone()));
    Decision {
        picks: picks.collect(),
        refused: vec![Refused { reason: "not labelled so".to_owned(), clusters: 2 }],
        digest: Some(Digest([7; 16])),
        policy: Some(Packed::of(&json!({"numberOfClusters": 2}))),
        objects: vec![ObjectId::new("apps", "Deployment", namespace, name)],
        ..Decision::new(Key::new("example.org", kind, namespace, name), "fleet/web.yaml")
    }
}

/// Texts from outside: those that YAML could misread, and those that are not identifiers.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9.-]{0,10}",
        ".{1,12}",
        prop::sample::select(vec!["yes", "on", "012", "1e3", "~", "=", "null", "a: b", "- x", "#", " x "])
            .prop_map(str::to_owned),
    ]
}

fn policies() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        words().prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Json::from),
            btree_map(words(), inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn object_ids() -> impl Strategy<Value = ObjectId> {
    (words(), words(), words(), words()).prop_map(|(g, k, ns, n)| ObjectId::new(&g, &k, &ns, &n))
}

fn picks() -> impl Strategy<Value = Vec<Pick>> {
    let group = (0..3usize, words()).prop_map(|(index, name)| Group { index, name });
    let pick = (
        prop::sample::select(vec!["matches", "kept", ""]),
        option::of(0..3i64),
        btree_map(prop::sample::select(vec!["affinity".to_owned(), "score".to_owned()]), -2..3i64, 0..2),
        option::of(group),
        any::<bool>(),
    );
    btree_map(words(), pick, 0..8).prop_map(|by_name| {
        let pick = |(cluster, (reason, replicas, scores, group, pending)): (String, (&str, _, _, _, _))| {
            let reason = reason.to_owned();
            let details = PickDetails { reason, replicas, scores, group, pending, ..PickDetails::default() };
            Pick::new(cluster, details)
        };
        by_name.into_iter().map(pick).collect()
    })
}

prop_compose! {
    fn decisions()(
        id in object_ids(),
        source in words(),
        picks in picks(),
        refused in vec((words(), 0..9usize), 0..3),
        condition in option::of((words(), any::<bool>(), words(), words())),
        digest in option::of(any::<[u8; 16]>()),
        policy in option::of(policies()),
        objects in vec(object_ids(), 0..3),
        failures in vec((words(), object_ids(), words()), 0..2),
    ) -> Decision {
        Decision {
            key: Key::new(&id.group, &id.kind, &id.namespace, &id.name),
            source,
            picks: picks.into(),
            refused: refused.into_iter().map(|(reason, clusters)| Refused { reason, clusters }).collect(),
            condition: condition.map(|(kind, status, reason, message)| Condition { kind, status, reason, message }),
            digest: digest.map(Digest),
            policy: policy.as_ref().map(Packed::of),
            objects,
            failures: failures
                .into_iter()
                .map(|(cluster, object, reason)| Failure {
                    of_override: reason.len() % 2 == 0,
                    cluster,
                    object,
                    reason,
                })
                .collect(),
        }
    }
}

proptest! {
    #[test]
    fn a_decision_comes_back_from_its_file_as_it_went(decision in decisions()) {
        let text = decision::write_decision(&decision);
        prop_assert_eq!(&text, &yaml::emit(&decision::to_json(&decision)));
        prop_assert_eq!(decision::read_decision(text.as_bytes()).map_err(|e| format!("{e}\n{text}")), Ok(decision));
    }

    #[test]
    fn printed_decisions_are_read_back_and_adopted(decision in decisions()) {
        let printed = serde_json::to_value(DecisionList::of([&decision])).unwrap();
        let read = adopt(decisions_from_json(&printed).unwrap(), [&decision.key]);
        let read = &read[&decision.key];
        prop_assert_eq!(&read.picks, &decision.picks);
        prop_assert_eq!(&read.condition, &decision.condition);
        prop_assert_eq!((read.digest, &read.policy), (decision.digest, &decision.policy));
        prop_assert_eq!(&read.source, &decision.source);
    }

    #[test]
    fn no_bytes_take_the_readers_down(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decision::read_decision(&bytes);
        let _ = berth_base::status::read_status(&bytes);
    }

    #[test]
    fn a_kept_path_leads_back_to_its_source(source in "[^/]{1,90}(/[^/]{1,90}){0,2}") {
        let path = layout::kept_path(&source);
        prop_assert!(path.split('/').all(|part| !part.is_empty() && part.len() <= 200 && !part.starts_with('.')));
        prop_assert_eq!(layout::kept_source(&path), Some(source));
    }

    #[test]
    fn a_rendered_file_is_not_below_its_document(source in "[^/]{1,250}(/[^/]{1,90})?", below in "[a-z~%.]{1,90}") {
        let rendered = format!("{source}/.helm/{below}");
        let [document, path] = [&source, &rendered].map(|source| layout::kept_path(source));
        let folder = format!("{document}/");
        prop_assert!(!path.starts_with(&folder));
        prop_assert_eq!(layout::kept_source(&path), Some(rendered));
    }
}

#[test]
fn a_decision_file_groups_clusters_by_what_is_equal_about_them() {
    let mut decision = decision("Placement", "shop", "web", &["a", "b", "c"]);
    decision.picks[1].replicas = Some(3);
    let text = decision::write_decision(&decision);
    let expected = "clusters:
- names:
  - a
  - c
  reason: matches
- names:
  - b
  reason: matches
  replicas: 3
";
    let flat = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    assert!(flat(&text).contains(&flat(expected)), "{text}");
}

#[test]
fn a_cluster_that_joins_a_thousand_changes_one_bucket() {
    let names: Vec<String> = (0..1_000).map(|index| format!("cluster-{index:04}")).collect();
    let of = |names: &[String]| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        decision::to_json(&decision("Placement", "shop", "web", &names))
    };
    let (before, after) = (of(&names[..999]), of(&names));
    let buckets = |form: &Json| {
        let buckets: BTreeMap<String, Json> =
            serde_json::from_value(form["clusters"][0]["buckets"].clone()).unwrap();
        buckets
    };
    let (before, after) = (buckets(&before), buckets(&after));
    let changed = after.iter().filter(|(name, bucket)| before.get(*name) != Some(bucket)).count();
    assert_eq!(changed, 1);
    let back = decision::from_json(&of(&names)).unwrap();
    assert_eq!(back.picks.len(), 1_000);
    assert!(back.picks.is_sorted_by(|a, b| a.cluster < b.cluster));
}

#[test]
fn a_cluster_picked_twice_is_a_fault() {
    let mut form = decision::to_json(&decision("Placement", "shop", "web", &["a"]));
    form["clusters"][0]["names"] = json!(["a", "a"]);
    assert!(decision::from_json(&form).unwrap_err().contains("twice"));
}

#[test]
fn a_previous_file_may_say_no_more_than_names() {
    let value = json!({"placements": [{
        "kind": "FederatedDeployment", "namespace": "web", "name": "front",
        "clusters": [{"name": "beryl", "replicas": 2}, {"name": "amber", "affinityScore": -1, "group": 1, "groupName": "canary"}],
        "condition": {"type": "Scheduled", "status": "False"},
    }]});
    let read = decisions_from_json(&value).unwrap();
    let decision = read.values().next().unwrap();
    assert_eq!((decision.digest, &decision.policy), (None, &None));
    assert_eq!(decision.picks[0].scores, BTreeMap::from([("affinityScore".to_owned(), -1)]));
    assert_eq!(decision.picks[0].group, Some(Group { index: 1, name: "canary".to_owned() }));
    assert_eq!(decision.picks[1].replicas, Some(2));
    let fleet = [
        Key::new("types.kubefed.io", "FederatedDeployment", "web", "front"),
        Key::new("types.kubefed.io", "FederatedDeployment", "web", "other"),
    ];
    let adopted = adopt(read, &fleet);
    assert_eq!(adopted.keys().collect::<Vec<_>>(), [&fleet[0]]);
    assert_eq!(adopted[&fleet[0]].key, fleet[0]);
}

#[test]
fn faults_of_a_previous_file_are_named() {
    for (value, said) in [
        (json!([]), "`placements` must be a list"),
        (json!({"placements": [{"kind": "X"}]}), "placements[0]: name is required"),
        (
            json!({"placements": [{"kind": "X", "name": "x", "clusters": [{}]}]}),
            "clusters[0]: name is required",
        ),
        (json!({"placements": [{"kind": "X", "name": "x", "clusters": 1}]}), "clusters must be a list"),
        (json!({"placements": [{"kind": "X", "name": "x", "digest": "12"}]}), "`12` is no digest"),
        (
            json!({"placements": [{"kind": "X", "name": "x"}, {"kind": "X", "name": "x"}]}),
            "X x is listed twice",
        ),
    ] {
        let error = decisions_from_json(&value).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_status_file_of_another_kind_is_refused() {
    let status = ClusterStatus { cluster: "eu".to_owned(), ..ClusterStatus::default() };
    let text = berth_base::status::write_status(&status);
    assert_eq!(berth_base::status::read_status(text.as_bytes()), Ok(status));
    let other = text.replace("ClusterStatus", "Secret");
    assert!(berth_base::status::read_status(other.as_bytes()).is_err());
}

#[test]
fn only_a_marker_with_a_format_is_one() {
    assert_eq!(layout::read_marker(layout::marker().as_bytes()), Some(layout::BRANCH_FORMAT));
    for bytes in ["", "{}", "[]", "{\"format\": \"1\"}", "{\"format\": 0}", "null"] {
        assert_eq!(layout::read_marker(bytes.as_bytes()), None, "{bytes}");
    }
}
