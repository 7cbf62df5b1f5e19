//! Decisions as `berth decide -o json` prints them, and as `--previous` reads them.
//!
//! A printed placement names no API group; [`adopt`] finds the group in the fleet.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value as Json;

use super::decision::{read_status_word, sorted, status_word};
use berth_base::model::{Condition, Decision, Digest, Group, Key, Map, Pick, PickDetails, Refused};
use berth_base::packed::Packed;

/// Fields of a printed cluster other than scores.
const NOT_SCORES: [&str; 6] = ["name", "reason", "replicas", "group", "groupName", "state"];

/// The state of a pick that is not rolled out yet, in KubeFleet's word.
const PENDING: &str = "Scheduled";

/// Decisions, for programs.
#[derive(Debug, Serialize)]
pub struct DecisionList<'a> {
    /// In the order of their keys.
    placements: Vec<PlacementForm<'a>>,
}

#[derive(Debug, Serialize)]
struct PlacementForm<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    clusters: Vec<ClusterForm<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    leaving: Vec<ClusterForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<ConditionForm<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<RefusedForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Json>,
    source: &'a str,
}

/// A condition, as commands print it as JSON.
#[derive(Debug, Serialize)]
pub struct ConditionForm<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    status: &'static str,
    reason: &'a str,
    message: &'a str,
}

#[derive(Debug, Serialize)]
struct RefusedForm<'a> {
    reason: &'a str,
    clusters: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterForm<'a> {
    #[serde(flatten)]
    scores: BTreeMap<&'a str, i64>,
    name: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_name: Option<&'a str>,
}

