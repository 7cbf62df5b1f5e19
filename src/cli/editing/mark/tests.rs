use proptest::prelude::*;

use super::taints::{self, TaintList};
use super::{apply, labels};
use berth_base::edit::{Found, objects};

const SINCE: &str = "2026-01-31T12:00:00Z";

/// Clusters as users write them. `LABELS` and `TAINTS` are replaced by any number of labels and taints.
const FILES: [&str; 6] = [
    "# Ours.\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: oslo  # by the fjord\n  labels:\n    # Of the platform team.\n    env: prod\n    region: north   # for now\nspec:\n  hubAcceptsClient: true\n  taints:\n  # Until the driver is mended.\n  - key: gpu\n    value: \"broken\"\n    effect: NoSelect\n    timeAdded: \"2025-01-01T00:00:00Z\"\n",
    "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: oslo}\nspec: {hubAcceptsClient: true}\n",
    "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: oslo\nspec:\n  hubAcceptsClient: true",
    "{\n  \"apiVersion\": \"cluster.open-cluster-management.io/v1\",\n  \"kind\": \"ManagedCluster\",\n  \"metadata\": {\n    \"name\": \"oslo\",\n    \"labels\": {\"env\": \"prod\"}\n  },\n  \"spec\": {\"hubAcceptsClient\": true}\n}\n",
    "kind: List\napiVersion: v1\nitems:\n- apiVersion: cluster.open-cluster-management.io/v1\n  kind: ManagedCluster\n  metadata:\n    labels: {env: prod}   # short\n    name: oslo\n  spec:\n    taints: [{key: gpu, effect: NoSelect}]\n",
    "x: 1\r\n---\r\napiVersion: cluster.open-cluster-management.io/v1\r\nkind: ManagedCluster\r\nmetadata:\r\n  name: oslo\r\n  labels:\r\n    env: prod\r\nspec:\r\n  taints:\r\n    - key: a\r\n      effect: NoSelect\r\n    - {key: b, effect: NoSelect}\r\n  hubAcceptsClient: true\r\n",
];

fn found(text: &str) -> Found {
    objects(text.as_bytes()).found.into_iter().next().expect("an object")
}

fn label(text: &str, words: &[&str]) -> String {
    let found = found(text);
    let requests: Vec<_> = words.iter().map(|word| labels::parse(word).unwrap()).collect();
    let outcome = labels::outcome(&labels::labels_of(&found), &requests, true).unwrap();
    apply(text, &found, &outcome.changes).unwrap()
}

fn taint(text: &str, words: &[&str]) -> String {
    let found = found(text);
    let requests: Vec<_> = words.iter().map(|word| taints::parse(word).unwrap()).collect();
    let outcome = taints::outcome(&TaintList::of(&found), &requests, true, Some(SINCE)).unwrap();
    apply(text, &found, &outcome.changes).unwrap()
}

