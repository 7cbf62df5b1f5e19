//! A new dialect is a folder and a row: one that only this test knows is read, decided, rendered, described and
//! ruled like the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::harbour::HARBOUR;
use berth_base::model::{Map, Observed, Timestamp};
use berth_base::source::{RulesFrom, SourceFile, SourceTree};
use berth_base::yaml::emit;
use berth_engine::dialects::{Dialects, NewCluster, kubefed, kubefleet, ocm};
use berth_engine::load::{self, History, Loaded};
use berth_engine::pipeline::{self, Built, Inputs};
use berth_engine::render::MemoryContents;
use berth_engine::report::{self, DescribeInputs};
use berth_engine::state::State;
use serde_json::json;

const WITH_HARBOUR: Dialects = &[&kubefed::DIALECT, &kubefleet::DIALECT, &ocm::DIALECT, &HARBOUR];

const QUAYS: &str = "apiVersion: harbour.test/v1
kind: Quay
metadata: {name: bergen, labels: {sea: north}}
spec: {}
---
apiVersion: harbour.test/v1
kind: Quay
metadata: {name: oslo, labels: {sea: north}}
spec: {taints: [{key: ice, effect: Closed}]}
---
apiVersion: harbour.test/v1
kind: Quay
metadata: {name: turin, labels: {sea: none}}
spec: {}
";

fn freight(object: &str) -> String {
    format!(
        "apiVersion: harbour.test/v1\nkind: Freight\nmetadata: {{name: fish, namespace: shop}}\n\
         spec: {{to: {{matchLabels: {{sea: north}}}}, object: {object}}}\n"
    )
}

const FISH: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: fish, namespace: shop}, data: {cod: '3'}}";

fn tree(files: &[(&str, &str)]) -> SourceTree {
    let file = |(path, text): &(&str, &str)| SourceFile::new(*path, text.as_bytes());
    SourceTree { files: files.iter().map(file).collect(), ..SourceTree::default() }
}

fn load(tree: &SourceTree) -> Loaded {
    load::load_with(tree, History::None, WITH_HARBOUR)
}

fn errors(tree: &SourceTree) -> Vec<String> {
    load(tree).diagnostics.errors().map(|error| error.to_string().replace('\n', "")).collect()
}

fn build(tree: &SourceTree) -> (Built, MemoryContents) {
    let (current, statuses, now) = (State::default(), Map::new(), Timestamp::UNIX_EPOCH);
    let inputs = Inputs { tree, history: History::None, current: &current, statuses: &statuses, now };
    let mut contents = MemoryContents::default();
    let (built, _) = pipeline::build_loaded(load(tree), inputs, None, &mut contents).unwrap();
    (built, contents)
}

/// The text of an object in a cluster's folder, if there.
fn rendered(files: &[(&str, &str)], cluster: &str) -> Option<String> {
    let (built, contents) = build(&tree(files));
    assert!(!built.diagnostics.has_errors(), "{:?}", built.diagnostics);
    let id = built.state.folders.get(cluster)?.get("shop/ConfigMap_fish.yaml")?;
    Some(String::from_utf8(contents.bytes(id)?.to_vec()).unwrap())
}

#[test]
fn its_files_become_folders() {
    let freight = freight(FISH);
    let files = [("quays.yaml", QUAYS), ("fish.yaml", &*freight)];
    let text = rendered(&files, "bergen").unwrap();
    assert!(text.contains("cod: \"3\"") && text.contains("flag: red"), "{text}");
    assert_eq!((rendered(&files, "oslo"), rendered(&files, "turin")), (None, None));
    let off = "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {harbour: {flags: false}}\n";
    let text = rendered(&[files[0], files[1], ("berth.yaml", off)], "bergen").unwrap();
    assert!(!text.contains("flag"), "its own settings are in berth.yaml: {text}");
}

#[test]
fn a_joining_cluster_is_described_in_its_words() {
    let labels = BTreeMap::from([("sea".to_owned(), "north".to_owned())]);
    let new = NewCluster { name: "narvik".to_owned(), labels, ..NewCluster::default() };
    let document = emit(&(HARBOUR.cluster_kind.unwrap().document)(&new));
    let files = [("narvik.yaml", &*document), ("fish.yaml", &*freight(FISH))];
    assert!(rendered(&files, "narvik").is_some());
}

#[test]
fn a_placement_is_described_in_its_words() {
    let (built, _) = build(&tree(&[("quays.yaml", QUAYS), ("fish.yaml", &freight(FISH))]));
    let (statuses, published, differing) = (Map::new(), Map::new(), Map::new());
    let observed = Observed {
        statuses: &statuses,
        published: &published,
        differing: &differing,
        now: Timestamp::UNIX_EPOCH,
    };
    let known =
        DescribeInputs { fleet: Some(&built.fleet), dialects: WITH_HARBOUR, ..DescribeInputs::new(observed) };
    let decision = built.state.decisions.values().next().unwrap();
    assert_eq!(report::describe(decision, known)["status"], json!({"moored": ["bergen"]}));
}

#[test]
fn its_misspelt_kinds_and_groups_are_named() {
    let kind = freight(FISH).replace("Freight", "Fright");
    let error = "fish.yaml:1:1: error: unknown kind `Fright` in the group `harbour.test`  hint: did you mean `Freight`?";
    assert_eq!(errors(&tree(&[("fish.yaml", &kind)])), [error]);
    let group = freight(FISH).replace("harbour.test", "harbor.test");
    let error = "fish.yaml:1:1: error: the kind `Freight` is known, but not in the group `harbor.test`  hint: did you \
                 mean `harbour.test`?";
    assert_eq!(errors(&tree(&[("fish.yaml", &group)])), [error]);
}

#[test]
fn access_rules_know_its_kinds() {
    let rules = "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: quays}\n\
                 spec: {folders: [quays], clusterSets: {admin: ['*']}}\n---\n\
                 apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: fishers}\n\
                 spec: {folders: [teams/fish], clusterSets: {bind: ['*']}, namespaces: [shop]}\n";
    let (fish, quays) = (freight(FISH), QUAYS.replace("sea: none", "sea: black"));
    let before = [("access/a.yaml", rules), ("quays/q.yaml", QUAYS), ("teams/fish/f.yaml", &*fish)];
    assert_eq!(errors(&tree(&before)), Vec::<String>::new());
    let refused = |files: &[(&str, &str)]| {
        let rules_from = RulesFrom::Earlier(Arc::new(tree(&before)));
        errors(&SourceTree { rules_from, ..tree(files) }).join("\n")
    };
    let moved = refused(&[before[0], ("teams/fish/q.yaml", &quays), before[2]]);
    assert!(moved.contains("may not describe the cluster `turin` of the set `default`"), "{moved}");
    let tariff = "apiVersion: harbour.test/v1\nkind: Tariff\nmetadata: {name: t, namespace: shop}\n";
    let tariff = refused(&[before[0], before[1], before[2], ("teams/fish/t.yaml", tariff)]);
    assert!(tariff.contains("may not write `Tariff` objects, which hold for the whole fleet"), "{tariff}");
    let role = freight(&FISH.replace("v1, kind: ConfigMap", "rbac.authorization.k8s.io/v1, kind: Role"));
    let role = refused(&[before[0], before[1], ("teams/fish/f.yaml", &role)]);
    assert!(role.contains("may not place a Role into the namespace `shop`"), "{role}");
}
