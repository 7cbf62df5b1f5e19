//! Decisions as `berth decide -o json` prints them, and as `--previous` reads them.
//!
//! A printed placement names no API group; [`adopt`] finds the group in the fleet.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::decision::{read_status_word, sorted, status_word};
use berth_base::model::{Condition, Decision, Digest, Group, Key, Map, Pick, PickDetails, Refused};
use berth_base::packed::Packed;

/// Fields of a printed cluster other than scores.
const NOT_SCORES: [&str; 6] = ["name", "reason", "replicas", "group", "groupName", "state"];

/// The state of a pick that is not rolled out yet, in KubeFleet's word.
const PENDING: &str = "Scheduled";

/// Returns all decisions as JSON, in the order of their keys.
pub fn decisions_json<'a>(decisions: impl IntoIterator<Item = &'a Decision>) -> Json {
    json!({ "placements": decisions.into_iter().map(placement).collect::<Vec<_>>() })
}

fn placement(decision: &Decision) -> Json {
    let key = &decision.key;
    let mut out = serde_json::Map::new();
    let mut put = |name: &str, value: Json| out.insert(name.to_owned(), value);
    put("kind", json!(&*key.kind));
    put("namespace", json!(&*key.namespace));
    put("name", json!(&*key.name));
    put("clusters", decision.picked().map(cluster).collect());
    let leaving: Vec<Json> = decision.picks.iter().filter(|pick| pick.leaving).map(cluster).collect();
    if !leaving.is_empty() {
        put("leaving", leaving.into());
    }
    if let Some(condition) = &decision.condition {
        put(
            "condition",
            json!({
                "type": condition.kind,
                "status": status_word(condition.status),
                "reason": condition.reason,
                "message": condition.message,
            }),
        );
    }
    if !decision.refused.is_empty() {
        let refused = decision.refused.iter();
        put(
            "refused",
            refused
                .map(|refused| json!({ "reason": refused.reason, "clusters": refused.clusters }))
                .collect(),
        );
    }
    if let Some(digest) = decision.digest {
        put("digest", json!(digest.to_string()));
    }
    if let Some(policy) = &decision.policy {
        put("policy", policy.to_json());
    }
    put("source", json!(decision.source));
    Json::Object(out)
}

fn cluster(pick: &Pick) -> Json {
    let mut out = serde_json::Map::new();
    for (name, score) in &pick.scores {
        out.insert(name.clone(), json!(score));
    }
    out.insert("name".to_owned(), json!(pick.cluster));
    out.insert("reason".to_owned(), json!(pick.reason));
    if let Some(replicas) = pick.replicas {
        out.insert("replicas".to_owned(), json!(replicas));
    }
    if pick.pending {
        out.insert("state".to_owned(), json!(PENDING));
    }
    if let Some(group) = &pick.group {
        out.insert("group".to_owned(), json!(group.index));
        if !group.name.is_empty() {
            out.insert("groupName".to_owned(), json!(group.name));
        }
    }
    Json::Object(out)
}

/// Reads the output of [`decisions_json`]. Only kind, name and clusters are required.
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