#[test]
fn words_are_read_as_kubectl_reads_them() {
    let taint = |word| taints::parse(word).unwrap();
    let add = |key: &str, value: &str, effect: &str| {
        let [key, value, effect] = [key, value, effect].map(str::to_owned);
        taints::TaintRequest::Add(taints::Taint { key, value, effect })
    };
    let remove = |key: &str, value: Option<&str>, effect: Option<&str>| taints::TaintRequest::Remove {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        effect: effect.map(str::to_owned),
    };
    assert_eq!(taint("gpu=broken:NoSelect"), add("gpu", "broken", "NoSelect"));
    assert_eq!(taint("gpu:NoSelect"), add("gpu", "", "NoSelect"));
    assert_eq!(taint("a.b/gpu=x:y=z:NoSelect"), add("a.b/gpu", "x:y=z", "NoSelect"));
    assert_eq!(taint("gpu-"), remove("gpu", None, None));
    assert_eq!(taint("gpu:NoSelect-"), remove("gpu", None, Some("NoSelect")));
    assert_eq!(taint("gpu=broken:NoSelect-"), remove("gpu", Some("broken"), Some("NoSelect")));
    for bad in ["gpu=broken", "=x:NoSelect", ":NoSelect", "-", "a b:NoSelect"] {
        assert!(taints::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(labels::parse("env=").unwrap(), labels::LabelRequest::Set("env".into(), String::new()));
    for bad in ["=x", "env=a b", "-", "a/b/c=x", "env=x-"] {
        assert!(labels::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn one_line_changes_and_comments_stay() {
    let after = label(FILES[0], &["region=south"]);
    assert_eq!(after, FILES[0].replace("region: north   # for now", "region: south   # for now"));
    let after = label(FILES[0], &["zone=a"]);
    assert_eq!(after, FILES[0].replace("# for now\n", "# for now\n    zone: a\n"));
    let after = taint(FILES[0], &["gpu=mended:NoSelect"]);
    let moment = FILES[0].replace("2025-01-01T00:00:00Z", SINCE);
    assert_eq!(after, moment.replace("\"broken\"", "mended"));
    assert_eq!(taint(FILES[0], &["gpu=broken:NoSelect"]), FILES[0], "it is there, and since when stays");
}

#[test]
fn a_new_taint_says_since_when_and_an_old_one_keeps_its_moment() {
    let after = taint(FILES[0], &["net:NoSelectIfNew"]);
    let added = format!(
        "2025-01-01T00:00:00Z\"\n  - effect: NoSelectIfNew\n    key: net\n    timeAdded: \"{SINCE}\"\n"
    );
    assert_eq!(after, FILES[0].replace("2025-01-01T00:00:00Z\"\n", &added));
}

#[test]
fn a_taint_or_label_with_another_value_takes_a_word_more() {
    let found = found(FILES[0]);
    let list = TaintList::of(&found);
    let request = [taints::parse("gpu=mended:NoSelect").unwrap()];
    let refused = taints::outcome(&list, &request, false, None).unwrap_err();
    assert_eq!(
        refused,
        "the taint `gpu=broken:NoSelect` exists; use --overwrite to set `gpu=mended:NoSelect`"
    );
    let request = [labels::parse("env=test").unwrap()];
    let refused = labels::outcome(&labels::labels_of(&found), &request, false).unwrap_err();
    assert_eq!(refused, "the label `env` is `prod`; use --overwrite to set `test`");
}

#[test]
fn a_comment_in_a_list_outlives_its_last_taint() {
    let after = taint(FILES[0], &["gpu-"]);
    assert!(after.contains("taints: []\n  # Until the driver is mended."), "{after}");
    let after = taint(FILES[5], &["a-", "b:NoSelect-"]);
    assert!(after.contains("spec:\r\n  hubAcceptsClient: true\r\n") && !after.contains("taints"), "{after}");
}

/// Labels that none of the files has, in any order.
fn new_labels() -> impl Strategy<Value = Vec<(String, String)>> {
    let values =
        prop::collection::btree_map("(x\\.dev/)?n[a-z]{0,5}", "([a-z0-9]([a-z0-9.-]{0,5}[a-z0-9])?)?", 1..4);
    values.prop_map(|all| all.into_iter().collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    #[test]
    fn what_a_label_edit_adds_its_inverse_takes_away_again(file in 0..FILES.len(), all in new_labels()) {
        let text = FILES[file];
        let set: Vec<String> = all.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let remove: Vec<String> = all.iter().map(|(key, _)| format!("{key}-")).collect();
        let after = label(text, &set.iter().map(String::as_str).collect::<Vec<_>>());
        let now = labels::labels_of(&found(&after));
        prop_assert!(all.iter().all(|(key, value)| now.get(key) == Some(value)));
        // The rest of the document is unchanged.
        let without = |text: &str| {
            let mut json = found(text).node.to_json();
            let metadata = json["metadata"].as_object_mut().expect("metadata");
            metadata.remove("labels");
            json
        };
        prop_assert_eq!(without(text), without(&after));
        let back = label(&after, &remove.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(back.as_str(), text);
    }

    #[test]
    fn what_a_taint_edit_adds_its_inverse_takes_away_again(
        file in 0..FILES.len(),
        all in prop::collection::btree_map("n[a-z]{0,5}", "[a-z0-9]{0,4}", 1..4),
        effect in prop::sample::select(vec!["NoSelect", "NoSelectIfNew", "PreferNoSelect"]),
    ) {
        let text = FILES[file];
        let set: Vec<String> = all.iter().map(|(key, value)| format!("{key}={value}:{effect}")).collect();
        let remove: Vec<String> = set.iter().map(|word| format!("{word}-")).collect();
        let after = taint(text, &set.iter().map(String::as_str).collect::<Vec<_>>());
        let before = taints::taints_of(&found(text));
        let now = taints::taints_of(&found(&after));
        prop_assert_eq!(&now[..before.len()], &before[..]);
        prop_assert_eq!(now.len(), before.len() + all.len());
        let back = taint(&after, &remove.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(back.as_str(), text);
    }

    #[test]
    fn a_value_that_is_changed_and_changed_back_leaves_the_same_document(file in 0..FILES.len(), value in "[a-z]{1,5}") {
        let text = label(FILES[file], &["env=prod"]);
        let there = label(&text, &[&format!("env={value}")]);
        prop_assert_eq!(label(&there, &["env=prod"]), text);
    }
}
