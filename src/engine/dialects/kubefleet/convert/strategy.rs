//! `strategy` → `syncStrategy`, and a RolloutPolicy for the pace of changes.

use serde_json::{Map, Value as Json, json};

use super::Work;
use berth_base::model::{API_VERSION, Key};

pub(super) fn convert(
    key: &Key,
    spec: &Json,
    cluster_scoped: bool,
    new: &mut Map<String, Json>,
    work: &mut Work,
) {
    let strategy = &spec["strategy"];
    if let Some(limit) = spec["revisionHistoryLimit"].as_i64() {
        new.insert("resourceRevisionHistoryLimit".to_owned(), json!(limit.clamp(1, 20)));
    }
    if strategy["type"] == "External" {
        work.refuse(
            "its strategy is External: staged update runs name placements of the old API only; finish them, or write \
             a RolloutPolicy with stages",
        );
    }
    if strategy.get("reportBackStrategy").is_some() {
        work.note("reportBackStrategy is left out: members report to the repository");
    }
    new.insert("syncStrategy".to_owned(), Json::Object(sync_strategy(strategy, cluster_scoped, work)));
    work.converted.rollout_policy = rollout_policy(key, strategy);
    if work.converted.rollout_policy.is_some() {
        work.note("rollingUpdate has no counterpart and becomes a RolloutPolicy");
    }
}

fn sync_strategy(strategy: &Json, cluster_scoped: bool, work: &mut Work) -> Map<String, Json> {
    let apply = &strategy["applyStrategy"];
    let mut fields = Map::new();
    let mut put = |key: &str, value: Json| drop(fields.insert(key.to_owned(), value));
    match apply["type"].as_str() {
        Some("ReportDiff") => {
            work.refuse("its applyStrategy is ReportDiff, and a policy always applies; keep the placement");
        }
        Some("ServerSideApply") => {
            put("applyMethod", json!("ServerSideApply"));
            if apply.pointer("/serverSideApplyConfig/force") == Some(&json!(true)) {
                put("serverSideApplyOptions", json!({"forceConflicts": true}));
            }
        }
        _ => {}
    }
    // The default is another one here.
    let exists = match apply["whenToTakeOver"].as_str() {
        Some("IfNoDiff") => "TakeOverIfNoDiff",
        Some("Never") => "ReportError",
        _ => "AlwaysTakeOver",
    };
    put("whenAlreadyExists", json!(exists));
    if let Some(option) = apply.get("comparisonOption").filter(|option| !option.is_null()) {
        put("comparisonOption", option.clone());
    }
    if apply["allowCoOwnership"] == true {
        put("whenOwnedByOthers", json!("ShareOwnership"));
    }
    if apply["whenToApply"] == "IfNotDrifted" {
        put("whenDrifted", json!("ReportError"));
    }
    if strategy.pointer("/deleteStrategy/propagationPolicy") == Some(&json!("Abandon")) {
        put("whenPlacementDeleted", json!("OrphanResources"));
    }
    if !cluster_scoped {
        // Objects of a namespace go only where it is.
        put("whenNamespaceDoesNotExist", json!("ReportError"));
    }
    fields
}

/// A pace that somebody asked for. The defaults, even written out, are nobody's wish.
fn rollout_policy(key: &Key, strategy: &Json) -> Option<Json> {
    let rolling = strategy.get("rollingUpdate").and_then(Json::as_object)?;
    let usual = [
        ("maxUnavailable", json!("25%")),
        ("maxSurge", json!("25%")),
        ("unavailablePeriodSeconds", json!(60)),
    ];
    let is_usual = |(field, value): (&String, &Json)| {
        usual.iter().any(|(known, default)| known == field && default == value)
    };
    if rolling.iter().all(is_usual) {
        return None;
    }
    let mut metadata = json!({"name": format!("{}-rolling-update", key.name)});
    // A policy of this workload's identity, which stays that of the placement.
    let mut workload = json!({"kind": &*key.kind, "name": &*key.name});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(&*key.namespace);
        workload["namespace"] = json!(&*key.namespace);
    }
    Some(json!({
        "apiVersion": API_VERSION,
        "kind": "RolloutPolicy",
        "metadata": metadata,
        "spec": {"workloads": [workload], "strategy": {"rollingUpdate": rolling}},
    }))
}
