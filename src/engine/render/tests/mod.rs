//! Tests of [`render`], from a fleet as people write it.

mod caching;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::*;
use crate::decide::decide;
use crate::load::{History as Files, load};
use berth_base::diag::Severity;
use berth_base::model::content::ContentId;
use berth_base::model::{Map, Shared};
use berth_base::source::{SourceFile, SourceTree};

/// Contents in memory, with the number of writes.
#[derive(Default)]
struct Memory {
    kept: BTreeMap<ContentId, Vec<u8>>,
    puts: usize,
}

impl Contents for Memory {
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError> {
        let id = ContentId::of(bytes);
        self.kept.insert(id, bytes.to_vec());
        self.puts += 1;
        Ok(id)
    }

    fn get(&self, id: ContentId) -> Result<Vec<u8>, ContentError> {
        self.kept.get(&id).cloned().ok_or_else(|| ContentError(id.to_string()))
    }
}

#[derive(Default)]
struct World {
    contents: Memory,
    decisions: Map<Key, Decision>,
    folders: Folders,
    found: Vec<berth_base::diag::Diagnostic>,
}

impl World {
    /// Renders these objects after the earlier ones.
    fn render(&mut self, objects: &[Json]) {
        self.render_after(None, &loaded(objects));
    }

    /// Renders like [`World::render`], with the cache of an earlier rendering. Returns the cache for the next
    /// one.
    fn render_after(&mut self, earlier: Option<ProcessCache>, fleet: &Shared<Fleet>) -> ProcessCache {
        let now = "2026-01-01T00:00:00Z".parse().expect("this is a time");
        let mut decisions = decide(fleet, &self.decisions, &Map::new(), now).decisions;
        let previous = Previous { decisions: &self.decisions, folders: &self.folders };
        let rendered = render_after(earlier.as_ref(), fleet, &mut decisions, previous, &mut self.contents);
        let (rendered, cache) = rendered.expect("memory takes everything");
        (self.decisions, self.folders) = (decisions, rendered.folders);
        self.found = rendered.diagnostics.into_iter().collect();
        cache
    }

    fn object(&self, cluster: &str, path: &str) -> Json {
        let Some(id) = self.folders[cluster].get(path) else { return Json::Null };
        serde_yaml::from_slice(&self.contents.kept[id]).expect("it is YAML")
    }

    fn messages(&self, severity: Severity) -> Vec<String> {
        self.found.iter().filter(|one| one.severity == severity).map(ToString::to_string).collect()
    }

    fn failures(&self, name: &str) -> Vec<String> {
        let decision = self.decisions.values().find(|one| *one.key.name == *name).expect("it is decided");
        decision.failures.iter().map(|failure| failure.cluster.clone()).collect()
    }
}

fn loaded(objects: &[Json]) -> Shared<Fleet> {
    let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    let file = SourceFile::new("a.yaml", text.as_bytes());
    let loaded = load(&SourceTree { files: [file].into(), ..SourceTree::default() }, Files::None);
    assert!(!loaded.diagnostics.has_errors(), "{:?}", loaded.diagnostics);
    loaded.fleet
}

const SETTINGS: &str = "shop/ConfigMap_settings.yaml";

fn cluster(name: &str) -> Json {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": name, "namespace": "kube-federation-system", "labels": {"name": name}},
        "spec": {"apiEndpoint": "https://a", "secretRef": {"name": "a"}},
    })
}

fn fleet(more: &[Json]) -> Vec<Json> {
    let namespace = federated("FederatedNamespace", "shop", json!({"placement": {"clusterSelector": {}}}));
    [cluster("oslo"), cluster("porto"), cluster("turin"), namespace]
        .into_iter()
        .chain(more.iter().cloned())
        .collect()
}

fn federated(kind: &str, name: &str, spec: Json) -> Json {
    json!({
        "apiVersion": "types.kubefed.io/v1beta1", "kind": kind,
        "metadata": {"name": name, "namespace": "shop"}, "spec": spec,
    })
}

