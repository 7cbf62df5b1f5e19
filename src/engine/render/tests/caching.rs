//! The cache changes no result.

use serde_json::{Value as Json, json};

use super::{SETTINGS, World, cluster, federated, fleet, loaded, settings};

#[test]
fn a_secret_s_other_value_makes_its_copies_anew() {
    let secret = |value: &str| {
        let spec = json!({"template": {"stringData": {"p": value}}, "placement": {"clusterSelector": {}}});
        loaded(&fleet(&[federated("FederatedSecret", "s", spec)]))
    };
    let (before, after) = (secret("hunter2"), secret("hunter3"));
    assert_eq!(format!("{before:?}"), format!("{after:?}"), "nothing shows it for debugging");
    let mut world = World::default();
    let left = world.render_after(None, &before);
    world.render_after(Some(left), &after);
    assert_eq!(world.object("oslo", "shop/Secret_s.yaml")["stringData"]["p"], "hunter3");
}

#[test]
fn a_cluster_s_new_label_makes_only_those_copies_anew_that_read_it() {
    let selector = json!({"matchLabels": {"tier": "high"}});
    let by_selector =
        json!([{"clusterSelector": selector, "clusterOverrides": [{"path": "/data/mode", "value": "b"}]}]);
    let is_labelled = json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]});
    let patch = json!([{"op": "add", "path": "/data/tier", "value": "${MEMBER-CLUSTER-LABEL-KEY-tier}"}]);
    let own = json!([{"group": "", "version": "v1", "kind": "ConfigMap", "name": "own"}]);
    let of_kubefleet = |kind: &str, spec: Json| {
        json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
            "metadata": {"name": "own", "namespace": "shop"}, "spec": spec})
    };
    let labelled = |tier: &str| {
        let mut objects = fleet(&[
            settings("a", by_selector.clone()),
            federated(
                "FederatedConfigMap",
                "other",
                json!({"template": {}, "placement": {"clusterSelector": {}}}),
            ),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": "shop"}, "data": {}}),
            of_kubefleet(
                "ResourcePlacement",
                json!({"resourceSelectors": own, "policy": {"placementType": "PickAll"}}),
            ),
            of_kubefleet(
                "ResourceOverride",
                json!({"resourceSelectors": own, "policy": {"overrideRules": [{
                    "clusterSelector": {"clusterSelectorTerms": [{"labelSelector": is_labelled}]},
                    "jsonPatchOverrides": patch,
                }]}}),
            ),
        ]);
        objects[0]["metadata"]["labels"]["tier"] = tier.into();
        loaded(&objects)
    };
    let mut world = World::default();
    let left = world.render_after(None, &labelled("low"));
    let after = labelled("high");
    let puts = world.contents.puts;
    world.render_after(Some(left), &after);
    assert_eq!(world.object("oslo", SETTINGS)["data"]["mode"], "b");
    assert_eq!(world.object("turin", SETTINGS)["data"]["mode"], "a");
    assert_eq!(world.object("oslo", "shop/ConfigMap_own.yaml")["data"]["tier"], "high");
    assert_eq!(world.contents.puts - puts, 4, "of two objects, the copy as it is and the one for oslo");
}

#[test]
fn a_cluster_s_other_applier_makes_its_copies_anew() {
    let applied_by = |applier: &str| {
        let mut objects = fleet(&[settings("a", json!([]))]);
        objects[0]["metadata"]["annotations"] = json!({"berth.dev/applier": applier});
        loaded(&objects)
    };
    let guard = "kustomize.toolkit.fluxcd.io/prune";
    let mut world = World::default();
    let left = world.render_after(None, &applied_by("berth"));
    let after = applied_by("flux");
    let left = world.render_after(Some(left), &after);
    let of = |world: &World, cluster: &str, path: &str| {
        world.object(cluster, path)["metadata"]["annotations"][guard].clone()
    };
    let namespace = "_cluster/Namespace_shop.yaml";
    assert_eq!(of(&world, "oslo", namespace), "disabled");
    assert_eq!(of(&world, "oslo", SETTINGS), Json::Null);
    assert_eq!(of(&world, "turin", namespace), Json::Null);
    let after = applied_by("berth");
    world.render_after(Some(left), &after);
    assert_eq!(of(&world, "oslo", namespace), Json::Null);
    assert_eq!(world.folders["oslo"], world.folders["turin"]);
}

#[test]
fn a_cluster_that_joins_or_leaves_makes_no_copies_of_others_anew() {
    let of_oslo =
        json!([{"clusterName": "oslo", "clusterOverrides": [{"path": "/data/mode", "value": "b"}]}]);
    let three = fleet(&[settings("a", of_oslo)]);
    let four = [&three[..], &[cluster("rome")]].concat();
    let mut world = World::default();
    let left = world.render_after(None, &loaded(&three));
    let (puts, joined) = (world.contents.puts, loaded(&four));
    let left = world.render_after(Some(left), &joined);
    assert_eq!(world.contents.puts - puts, 2, "the namespace and the settings for rome");
    assert_eq!(world.folders["rome"], world.folders["turin"]);
    let (puts, again) = (world.contents.puts, loaded(&three));
    world.render_after(Some(left), &again);
    assert_eq!(world.contents.puts, puts);
    assert!(!world.folders.contains_key("rome"));
    assert_eq!(world.object("oslo", SETTINGS)["data"]["mode"], "b");
}
