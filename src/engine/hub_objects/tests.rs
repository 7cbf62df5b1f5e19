use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::decisions::{self, DecisionApi};
use super::{HubContent, HubPlaces, Planned, profiles};
use berth_base::model::status::Applied;
use berth_base::model::{
    Cluster, ClusterStatus, Decision, Group, Key, ObjectId, ObjectWrite, Pick, Shared, Timestamp,
};

const NOW: &str = "2026-11-01T12:00:00Z";

fn place() -> HubPlaces {
    HubPlaces { fleet: "demo".to_owned(), decisions: None, profiles: "fleet".to_owned(), cluster_set: None }
}

/// A hub in memory that handles writes like an API server.
#[derive(Default)]
struct Hub {
    objects: BTreeMap<ObjectId, Json>,
    /// The number of writes so far, which is also the next version.
    writes: usize,
}

impl Hub {
    fn with(objects: Vec<Json>) -> Hub {
        let objects = objects.into_iter().map(|object| (ObjectId::of(&object).expect("an id"), object));
        Hub { objects: objects.collect(), writes: 0 }
    }

    fn of_group(&self, group: &str) -> Vec<Json> {
        self.objects.iter().filter(|(id, _)| *id.group == *group).map(|(_, object)| object.clone()).collect()
    }

    /// Performs the first `most` writes of a plan.
    fn perform(&mut self, planned: &Planned, most: usize) -> usize {
        let all: Vec<&ObjectWrite> = planned.chains.iter().flatten().take(most).collect();
        for write in &all {
            let object = write.object().clone();
            let id = ObjectId::of(&object).expect("an id");
            let live = self.objects.get(&id);
            match write {
                ObjectWrite::Create(_) => {
                    assert!(live.is_none(), "{id} exists");
                    let mut object = object;
                    if *id.group == *decisions::OCM_GROUP || &*id.kind == "ClusterProfile" {
                        object.as_object_mut().expect("an object").remove("status");
                    }
                    self.objects.insert(id, object);
                }
                ObjectWrite::Replace(_) => {
                    let status = live.expect("an object").get("status").cloned();
                    let mut object = object;
                    match status {
                        Some(status) => object["status"] = status,
                        None => drop(object.as_object_mut().expect("an object").remove("status")),
                    }
                    self.objects.insert(id, object);
                }
                ObjectWrite::ReplaceStatus(_) => {
                    let mut kept = live.expect("an object").clone();
                    kept["status"] = object["status"].clone();
                    self.objects.insert(id, kept);
                }
                ObjectWrite::Delete(_) => drop(self.objects.remove(&id)),
            }
        }
        self.writes += all.len();
        all.len()
    }

    fn plan(&self, form: DecisionApi, shown: &HubContent) -> Planned {
        let (listed, placements): (Vec<Json>, Vec<Json>) =
            self.of_group(form.group()).into_iter().partition(|object| object["kind"] == decisions::KIND);
        decisions::plan(
            form,
            shown,
            decisions::LiveDecisions { decisions: &listed, placements: &placements },
            &place(),
        )
    }

    fn make_right(&mut self, form: DecisionApi, shown: &HubContent) -> usize {
        let planned = self.plan(form, shown);
        self.perform(&planned, usize::MAX)
    }
}

fn picks(names: impl IntoIterator<Item = String>) -> Vec<Pick> {
    names.into_iter().map(Pick::of).collect()
}

fn numbered(count: usize) -> Vec<Pick> {
    picks((0..count).map(|number| format!("c{number:03}")))
}

fn decision(key: Key, picks: Vec<Pick>) -> Decision {
    Decision { picks: Shared::from(picks), ..Decision::new(key, "a.yaml") }
}

fn placement(name: &str) -> Key {
    Key::new("cluster.open-cluster-management.io", "Placement", "shop", name)
}

fn shown(decisions: Vec<Decision>) -> HubContent {
    let decisions = decisions.into_iter().map(|one| (one.key.clone(), one)).collect();
    HubContent { decisions, ..HubContent::default() }
}

