//! The verdict of each strategy on each state of an object.

use serde_json::{Value as Json, json};

use super::super::plan::{Form, Live, decide_by_limit};
use super::*;
use crate::sync::desired::Annotations;

fn wanted(annotations: Json) -> Desired {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "web", "annotations": annotations}, "data": {"a": "1"}});
    Desired::new(&object, false).unwrap()
}

struct Case {
    live: Json,
    owned: bool,
    applied_before: bool,
}

impl Case {
    fn judge(&self, annotations: Json) -> Option<(Effect, String)> {
        let wanted = wanted(annotations);
        let content = wanted.object();
        let changes = field_differences::asked(&self.live, &content);
        let found = ObservedObject {
            live: &self.live,
            wanted: &content,
            owned: self.owned,
            applied_before: self.applied_before,
            changes: &changes,
            is_secret: false,
        };
        judge(&Strategy::of(&wanted), &found).map(|finding| (finding.effect, finding.message))
    }
}

fn live(data: Json, owners: Json) -> Json {
    let fields: serde_json::Map<String, Json> =
        data.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({}))).collect();
    json!({"metadata": {"name": "web", "ownerReferences": owners, "managedFields": [
        {"manager": "hand", "operation": "Update", "fieldsV1": {"f:data": fields}}]}, "data": data})
}

#[test]
fn without_a_strategy_nothing_is_found() {
    let drifted =
        Case { live: live(json!({"a": "2", "b": "3"}), json!([])), owned: true, applied_before: true };
    assert_eq!(drifted.judge(json!({})), None);
}

#[test]
fn a_drift_is_refused_only_under_the_form_applied_last() {
    let when = json!({"berth.dev/apply-when": "if-not-drifted"});
    let mut case = Case { live: live(json!({"a": "2"}), json!([])), owned: true, applied_before: true };
    let (effect, message) = case.judge(when.clone()).unwrap();
    assert_eq!(effect, Effect::Refused);
    assert!(message.starts_with("FoundDrifts: ") && message.contains("`/data/a` is \"2\""), "{message}");
    case.applied_before = false;
    assert_eq!(case.judge(when.clone()), None);
    case.applied_before = true;
    case.live = live(json!({"a": "1"}), json!([]));
    assert_eq!(case.judge(when), None);
}

#[test]
fn what_was_added_beside_the_manifest_counts_in_a_full_comparison_only() {
    let case = Case { live: live(json!({"a": "1", "b": "3"}), json!([])), owned: true, applied_before: true };
    assert_eq!(case.judge(json!({"berth.dev/apply-when": "if-not-drifted"})), None);
    let full = json!({"berth.dev/apply-when": "if-not-drifted", "berth.dev/compare": "full"});
    assert_eq!(case.judge(full).unwrap().0, Effect::Refused);
    let (effect, message) = case.judge(json!({"berth.dev/compare": "full"})).unwrap();
    assert_eq!(effect, Effect::Reported);
    assert_eq!(message, "FoundDrifts: `/data/b` is \"3\" in the cluster and missing in the folder");
}

#[test]
fn a_take_over_if_nothing_differs_names_what_does() {
    let case =
        Case { live: live(json!({"a": "2", "b": "3"}), json!([])), owned: false, applied_before: false };
    let (effect, message) = case.judge(json!({"berth.dev/take-over": "if-no-diff"})).unwrap();
    assert_eq!(effect, Effect::Refused);
    assert!(message.starts_with("FailedToTakeOver: ") && message.contains("/data/a"), "{message}");
    assert!(!message.contains("/data/b"), "{message}");
    let full = json!({"berth.dev/take-over": "if-no-diff", "berth.dev/compare": "full"});
    assert!(case.judge(full).unwrap().1.contains("/data/b"));
}

#[test]
fn other_owners_are_refused_where_they_are_not_allowed() {
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"});
    let hub = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "AppliedWork", "name": "w", "uid": "2"});
    let mut case =
        Case { live: live(json!({"a": "1"}), json!([set, hub])), owned: false, applied_before: false };
    let alone = json!({"berth.dev/co-owners": "refused", "berth.dev/take-over": "true"});
    let (effect, message) = case.judge(alone.clone()).unwrap();
    assert_eq!(effect, Effect::Refused);
    assert!(message.starts_with("FailedToTakeOver: ") && message.ends_with("`ReplicaSet web`"), "{message}");
    case.owned = true;
    assert!(case.judge(alone.clone()).unwrap().1.starts_with("ManifestApplyFailed: "));
    assert_eq!(case.judge(json!({})), None);
    case.live = live(json!({"a": "1"}), json!([hub]));
    assert_eq!(case.judge(alone), None, "what an earlier hub left is no owner");
}

#[test]
fn a_comparison_only_says_what_differs_and_touches_nothing() {
    let case = Case { live: live(json!({"a": "2"}), json!([])), owned: false, applied_before: false };
    let (effect, message) = case.judge(json!({"berth.dev/apply": "report-diff"})).unwrap();
    assert_eq!(effect, Effect::Reported);
    assert!(message.starts_with("FoundDiff: `/data/a`"), "{message}");
    let there = Live {
        owned: true,
        form: Form::There { version: crate::sync::plan::Version("1".to_owned()), same: false },
        annotations: Annotations::default(),
        stays: None,
    };
    for (way, live, action) in [
        ("report-diff", None, Some(None)),
        ("report-diff", Some(&there), Some(None)),
        ("read-only", None, Some(None)),
        ("create-only", None, None),
        ("create-only", Some(&there), Some(None)),
        ("anything", Some(&there), None),
    ] {
        let decided = decide_by_limit(&wanted(json!({"berth.dev/apply": way})), live);
        assert_eq!(decided.map(|action| action.unwrap()), action, "{way} {live:?}");
    }
}