fn settings(mode: &str, overrides: Json) -> Json {
    let spec = json!({
        "template": {"data": {"mode": mode}}, "placement": {"clusterSelector": {}}, "overrides": overrides,
    });
    federated("FederatedConfigMap", "settings", spec)
}

/// Returns a second type whose objects are ConfigMaps too: two workloads with one object.
fn other_type() -> Json {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "FederatedTypeConfig",
        "metadata": {"name": "configmaps", "namespace": "other"},
        "spec": {
            "targetType": {"version": "v1", "kind": "ConfigMap", "pluralName": "configmaps", "scope": "Namespaced"},
            "federatedType": {"group": "own.example.com", "version": "v1", "kind": "FederatedAMap", "pluralName": "x", "scope": "Namespaced"},
            "propagation": "Enabled",
        },
    })
}

fn other(name: &str, mode: &str, clusters: &[&str]) -> Json {
    let clusters: Vec<Json> = clusters.iter().map(|name| json!({"name": name})).collect();
    json!({
        "apiVersion": "own.example.com/v1", "kind": "FederatedAMap",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"template": {"data": {"mode": mode}}, "placement": {"clusters": clusters}},
    })
}

#[test]
fn copies_without_an_override_are_put_once_and_share_their_entry() {
    let mut world = World::default();
    world.render(&fleet(&[settings("a", json!([]))]));
    assert_eq!(world.contents.puts, 2, "one for the namespace, one for the settings");
    let copies: Vec<&ContentId> = world.folders.values().filter_map(|folder| folder.get(SETTINGS)).collect();
    assert_eq!(copies.len(), 3);
    assert!(copies.iter().all(|copy| std::ptr::eq(*copy, copies[0])));
    assert_eq!(
        world.object("oslo", SETTINGS),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "a"},
            "metadata": {
                "name": "settings", "namespace": "shop", "labels": {"kubefed.io/managed": "true"},
                "annotations": {
                    "berth.dev/retain": "/metadata/annotations,/metadata/finalizers",
                    "berth.dev/take-over": "true",
                    "berth.dev/workload": "FederatedConfigMap.types.kubefed.io/shop/settings",
                },
            },
        })
    );
}

#[test]
fn equal_overridden_copies_are_put_once() {
    let to = |cluster: &str| json!({"clusterName": cluster, "clusterOverrides": [{"path": "/data/mode", "value": "b"}]});
    let mut world = World::default();
    world.render(&fleet(&[settings("a", json!([to("oslo"), to("porto")]))]));
    assert_eq!(world.contents.puts, 3);
    assert_eq!(world.folders["oslo"][SETTINGS], world.folders["porto"][SETTINGS]);
    assert_eq!(world.object("turin", SETTINGS)["data"]["mode"], "a");
}

#[test]
fn an_override_by_selector_reaches_the_clusters_that_match() {
    let selector = json!({"matchExpressions": [{"key": "name", "operator": "NotIn", "values": ["oslo"]}]});
    let overrides =
        json!([{"clusterSelector": selector, "clusterOverrides": [{"path": "/data/mode", "value": "b"}]}]);
    let mut world = World::default();
    world.render(&fleet(&[settings("a", overrides)]));
    let modes: Vec<Json> = ["oslo", "porto", "turin"]
        .iter()
        .map(|name| world.object(name, SETTINGS)["data"]["mode"].clone())
        .collect();
    assert_eq!(modes, ["a", "b", "b"]);
}

#[test]
fn a_failing_copy_keeps_its_last_good_form_and_only_it() {
    let broken =
        json!([{"clusterName": "oslo", "clusterOverrides": [{"op": "remove", "path": "/data/nope"}]}]);
    let mut world = World::default();
    world.render(&fleet(&[settings("new", broken.clone())]));
    assert_eq!(world.object("oslo", SETTINGS), Json::Null, "there was none before");
    assert_eq!(world.failures("settings"), ["oslo"]);

    world.render(&fleet(&[settings("old", json!([]))]));
    assert!(world.failures("settings").is_empty());
    for _ in 0..2 {
        world.render(&fleet(&[settings("new", broken.clone())]));
        assert_eq!(world.object("oslo", SETTINGS)["data"]["mode"], "old");
        assert_eq!(world.object("turin", SETTINGS)["data"]["mode"], "new");
        assert_eq!(world.failures("settings"), ["oslo"]);
        let errors = world.messages(Severity::Error);
        assert!(
            errors.len() == 1
                && errors[0].starts_with("a.yaml:10:")
                && errors[0].contains("FederatedConfigMap shop/settings cannot be rendered for cluster `oslo`: `remove` of `/data/nope` failed"),
            "{errors:?}"
        );
    }
}

