//! ManagedCluster → cluster. As with a hub's controllers, the condition of an unavailable cluster gives it
//! a taint.
//!
//! A cluster with a missing or empty set label belongs to the set `default`. Scores come from
//! AddOnPlacementScores in the cluster's namespace. Also a new member → its ManagedCluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::cel_view;
use super::fields::{moment, open_named, open_namespaced, taint_key};
use super::kinds::CLUSTER;
use super::sets::{DEFAULT_SET, SET_LABEL};
use crate::dialects::{ClusterKind, Document, NewCluster, clusters};
use berth_base::diag::Diagnostic;
use berth_base::model::cluster::{AddOnScore, Readiness, Report};
use berth_base::model::selector::Labels;
use berth_base::model::status::TaintName;
use berth_base::model::{Cluster, ClusterStatus, Effect, Map, Quantity, Shared, Taint, Timestamp};
use berth_base::yaml::node::Value;
use berth_base::yaml::{Fields, Scope};

const EFFECTS: [(&str, Effect); 3] =
    [("NoSelect", Effect::Refuse), ("PreferNoSelect", Effect::Prefer), ("NoSelectIfNew", Effect::RefuseNew)];

/// The words for effects in taints and tolerations.
pub(super) const EFFECT_WORDS: [&str; 3] = [EFFECTS[0].0, EFFECTS[1].0, EFFECTS[2].0];

const AVAILABLE: &str = "ManagedClusterConditionAvailable";

/// The taint of a cluster whose agent reports that its API server does not answer.
const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
/// The taint of a cluster whose lease is overdue.
const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";

pub(super) fn read(scope: &Scope, document: &Document) -> Option<Cluster> {
    let root = document.open();
    let (mut fields, metadata) = open_named(scope, &root)?;
    let mut cluster = Cluster {
        name: metadata.name.into(),
        labels: metadata.labels,
        leaving: metadata.deleting,
        applier: clusters::read_applier(scope, &root),
        origins: vec![document.at.clone()],
        taints_of_silence: vec![taint(UNREACHABLE, "", EFFECTS[0], None)],
        ..Cluster::default()
    };
    if cluster.labels.get(SET_LABEL).is_none_or(String::is_empty) {
        cluster.labels.insert(SET_LABEL.to_owned(), DEFAULT_SET.to_owned());
    }
    if !metadata.annotations.is_empty() {
        let annotations = metadata.annotations.into_iter().map(|(key, text)| (key, text.into())).collect();
        cluster.details.insert("metadata.annotations".to_owned(), serde_json::Value::Object(annotations));
    }
    if let Some(mut spec) = fields.fields("spec") {
        for key in ["hubAcceptsClient", "leaseDurationSeconds", "managedClusterClientConfigs"] {
            cel_view::keep(&mut cluster, "spec", key, spec.node(key));
        }
        spec.bool("hubAcceptsClient");
        spec.int("leaseDurationSeconds");
        check_clients(&mut spec);
        cluster.taints = spec.each("taints").into_iter().filter_map(read_taint).collect();
        spec.finish();
    }
    if let Some(status) = fields.fields("status") {
        read_status(status, &mut cluster);
    }
    fields.finish();
    Some(cluster)
}

fn check_clients(spec: &mut Fields<'_>) {
    for mut client in spec.each("managedClusterClientConfigs") {
        if client.required_str("url").is_some_and(|url| !url.starts_with("https://")) {
            client.error_at("url", format!("{} must begin with https://", client.path_of("url")));
        }
        client.str("caBundle");
        client.finish();
    }
}

fn read_taint(mut fields: Fields<'_>) -> Option<Taint> {
    let key = fields.required_str("key");
    let key = key.filter(|key| taint_key(&fields, key));
    let value = fields.str("value").unwrap_or_default();
    check_length(&fields, "value", value, 1024);
    fields.require("effect");
    let word = fields.choice("effect", &EFFECT_WORDS);
    fields.accept(&["timeAdded"]);
    let since = moment(&mut fields, "timeAdded");
    if word == Some("PreferNoSelect") {
        let message =
            format!("{} is `PreferNoSelect`, which has no effect on placement", fields.path_of("effect"));
        let at = fields.scope().pos(fields.place_of("effect"));
        let warning = Diagnostic::warning(at, message);
        fields.scope().report(warning.hint(
            "use `NoSelect` to keep work away, or `NoSelectIfNew` to keep \
                new work away",
        ));
    }
    fields.finish();
    let effect = EFFECTS.iter().find(|(known, _)| Some(*known) == word)?;
    Some(taint(key?, value, *effect, since))
}

fn taint(key: &str, value: &str, (word, effect): (&str, Effect), since: Option<Timestamp>) -> Taint {
    Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect,
        effect_word: word.to_owned(),
        since,
        frozen: None,
    }
}

