//! `policy` → `clusterSelectors` and `tolerations`.

use serde_json::{Map, Value as Json, json};

use super::Work;
use crate::dialects::kubefleet::next::ALIAS;

const MOST_TERMS: usize = 5;
const MOST_IN_A_TERM: usize = 10;
const MOST_SELECTORS: usize = 10;
const MOST_TOLERATIONS: usize = 10;
const LARGEST: i64 = 999;

const REQUIRED: &str =
    "/affinity/clusterAffinity/requiredDuringSchedulingIgnoredDuringExecution/clusterSelectorTerms";
const PREFERRED: &str = "/affinity/clusterAffinity/preferredDuringSchedulingIgnoredDuringExecution";

/// Converts the policy of a placement. Returns fields of the new spec.
pub(super) fn convert(spec: &Json, work: &mut Work) -> Map<String, Json> {
    let policy = &spec["policy"];
    let mut fields = Map::new();
    let required = terms(policy, work);
    let selectors = match policy["placementType"].as_str() {
        Some("PickN") => pick_n(policy, required, work),
        Some("PickFixed") => pick_fixed(policy, work),
        _ => pick_all(required, work),
    };
    if let Some(selectors) = selectors {
        fields.insert("clusterSelectors".to_owned(), Json::Array(selectors));
    }
    let mut tolerations = policy["tolerations"].as_array().cloned().unwrap_or_default();
    if tolerations.len() > MOST_TOLERATIONS {
        let count = tolerations.len();
        work.refuse(format!("it has {count} tolerations, and a policy has at most {MOST_TOLERATIONS}"));
    }
    if policy["placementType"] == "PickFixed" {
        // Named clusters are picked whatever their taints.
        tolerations = vec![json!({"operator": "Exists"})];
    }
    if !tolerations.is_empty() {
        fields.insert("tolerations".to_owned(), Json::Array(tolerations));
    }
    fields
}

/// All that match, also where none does. More terms than one selector holds go into further ones.
fn pick_all(required: Vec<Json>, work: &mut Work) -> Option<Vec<Json>> {
    if required.is_empty() {
        return None;
    }
    let chunks = required.chunks(MOST_TERMS);
    let selectors: Vec<Json> =
        chunks.map(|terms| json!({"terms": terms, "count": "All", "minCount": 0})).collect();
    if selectors.len() > MOST_SELECTORS {
        work.refuse("it has more cluster selector terms than a policy may have");
    }
    Some(selectors)
}

fn pick_n(policy: &Json, required: Vec<Json>, work: &mut Work) -> Option<Vec<Json>> {
    let number = policy["numberOfClusters"].as_i64().unwrap_or_default();
    if !(1..=LARGEST).contains(&number) {
        work.refuse(format!("it picks {number} clusters, and a selector counts from 1 to {LARGEST}"));
    }
    if required.len() > MOST_TERMS {
        work.refuse(format!(
            "it has {} cluster selector terms, and a selector has at most {MOST_TERMS}",
            required.len()
        ));
    }
    let list = |node: Option<&Json>| node.and_then(Json::as_array).is_some_and(|list| !list.is_empty());
    let preferred = policy.pointer(PREFERRED);
    if list(preferred) || preferred.is_some_and(Json::is_object) {
        work.differs(
            "preferred affinity has no counterpart: of too many clusters, those with few nodes and much available CPU \
             and memory are picked",
        );
    } else {
        work.note(
            "a cluster that joins later is picked by few nodes and much available CPU and memory, then by name; those \
             that are picked stay",
        );
    }
    if list(policy.get("topologySpreadConstraints")) {
        work.differs(
            "topologySpreadConstraints have no counterpart: write one selector for each domain, with its count",
        );
    }
    let mut selector = json!({"count": number});
    if !required.is_empty() {
        selector["terms"] = Json::Array(required);
    }
    Some(vec![selector])
}

fn pick_fixed(policy: &Json, work: &mut Work) -> Option<Vec<Json>> {
    let names = policy["clusterNames"].as_array().cloned().unwrap_or_default();
    if names.is_empty() {
        work.refuse(
            "it picks clusters by name and names none, which changes nothing; a policy has no such form",
        );
    }
    let count = names.len();
    let alias = json!([{"key": ALIAS, "operator": "In", "values": names}]);
    Some(vec![json!({"terms": [{"matchLabelExpressions": alias}], "count": count})])
}

fn terms(policy: &Json, work: &mut Work) -> Vec<Json> {
    let terms = policy.pointer(REQUIRED).and_then(Json::as_array).cloned().unwrap_or_default();
    terms.iter().map(|old| term(old, work)).collect()
}

fn term(old: &Json, work: &mut Work) -> Json {
    let mut new = Map::new();
    let list = |pointer: &str| old.pointer(pointer).and_then(Json::as_array).cloned().unwrap_or_default();
    let labels =
        old.pointer("/labelSelector/matchLabels").and_then(Json::as_object).cloned().unwrap_or_default();
    let labels: Map<String, Json> = labels.into_iter().map(|(key, value)| (key, as_text(&value))).collect();
    let mut expressions = list("/labelSelector/matchExpressions");
    for expression in &mut expressions {
        if let Some(values) = expression.get_mut("values").and_then(Json::as_array_mut) {
            values.iter_mut().for_each(|value| *value = as_text(value));
        }
    }
    let property =
        |old: &Json| json!({"key": old["name"], "operator": old["operator"], "values": old["values"]});
    let properties: Vec<Json> = list("/propertySelector/matchExpressions").iter().map(property).collect();
    for (count, field) in [
        (labels.len(), "matchLabels"),
        (expressions.len(), "matchLabelExpressions"),
        (properties.len(), "matchClusterPropertyExpressions"),
    ] {
        if count > MOST_IN_A_TERM {
            work.refuse(format!("a term needs {count} {field}, and may have {MOST_IN_A_TERM}"));
        }
    }
    if !labels.is_empty() {
        new.insert("matchLabels".to_owned(), Json::Object(labels));
    }
    if !expressions.is_empty() {
        new.insert("matchLabelExpressions".to_owned(), Json::Array(expressions));
    }
    if !properties.is_empty() {
        new.insert("matchClusterPropertyExpressions".to_owned(), Json::Array(properties));
    }
    Json::Object(new)
}

/// A label's value, which documentation writes as a number at times.
fn as_text(value: &Json) -> Json {
    match value {
        Json::Number(number) => json!(number.to_string()),
        value => value.clone(),
    }
}
