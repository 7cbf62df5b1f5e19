//! A cluster as CEL expressions see it: a ManagedCluster, whatever kind describes it.
//!
//! As in OCM, quantities are texts in their canonical form, and empty fields are left out, except
//! `status.conditions`, which is null. `scores()` returns an add-on's measurements in the order of its list,
//! including expired ones.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use berth_base::model::cluster::{AddOnScore, Cluster, ClusterView, Method, Taint};
use berth_base::model::quantity;
use berth_base::model::selector::Labels;
use berth_base::yaml::Node;

pub(super) const MANAGED_CLUSTER: ClusterView =
    ClusterView { name: "managedCluster", shown, methods: METHODS };

/// The field of a status that holds claims.
pub(super) const CLAIMS: &str = "clusterClaims";

const METHODS: &[(&str, Method)] = &[("scores", scores)];

/// Keeps a field that only expressions read.
pub(super) fn keep(cluster: &mut Cluster, part: &str, key: &str, node: Option<&Node>) {
    if let Some(node) = node {
        cluster.details.insert(format!("{part}.{key}"), node.to_json());
    }
}

fn shown(cluster: &Cluster) -> Json {
    let detail = |path: &str| cluster.details.get(path).cloned();
    let mut metadata = Map::from_iter([("name".to_owned(), json!(cluster.name))]);
    let put = |map: &mut Map<String, Json>, key: &str, value: Option<Json>| {
        map.extend(value.map(|value| (key.to_owned(), value)));
    };
    put(&mut metadata, "labels", (!cluster.labels.is_empty()).then(|| json!(cluster.labels)));
    put(&mut metadata, "annotations", detail("metadata.annotations"));

    let mut spec = Map::new();
    put(&mut spec, "managedClusterClientConfigs", detail("spec.managedClusterClientConfigs"));
    put(&mut spec, "hubAcceptsClient", detail("spec.hubAcceptsClient").or(Some(json!(false))));
    put(&mut spec, "leaseDurationSeconds", detail("spec.leaseDurationSeconds").or(Some(json!(60))));
    let taints: Vec<Json> = cluster.taints.iter().map(taint).collect();
    put(&mut spec, "taints", (!taints.is_empty()).then(|| json!(taints)));

    let mut status = Map::new();
    put(&mut status, "conditions", detail("status.conditions").or(Some(Json::Null)));
    put(&mut status, "version", detail("status.version").or(Some(json!({}))));
    for (key, amounts) in [("capacity", &cluster.capacity), ("allocatable", &cluster.allocatable)] {
        put(&mut status, key, (!amounts.is_empty()).then(|| canonical(amounts)));
    }
    let claims = claims(cluster);
    put(&mut status, CLAIMS, (!claims.is_empty()).then(|| json!(claims)));
    json!({"metadata": metadata, "spec": spec, "status": status})
}

/// Returns quantities in a server's form, whatever their original form: `4000m` is `4`.
fn canonical(amounts: &BTreeMap<String, String>) -> Json {
    amounts.iter().map(|(name, text)| (name.clone(), Json::from(quantity::canonical(text)))).collect()
}

/// Returns the list as written, with its order and repeated names, unless a member reported others since.
fn claims(cluster: &Cluster) -> Vec<Json> {
    let written = cluster.details.get(&format!("status.{CLAIMS}")).and_then(Json::as_array);
    let text = |claim: &Json, key: &str| claim.get(key).and_then(Json::as_str).map(str::to_owned);
    let pair = |claim: &Json| Some((text(claim, "name")?, text(claim, "value")?));
    match written {
        Some(written) if written.iter().filter_map(pair).collect::<Labels>() == cluster.claims => {
            written.clone()
        }
        _ => cluster.claims.iter().map(|(name, value)| json!({"name": name, "value": value})).collect(),
    }
}

fn taint(taint: &Taint) -> Json {
    let mut shown = json!({"key": taint.key, "effect": taint.effect_word, "timeAdded": Json::Null});
    if !taint.value.is_empty() {
        shown["value"] = json!(taint.value);
    }
    if let Some(since) = taint.since {
        shown["timeAdded"] = json!(since.to_string());
    }
    shown
}

/// Returns all scores of one resource, possibly none; `None` (an error) if the cluster has no such resource.
fn scores(cluster: &Cluster, resource: &str) -> Option<Json> {
    let mut of_resource: Vec<_> = cluster.scores.iter().filter(|((of, _), _)| of == resource).collect();
    if of_resource.is_empty() {
        return None;
    }
    of_resource.retain(|((_, name), _)| !name.is_empty());
    of_resource.sort_by_key(|(_, score)| score.index);
    let shown =
        |((_, name), score): (&(String, String), &AddOnScore)| json!({"name": name, "value": score.value});
    Some(of_resource.into_iter().map(shown).collect())
}