#[test]
fn an_override_may_not_change_which_object_it_is() {
    for (path, value) in [("/metadata", json!({"name": "x"})), ("", json!([]))] {
        let overrides =
            json!([{"clusterName": "oslo", "clusterOverrides": [{"path": path, "value": value}]}]);
        let mut world = World::default();
        world.render(&fleet(&[settings("a", overrides)]));
        assert_eq!(world.failures("settings"), ["oslo"], "{path}");
        assert!(world.messages(Severity::Error)[0].contains("API group, kind, namespace or name"));
    }
    let version =
        json!([{"clusterName": "oslo", "clusterOverrides": [{"path": "/apiVersion", "value": "v2"}]}]);
    let mut world = World::default();
    world.render(&fleet(&[settings("a", version)]));
    assert_eq!(world.object("oslo", SETTINGS)["apiVersion"], "v2");
}

#[test]
fn an_override_may_move_an_object_to_another_api_group_of_the_kind() {
    let group = json!([{"clusterName": "oslo", "clusterOverrides":
        [{"path": "/data/mode", "value": "b"}, {"path": "/apiVersion", "value": "old.example.com/v1"}]}]);
    let mut world = World::default();
    world.render(&fleet(&[settings("a", group)]));
    assert!(world.messages(Severity::Error).is_empty(), "{:?}", world.found);
    let moved = SETTINGS.replace("ConfigMap_", "ConfigMap.old.example.com_");
    let is_settings = |path: &&Arc<str>| path.starts_with("shop/");
    let there = |cluster: &str| {
        world.folders[cluster].keys().filter(is_settings).map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(there("oslo"), std::slice::from_ref(&moved));
    assert_eq!(there("turin"), [SETTINGS.to_owned()]);
    assert_eq!(world.object("oslo", &moved)["data"]["mode"], "b");
    let decision = world.decisions.values().find(|one| *one.key.name == *"settings").expect("a decision");
    assert_eq!(decision.objects.len(), 2);
}

#[test]
fn equal_copies_are_shared_and_belong_to_the_lowest_owner() {
    let mut world = World::default();
    world.render(&fleet(&[other_type(), settings("a", json!([])), other("settings", "a", &["oslo"])]));
    assert!(world.found.is_empty(), "{:?}", world.found);
    let owner = |world: &World, cluster: &str| {
        world.object(cluster, SETTINGS)["metadata"]["annotations"]["berth.dev/workload"].clone()
    };
    assert_eq!(owner(&world, "oslo"), "FederatedAMap.own.example.com/shop/settings");
    assert_eq!(owner(&world, "turin"), "FederatedConfigMap.types.kubefed.io/shop/settings");
}

#[test]
fn of_differing_copies_the_lowest_key_wins_unless_another_is_there_already() {
    let both =
        |mode: &str| fleet(&[other_type(), settings("a", json!([])), other("settings", mode, &["oslo"])]);
    let mut fresh = World::default();
    fresh.render(&both("b"));
    assert_eq!(fresh.object("oslo", SETTINGS)["data"]["mode"], "b");
    assert_eq!(fresh.decisions.values().map(|one| one.failures.len()).sum::<usize>(), 1);
    let errors = fresh.messages(Severity::Error);
    assert!(
        errors[0].contains("FederatedConfigMap shop/settings")
            && errors[0].contains("FederatedAMap shop/settings"),
        "{errors:?}"
    );

    let mut settled = World::default();
    settled.render(&fleet(&[settings("a", json!([]))]));
    for _ in 0..2 {
        settled.render(&both("b"));
        assert_eq!(settled.object("oslo", SETTINGS)["data"]["mode"], "a", "it was there first");
        assert_eq!(settled.object("turin", SETTINGS)["data"]["mode"], "a");
    }
}

#[test]
fn a_workload_that_lost_a_conflict_has_no_last_good_form() {
    let mut world = World::default();
    world.render(&fleet(&[settings("a", json!([]))]));
    world.render(&fleet(&[other_type(), settings("a", json!([])), other("settings", "b", &["oslo"])]));
    // The winner leaves, and the loser cannot be rendered: it does not own the winner's copy.
    let mut loser = other("settings", "b", &["oslo"]);
    loser["spec"]["overrides"] =
        json!([{"clusterName": "oslo", "clusterOverrides": [{"op": "remove", "path": "/x"}]}]);
    world.render(&fleet(&[other_type(), loser]));
    assert_eq!(world.object("oslo", SETTINGS), Json::Null);
}

#[test]
fn names_that_differ_only_by_case_do_not_share_a_folder() {
    let mut world = World::default();
    world.render(&fleet(&[other_type(), settings("a", json!([])), other("Settings", "a", &["oslo"])]));
    assert_eq!(world.folders["oslo"].len(), 2, "the namespace and one of the two");
    assert!(world.messages(Severity::Error)[0].contains("differs only by case"));
}

#[test]
fn unused_overrides_and_open_secrets_get_one_warning_each() {
    let to =
        |cluster: &str| json!({"clusterName": cluster, "clusterOverrides": [{"path": "/a", "value": 1}]});
    let spec = json!({
        "template": {"stringData": {"password": "hunter2"}},
        "placement": {"clusters": [{"name": "oslo"}]},
        "overrides": [to("turin"), to("osla")],
    });
    let mut world = World::default();
    world.render(&fleet(&[federated("FederatedSecret", "s", spec)]));
    let warnings = world.messages(Severity::Warning).join("\n");
    for part in
        ["`turin` has no effect", "`osla` has no effect", "did you mean `oslo`?", "everybody who can read"]
    {
        assert!(warnings.contains(part), "{part} is not in {warnings}");
    }
    assert!(!warnings.contains("hunter2"));

    let sealed =
        json!({"template": {"data": {"p": "ENC[AES256_GCM,x]"}}, "placement": {"clusterSelector": {}}});
    world.render(&fleet(&[federated("FederatedSecret", "s", sealed)]));
    let errors = world.messages(Severity::Error);
    assert!(errors.len() == 1 && errors[0].contains("`data.p` is encrypted by SOPS"), "{errors:?}");
    assert!(world.messages(Severity::Warning).iter().all(|one| !one.contains("everybody who can read")));
}

#[test]
fn a_list_is_no_object_and_what_is_in_it_reaches_nobody() {
    let hidden = json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}]);
    let adds = json!([{"clusterName": "oslo", "clusterOverrides":
        [{"op": "add", "path": "/items", "value": hidden.clone()}]}]);
    let mut world = World::default();
    world.render(&fleet(&[settings("a", adds)]));
    assert_eq!(world.failures("settings"), ["oslo"]);
    assert!(world.messages(Severity::Error)[0].contains("the contents of its field `items`"));

    let spec = json!({"template": {"Items": hidden}, "placement": {"clusters": [{"name": "oslo"}]}});
    world.render(&fleet(&[federated("FederatedConfigMap", "settings", spec)]));
    assert_eq!(world.failures("settings"), ["oslo"]);
}

#[test]
fn every_cluster_has_a_folder_and_each_decision_its_objects() {
    let mut world = World::default();
    world.render(&[cluster("oslo"), federated("FederatedNamespace", "shop", json!({}))]);
    assert_eq!(world.folders, Folders::from([("oslo".to_owned(), berth_base::model::Folder::new())]));
    let objects: Vec<String> =
        world.decisions.values().flat_map(|one| &one.objects).map(ToString::to_string).collect();
    assert_eq!(objects, ["Namespace shop"]);
}