#[test]
fn slices_of_a_hundred_carry_their_key_and_number() {
    let mut hub = Hub::default();
    let all = shown(vec![decision(placement("web"), numbered(250))]);
    assert_eq!(hub.make_right(DecisionApi::Sig, &all), 3);
    let slices = hub.of_group("multicluster.x-k8s.io");
    let seen: Vec<(&str, &str, usize)> = slices
        .iter()
        .map(|slice| {
            let label =
                |key: &str| slice["metadata"]["labels"][format!("multicluster.x-k8s.io/{key}")].as_str();
            assert_eq!(label("decision-key"), Some("web"));
            let count = slice["decisions"].as_array().expect("a list").len();
            (
                slice["metadata"]["name"].as_str().expect("a name"),
                label("decision-index").expect("an index"),
                count,
            )
        })
        .collect();
    assert_eq!(seen, [("web-0", "0", 100), ("web-1", "1", 100), ("web-2", "2", 50)]);
    let first = json!({"clusterProfileRef": {"name": "c000", "namespace": "fleet"}});
    assert_eq!(slices[0]["decisions"][0], first);
    assert_eq!(hub.make_right(DecisionApi::Sig, &all), 0, "a second round writes nothing");
    let mut fewer = numbered(250);
    fewer.remove(120);
    assert_eq!(hub.make_right(DecisionApi::Sig, &shown(vec![decision(placement("web"), fewer)])), 1);
}

#[test]
fn an_object_of_ocm_is_found_by_its_label_only_once_its_status_is_there() {
    let mut hub = Hub::default();
    let all = shown(vec![decision(placement("web"), numbered(2))]);
    let planned = hub.plan(DecisionApi::Ocm, &all);
    let label = "/metadata/labels/cluster.open-cluster-management.io~1placement";
    let kinds: Vec<bool> =
        planned.chains[0].iter().map(|write| write.object().pointer(label).is_some()).collect();
    assert_eq!(kinds, [false, true, true]);
    // After a crash at any write, the next round completes the plan.
    for most in 0..3 {
        let mut hub = Hub::default();
        hub.perform(&planned, most);
        hub.make_right(DecisionApi::Ocm, &all);
        assert_eq!(hub.make_right(DecisionApi::Ocm, &all), 0, "{most}");
        let object = &hub.of_group(decisions::OCM_GROUP)[0];
        assert_eq!(object.pointer(label), Some(&json!("web")));
        assert_eq!(object["status"]["decisions"][1], json!({"clusterName": "c001", "reason": ""}));
    }
    hub.make_right(DecisionApi::Ocm, &all);
    assert_eq!(hub.objects.keys().next().expect("an object").name.as_ref(), "web-decision-1");
}

#[test]
fn no_cluster_is_an_empty_list_and_no_placement_is_no_object() {
    let mut hub = Hub::default();
    hub.make_right(DecisionApi::Sig, &shown(vec![decision(placement("web"), numbered(3))]));
    hub.make_right(DecisionApi::Sig, &shown(vec![decision(placement("web"), Vec::new())]));
    assert_eq!(hub.of_group("multicluster.x-k8s.io")[0]["decisions"], json!([]));
    assert_eq!(hub.make_right(DecisionApi::Sig, &shown(Vec::new())), 1);
    assert!(hub.objects.is_empty());
}

#[test]
fn objects_of_others_stay_and_their_numbers_are_not_used() {
    let foreign = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "PlacementDecision",
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"berth.dev/fleet": "other"}},
        "decisions": [{"clusterProfileRef": {"name": "x"}}],
    });
    let mut hub = Hub::with(vec![foreign.clone()]);
    hub.make_right(DecisionApi::Sig, &shown(vec![decision(placement("web"), numbered(1))]));
    let names: Vec<String> = hub.objects.keys().map(|id| id.name.to_string()).collect();
    assert_eq!(names, ["web-0", "web-1"]);
    hub.make_right(DecisionApi::Sig, &shown(Vec::new()));
    assert_eq!(hub.of_group("multicluster.x-k8s.io"), [foreign]);
}

#[test]
fn what_others_change_about_an_object_is_put_right_and_what_they_add_stays() {
    let all = shown(vec![decision(placement("web"), numbered(2))]);
    let mut hub = Hub::default();
    hub.make_right(DecisionApi::Sig, &all);
    let object = hub.objects.values_mut().next().expect("an object");
    object["metadata"]["labels"]["team"] = json!("shop");
    object["decisions"][0]["clusterProfileRef"]["namespace"] = json!("elsewhere");
    assert_eq!(hub.make_right(DecisionApi::Sig, &all), 1);
    let object = hub.objects.values().next().expect("an object");
    assert_eq!(object["metadata"]["labels"]["team"], "shop");
    assert_eq!(object["decisions"][0]["clusterProfileRef"]["namespace"], "fleet");
}