/// Reads only the parts that a placement may use; the rest of a status belongs to the hub.
fn read_status(mut status: Fields<'_>, cluster: &mut Cluster) {
    cluster.allocatable = quantities(&mut status, "allocatable");
    cluster.capacity = quantities(&mut status, "capacity");
    cluster.claims = claims(&mut status);
    for key in ["version", "conditions", cel_view::CLAIMS] {
        cel_view::keep(cluster, "status", key, status.node(key));
    }
    for mut condition in status.each("conditions") {
        let kind = condition.str("type");
        let Some(value) = condition.str("status").filter(|_| kind == Some(AVAILABLE)) else { continue };
        let since = moment(&mut condition, "lastTransitionTime");
        let mut report = Report { ready: Some(value == "True"), ..Report::default() };
        let keys = [("False", UNAVAILABLE), ("Unknown", UNREACHABLE)];
        if let Some((_, key)) = keys.into_iter().find(|(word, _)| *word == value) {
            report.taints.push(taint(key, "", EFFECTS[0], since));
        }
        cluster.standing = Readiness::Reported(report);
    }
    // A taint that the file already has counts from the moment in the file.
    if let Readiness::Reported(report) = &mut cluster.standing {
        let known =
            |taint: &Taint| cluster.taints.iter().any(|known| TaintName::of(known) == TaintName::of(taint));
        report.taints.retain(|taint| !known(taint));
        cluster.taints.extend(report.taints.iter().cloned());
    }
}

fn quantities(status: &mut Fields<'_>, key: &'static str) -> BTreeMap<String, String> {
    let Some(fields) = status.fields(key) else { return BTreeMap::new() };
    let scope = fields.scope();
    let mut amounts = BTreeMap::new();
    for entry in fields.entries() {
        let text = match &entry.value.value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => entry.value.what().to_owned(),
        };
        match text.parse::<Quantity>() {
            Ok(_) => {
                amounts.insert(entry.key.clone(), text);
            }
            Err(fault) => {
                let message = format!("{} is `{text}`: {fault}", fields.path_of(&entry.key));
                scope.error(entry.value.at, message);
            }
        }
    }
    amounts
}

/// Reads claims; of a repeated claim the last one counts.
fn claims(status: &mut Fields<'_>) -> Labels {
    let mut claims = Labels::new();
    for mut claim in status.each("clusterClaims") {
        let (name, value) = (claim.required_str("name"), claim.required_str("value"));
        check_length(&claim, "name", name.unwrap_or_default(), 253);
        check_length(&claim, "value", value.unwrap_or_default(), 1024);
        claim.finish();
        if let (Some(name), Some(value)) = (name, value) {
            claims.insert(name.to_owned(), value.to_owned());
        }
    }
    claims
}

fn check_length(fields: &Fields<'_>, key: &str, text: &str, longest: usize) {
    if text.chars().count() > longest {
        fields.error_at(key, format!("{} has more than {longest} characters", fields.path_of(key)));
    }
}

pub(super) fn read_addon_score(
    scope: &Scope,
    document: &Document,
    statuses: &mut Map<String, Shared<ClusterStatus>>,
) {
    let root = document.open();
    let Some((mut fields, metadata)) = open_namespaced(scope, &root) else { return };
    let status = statuses.or_default(&metadata.namespace);
    let mut met = BTreeSet::new();
    if let Some(mut fields) = fields.fields("status") {
        let valid_until = moment(&mut fields, "validUntil");
        for (index, mut score) in fields.each("scores").into_iter().enumerate() {
            let name = score.required_str("name");
            if let Some(name) = name.filter(|name| !met.insert(*name)) {
                score.error_at("name", format!("{} repeats `{name}`", score.path_of("name")));
            }
            score.require("value");
            let value = score.int_in("value", -100..=100);
            score.finish();
            if let (Some(name), Some(value)) = (name, value) {
                let named = (metadata.name.clone(), name.to_owned());
                status.scores.insert(named, AddOnScore { value, index, valid_until });
            }
        }
        fields.accept(&["conditions"]);
        fields.finish();
    }
    if met.is_empty() {
        status.scores.insert((metadata.name, String::new()), AddOnScore::default());
    }
    fields.finish();
}

/// The marks that a ManagedCluster may have.
pub(super) const CLUSTER_KIND: ClusterKind = ClusterKind {
    group: CLUSTER,
    kind: "ManagedCluster",
    effects: &EFFECT_WORDS,
    cordon: Some("NoSelectIfNew"),
    dated: true,
    in_default_set: true,
    needs_endpoint: false,
    document: new_cluster,
};

/// Makes the ManagedCluster of a member.
fn new_cluster(new: &NewCluster) -> Json {
    let mut document = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": new.name},
        "spec": {"hubAcceptsClient": true},
    });
    if let Some(endpoint) = &new.endpoint {
        document["spec"]["managedClusterClientConfigs"] = json!([{"url": endpoint}]);
    }
    if !new.labels.is_empty() {
        document["metadata"]["labels"] = json!(new.labels);
    }
    document
}