impl<'a> DecisionList<'a> {
    pub fn of(decisions: impl IntoIterator<Item = &'a Decision>) -> DecisionList<'a> {
        DecisionList { placements: decisions.into_iter().map(PlacementForm::of).collect() }
    }
}

impl<'a> ConditionForm<'a> {
    pub fn of(condition: &'a Condition) -> ConditionForm<'a> {
        ConditionForm {
            kind: &condition.kind,
            status: status_word(condition.status),
            reason: &condition.reason,
            message: &condition.message,
        }
    }
}

impl<'a> PlacementForm<'a> {
    fn of(decision: &'a Decision) -> PlacementForm<'a> {
        let key = &decision.key;
        let leaving = decision.picks.iter().filter(|pick| pick.leaving);
        let refused = |one: &'a Refused| RefusedForm { reason: &one.reason, clusters: one.clusters };
        PlacementForm {
            kind: &key.kind,
            namespace: &key.namespace,
            name: &key.name,
            clusters: decision.picked().map(ClusterForm::of).collect(),
            leaving: leaving.map(ClusterForm::of).collect(),
            condition: decision.condition.as_ref().map(ConditionForm::of),
            refused: decision.refused.iter().map(refused).collect(),
            digest: decision.digest,
            policy: decision.policy.as_ref().map(Packed::to_json),
            source: &decision.source,
        }
    }
}

impl<'a> ClusterForm<'a> {
    fn of(pick: &'a Pick) -> ClusterForm<'a> {
        let group = pick.group.as_ref();
        ClusterForm {
            scores: pick.scores.iter().map(|(name, score)| (name.as_str(), *score)).collect(),
            name: &pick.cluster,
            reason: &pick.reason,
            replicas: pick.replicas,
            state: pick.pending.then_some(PENDING),
            group: group.map(|group| group.index),
            group_name: group.map(|group| group.name.as_str()).filter(|name| !name.is_empty()),
        }
    }
}

/// Reads the output of a [`DecisionList`], or less: only kind, name and clusters are required.
pub fn decisions_from_json(value: &Json) -> Result<Map<Key, Decision>, String> {
    let Some(list) = value.get("placements").and_then(Json::as_array) else {
        return Err("`placements` must be a list".to_owned());
    };
    let mut decisions = Map::new();
    for (index, item) in list.iter().enumerate() {
        let decision = read_placement(item).map_err(|error| format!("placements[{index}]: {error}"))?;
        let key = decision.key.clone();
        if decisions.insert(key.clone(), decision).is_some() {
            return Err(format!("placements[{index}]: {key} is listed twice"));
        }
    }
    Ok(decisions)
}

fn read_placement(item: &Json) -> Result<Decision, String> {
    let mut picks = read_clusters(item, "clusters")?;
    let leaving = read_clusters(item, "leaving")?;
    picks.extend(leaving.into_iter().map(|pick| pick.with(|details| details.leaving = true)));
    let digest = match text(item, "digest")? {
        "" => None,
        text => Some(text.parse::<Digest>().map_err(|()| format!("`{text}` is no digest"))?),
    };
    Ok(Decision {
        picks: sorted(picks)?.into(),
        refused: read_refused(item)?,
        condition: match item.get("condition") {
            None | Some(Json::Null) => None,
            Some(condition) => Some(Condition {
                kind: required(condition, "type")?.to_owned(),
                status: read_status_word(text(condition, "status")?)?,
                reason: text(condition, "reason")?.to_owned(),
                message: text(condition, "message")?.to_owned(),
            }),
        },
        digest,
        policy: item.get("policy").map(Packed::of),
        ..Decision::new(
            Key::new("", required(item, "kind")?, text(item, "namespace")?, required(item, "name")?),
            text(item, "source")?,
        )
    })
}

fn read_clusters(item: &Json, key: &str) -> Result<Vec<Pick>, String> {
    let clusters = match item.get(key) {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(Json::Array(list)) => list,
        Some(_) => return Err(format!("{key} must be a list")),
    };
    let read = |(index, cluster)| read_cluster(cluster).map_err(|error| format!("{key}[{index}]: {error}"));
    clusters.iter().enumerate().map(read).collect()
}

fn read_refused(item: &Json) -> Result<Vec<Refused>, String> {
    let list = item.get("refused").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let one = |refused: &Json| {
        let clusters = refused.get("clusters").and_then(Json::as_u64).unwrap_or_default();
        let clusters = usize::try_from(clusters).map_err(|_| "refused: too many clusters".to_owned())?;
        Ok(Refused { reason: text(refused, "reason")?.to_owned(), clusters })
    };
    list.iter().map(one).collect()
}

fn read_cluster(item: &Json) -> Result<Pick, String> {
    let number = |key: &str| match item.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or(format!("{key} must be a whole number")),
    };
    let group = match number("group")? {
        None => None,
        Some(index) => Some(Group {
            index: usize::try_from(index).map_err(|_| "group must not be negative".to_owned())?,
            name: text(item, "groupName")?.to_owned(),
        }),
    };
    let fields = item.as_object().into_iter().flatten();
    let scores = fields
        .filter(|(key, _)| !NOT_SCORES.contains(&key.as_str()))
        .filter_map(|(key, value)| value.as_i64().map(|score| (key.clone(), score)));
    let details = PickDetails {
        reason: text(item, "reason")?.to_owned(),
        replicas: number("replicas")?,
        scores: scores.collect(),
        group,
        pending: text(item, "state")? == PENDING,
        leaving: false,
        held: false,
    };
    Ok(Pick::new(required(item, "name")?, details))
}

fn text<'a>(item: &'a Json, key: &str) -> Result<&'a str, String> {
    match item.get(key) {
        None | Some(Json::Null) => Ok(""),
        Some(value) => value.as_str().ok_or(format!("{key} must be a string")),
    }
}

fn required<'a>(item: &'a Json, key: &str) -> Result<&'a str, String> {
    match text(item, key)? {
        "" => Err(format!("{key} is required")),
        text => Ok(text),
    }
}

/// Gives printed decisions the API groups of the fleet's placements with the same kind, namespace and name.
pub fn adopt<'k>(
    previous: Map<Key, Decision>,
    fleet_keys: impl IntoIterator<Item = &'k Key>,
) -> Map<Key, Decision> {
    let known: BTreeSet<&Key> = fleet_keys.into_iter().collect();
    let adopted = |(key, mut decision): (Key, Decision)| {
        // Keys order by kind, namespace and name before group, so the empty group comes first.
        let found = known.range::<&Key, _>(&key..).next().filter(|found| {
            key.group.is_empty()
                && (&found.kind, &found.namespace, &found.name) == (&key.kind, &key.namespace, &key.name)
        });
        decision.key = found.map_or_else(|| key.clone(), |found| (*found).clone());
        (decision.key.clone(), decision)
    };
    previous.into_iter().map(adopted).collect()
}