#[test]
fn a_placement_that_the_hub_schedules_is_left_to_it() {
    let of_hub = |annotations: Json| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
        })
    };
    let all = shown(vec![decision(placement("web"), numbered(2))]);
    let mut hub = Hub::with(vec![of_hub(json!({}))]);
    let planned = hub.plan(DecisionApi::Ocm, &all);
    assert!(planned.chains.is_empty() && planned.notes[0].contains("has a Placement `shop/web` of its own"));
    hub = Hub::with(vec![of_hub(
        json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}),
    )]);
    assert_eq!(hub.make_right(DecisionApi::Ocm, &all), 3);
}

#[test]
fn one_namespace_for_all_has_the_placements_namespaces_in_their_keys() {
    let fleet = Key::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement", "", "web");
    let federated = Key::new("types.kubefed.io", "FederatedDeployment", "shop", "web");
    let all = shown(vec![
        decision(placement("web"), numbered(1)),
        decision(fleet, numbered(1)),
        decision(federated, numbered(1)),
    ]);
    let together = HubPlaces { decisions: Some("argocd".to_owned()), ..place() };
    let planned = decisions::plan(DecisionApi::Sig, &all, decisions::LiveDecisions::default(), &together);
    let names: Vec<&str> = planned
        .chains
        .iter()
        .map(|chain| chain[0].object()["metadata"]["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["shop.web-0", "web-0"]);
    let apart = decisions::plan(DecisionApi::Sig, &all, decisions::LiveDecisions::default(), &place());
    let places: Vec<&Json> =
        apart.chains.iter().map(|chain| &chain[0].object()["metadata"]["namespace"]).collect();
    assert_eq!(places, ["fleet", "shop"]);
}

#[test]
fn of_two_placements_with_one_name_the_one_that_is_there_stays() {
    let old = Key::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement", "", "web");
    let new = Key::new("placement.kubefleet.dev", "ClusterPlacementPolicy", "", "web");
    let mut hub = Hub::default();
    hub.make_right(DecisionApi::Sig, &shown(vec![decision(old.clone(), numbered(2))]));
    let planned =
        hub.plan(DecisionApi::Sig, &shown(vec![decision(old, numbered(2)), decision(new, numbered(3))]));
    assert!(planned.chains.is_empty(), "{:?}", planned.chains);
    assert!(planned.notes[0].starts_with("ClusterPlacementPolicy web: another placement's decisions"));
}

#[test]
fn groups_have_slices_of_their_own() {
    let group = |index: usize, name: &str| Some(Group { index, name: name.to_owned() });
    let mut all = numbered(4);
    for (index, pick) in all.iter_mut().enumerate() {
        pick.group = if index < 2 { group(0, "canary") } else { group(1, "") };
    }
    let mut hub = Hub::default();
    hub.make_right(DecisionApi::Ocm, &shown(vec![decision(placement("web"), all.clone())]));
    let labels: Vec<Json> = hub
        .of_group(decisions::OCM_GROUP)
        .iter()
        .map(|object| {
            object["metadata"]["labels"]["cluster.open-cluster-management.io/decision-group-name"].clone()
        })
        .collect();
    assert_eq!(labels, ["canary", ""]);
    all[1].group = group(1, "");
    let planned = hub.plan(DecisionApi::Ocm, &shown(vec![decision(placement("web"), all)]));
    let statuses: Vec<usize> = planned.chains[0]
        .iter()
        .map(|write| write.object()["status"]["decisions"].as_array().expect("a list").len())
        .collect();
    assert_eq!(statuses, [3, 1], "the slice that gains is written first");
}

fn fleet_of(claims: &[(&str, &str)]) -> HubContent {
    let claims = claims.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let cluster = Cluster { name: "turin".into(), claims, ..Cluster::default() };
    HubContent {
        clusters: [("turin".to_owned(), cluster.into())].into_iter().collect(),
        ..HubContent::default()
    }
}

fn profile_of(shown: &HubContent, before: &[Json], now: &str) -> Planned {
    let live = profiles::LiveProfiles { profiles: before, namespace: None };
    profiles::plan(shown, live, &place(), &Default::default(), now.parse().expect("a time"))
}

#[test]
fn a_profile_shows_the_members_report_and_is_written_again_only_for_news() {
    let mut shown = fleet_of(&[("location", "eu"), ("long", &"x".repeat(1025))]);
    let mut hub = Hub::default();
    let planned = profile_of(&shown, &[], NOW);
    assert!(planned.notes[0].contains("the property `long` is longer"), "{:?}", planned.notes);
    hub.perform(&planned, usize::MAX);
    let live = hub.of_group("multicluster.x-k8s.io");
    assert_eq!(live[0]["spec"], json!({"clusterManager": {"name": "berth"}, "displayName": "turin"}));
    assert_eq!(live[0]["metadata"]["labels"]["x-k8s.io/cluster-manager"], "berth");
    let property = json!({"name": "location", "value": "eu", "lastObservedTime": NOW});
    assert_eq!(live[0]["status"]["properties"], json!([property]));
    assert_eq!(live[0]["status"]["conditions"][1]["reason"], "NoReport");
    assert_eq!(profile_of(&shown, &live, "2026-11-01T13:00:00Z").chains, Vec::<Vec<ObjectWrite>>::new());
    let claims = BTreeMap::from([("location".to_owned(), "eu-2".to_owned())]);
    let status = |silent: Option<Timestamp>| ClusterStatus {
        reported: NOW.parse().ok(),
        applied: Some(Applied::default()),
        claims: claims.clone(),
        silent,
        ..ClusterStatus::default()
    };
    shown.statuses.insert("turin".to_owned(), status(None).into());
    let waiting = ["turin".to_owned()].into();
    let held = profiles::LiveProfiles { profiles: &live, namespace: None };
    let held = profiles::plan(&shown, held, &place(), &waiting, NOW.parse().expect("a time"));
    assert!(held.chains.is_empty(), "a status that was written a moment ago waits");
    hub.perform(&profile_of(&shown, &live, NOW), usize::MAX);
    let live = hub.of_group("multicluster.x-k8s.io");
    let words = |live: &Json| {
        live["status"]["conditions"]
            .as_array()
            .expect("conditions")
            .iter()
            .map(|one| {
                format!("{}={}", one["type"].as_str().unwrap_or(""), one["status"].as_str().unwrap_or(""))
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&live[0]), ["ControlPlaneHealthy=True", "Joined=True"]);
    assert_eq!(live[0]["status"]["properties"][0]["value"], "eu-2");
    shown.statuses.insert("turin".to_owned(), status(NOW.parse().ok()).into());
    hub.perform(&profile_of(&shown, &live, NOW), usize::MAX);
    assert_eq!(
        words(&hub.of_group("multicluster.x-k8s.io")[0]),
        ["ControlPlaneHealthy=Unknown", "Joined=False"]
    );
}

#[test]
fn profiles_of_other_managers_stay_and_those_of_clusters_that_left_go() {
    let of = |manager: &str, name: &str, fleet: &str| {
        json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": name, "namespace": "fleet", "labels": {"berth.dev/fleet": fleet}},
            "spec": {"clusterManager": {"name": manager}},
        })
    };
    let live = [of("ocm", "turin", ""), of("berth", "oslo", "demo"), of("berth", "rome", "other")];
    let planned = profile_of(&fleet_of(&[]), &live, NOW);
    assert_eq!(planned.chains, [vec![ObjectWrite::Delete(live[1].clone())]]);
    assert!(planned.notes[0].contains("of another manager"), "{:?}", planned.notes);
}

#[test]
fn the_namespace_is_made_and_labelled_with_the_set() {
    let place = HubPlaces { cluster_set: Some("eu".to_owned()), ..place() };
    let plan = |namespace: Option<&Json>| {
        profiles::plan_namespace(profiles::LiveProfiles { profiles: &[], namespace }, &place).chains
    };
    let chains = plan(None);
    let made = chains[0][0].object();
    assert_eq!(made["metadata"]["labels"]["multicluster.x-k8s.io/clusterset"], "eu");
    assert!(plan(Some(made)).is_empty());
    let bare = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet"}});
    assert!(matches!(plan(Some(&bare))[0][0], ObjectWrite::Replace(_)));
}
