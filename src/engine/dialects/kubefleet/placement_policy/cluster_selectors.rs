//! `clusterSelectors` and `tolerations` → the engine's policy.

use serde_json::Value as Json;

use crate::dialects::kubefleet::policy;
use crate::dialects::kubefleet::policy::{comparison, measure, picked_all};
use berth_base::diag::Diagnostic;
use berth_base::meta;
use berth_base::meta::names::is_label_key;
use berth_base::model::decision::{Condition, Outcome};
use berth_base::model::named::Named;
use berth_base::model::placement::{
    AS_WRITTEN, Choice, Ranking, Retention, ScoreRule, Scorer, Selection, Sorter, Wording,
};
use berth_base::model::selector::{Measure, Requirement, Selector, Term};
use berth_base::model::{Policy, PropertyRequirement};
use berth_base::packed::Packed;
use berth_base::text::counted;
use berth_base::yaml::fields::Fields;
use berth_base::yaml::node::Value;

pub const ALL: Wording = Named { name: "all ClusterProfiles", function: all };
pub const IN_TURN: Wording = Named { name: "clusterSelectors in turn", function: in_turn };

const MOST: usize = 10;
const MOST_TERMS: usize = 5;
const MOST_IN_A_TERM: usize = 10;
const LARGEST: i64 = 999;

/// Reads the clusters that a policy selects. `needed` is the namespace that a cluster must have.
pub fn policy(spec: &mut Fields<'_>, needed: Option<&str>) -> Policy {
    let text = spec.node("clusterSelectors").map_or(Json::Null, |node| node.to_json());
    let tolerations = policy::tolerations(spec, 10);
    let choices = spec.node("clusterSelectors").map(|_| choices(spec));
    // Without selectors, all clusters that pass are selected.
    let selection = choices.map_or(Selection::All, Selection::InTurn);
    let (condition, retention) = match selection {
        Selection::All => (ALL, Retention::SamePolicy(AS_WRITTEN)),
        _ => (IN_TURN, Retention::None),
    };
    Policy {
        selection,
        scorers: scorers(),
        ranking: Ranking::SumThenName,
        retention,
        condition,
        text: Packed::of(&text),
        ..policy::everywhere(tolerations, needed)
    }
}

fn choices(spec: &mut Fields<'_>) -> Vec<Choice> {
    let count = spec.list("clusterSelectors").map_or(1, <[_]>::len);
    if count == 0 || count > MOST {
        let message =
            format!("{} must have from 1 to {MOST} entries, not {count}", spec.path_of("clusterSelectors"));
        spec.error_at("clusterSelectors", message);
    }
    spec.each("clusterSelectors").into_iter().enumerate().map(choice).collect()
}

fn choice((index, mut fields): (usize, Fields<'_>)) -> Choice {
    at_most(&mut fields, "terms", MOST_TERMS);
    let terms = fields.each("terms").into_iter().map(term).collect();
    let count = count(&mut fields);
    let least = fields.int_in("minCount", 0..=LARGEST).and_then(|least| usize::try_from(least).ok());
    if let (Some(count), Some(least)) = (count, least)
        && least > count
    {
        let message =
            format!("{} is {least}, but must not be above count, {count}", fields.path_of("minCount"));
        fields.error_at("minCount", message);
    }
    // berth creates no clusters, so each choice keeps searching.
    fields.choice("whenUnfulfilled", &["AddClusterClaim", "RequestCluster", "KeepSearching"]);
    fields.finish();
    let least = least.or(count).unwrap_or(1);
    Choice { name: format!("clusterSelectors[{index}]"), terms, count, least }
}

/// Reads a number or `All`; the default is one.
fn count(fields: &mut Fields<'_>) -> Option<usize> {
    let Some(node) = fields.node("count") else { return Some(1) };
    let number = match &node.value {
        Value::String(text) if text == "All" => return None,
        Value::String(text) if !text.starts_with(['0', '+']) => text.parse().ok(),
        Value::Number(number) => number.as_i64(),
        _ => None,
    };
    let fits = number.filter(|number| (1..=LARGEST).contains(number)).and_then(|it| usize::try_from(it).ok());
    if fits.is_none() {
        let message = format!("{} must be a number from 1 to {LARGEST}, or All", fields.path_of("count"));
        fields.error_at("count", message);
    }
    fits.or(Some(1))
}

fn term(mut fields: Fields<'_>) -> Term {
    let mut requirements = match_labels(&mut fields, MOST_IN_A_TERM);
    at_most(&mut fields, "matchLabelExpressions", MOST_IN_A_TERM);
    at_most(&mut fields, "matchClusterPropertyExpressions", MOST_IN_A_TERM);
    let each = fields.each("matchLabelExpressions").into_iter();
    requirements.extend(each.filter_map(of_label));
    let each = fields.each("matchClusterPropertyExpressions").into_iter();
    let properties = each.filter_map(of_property).collect();
    fields.finish();
    Term { labels: Selector { requirements }, properties, ..Term::default() }
}

fn at_most(fields: &mut Fields<'_>, key: &'static str, most: usize) {
    if fields.list(key).is_some_and(|list| list.len() > most) {
        let message = format!("{} must not have more than {most} entries", fields.path_of(key));
        fields.error_at(key, message);
    }
}

/// Returns scorers that prefer few nodes and much free processor and memory, among the matching clusters.
fn scorers() -> Vec<Scorer> {
    let scorer = |name: &str, measure, ascending| Scorer {
        name: name.to_owned(),
        weight: 1,
        rule: ScoreRule::Among(Sorter { measure, ascending }),
    };
    vec![
        scorer("fewNodes", Measure::Property("kubernetes-fleet.io/node-count".to_owned()), true),
        scorer("availableCpu", Measure::Available("cpu".to_owned()), false),
        scorer("availableMemory", Measure::Available("memory".to_owned()), false),
    ]
}

fn all(outcome: &Outcome) -> Option<Condition> {
    scheduled(true, picked_all(outcome))
}

fn in_turn(outcome: &Outcome) -> Option<Condition> {
    let found = format!("found {}", counted(outcome.picked, "cluster"));
    match outcome.unmet.is_empty() {
        true => scheduled(true, found),
        false => scheduled(false, format!("{found}: {}", outcome.unmet.join("; "))),
    }
}

fn scheduled(status: bool, message: String) -> Option<Condition> {
    let reason = if status { "FoundAllRequiredClusters" } else { "FailedToFindSomeRequiredClusters" };
    Some(Condition { kind: "Scheduled".to_owned(), status, reason: reason.to_owned(), message })
}

const OF_TEXT: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];
const OF_NUMBERS: [&str; 6] = ["Gt", "Lt", "Ge", "Le", "Eq", "Ne"];

/// Reads the field `matchLabels` of a term.
pub fn match_labels(term: &mut Fields<'_>, most: usize) -> Vec<Requirement> {
    let labels = meta::match_labels(term).unwrap_or_default();
    if labels.len() > most {
        let message = format!("{} must not have more than {most} entries", term.path_of("matchLabels"));
        term.error_at("matchLabels", message);
    }
    labels
}

/// Reads one entry of `matchLabelExpressions`.
pub fn of_label(mut fields: Fields<'_>) -> Option<Requirement> {
    let (key, operator, values) = parts(&mut fields, &OF_TEXT, &OF_NUMBERS, "a label is text")?;
    if !is_label_key(&key) {
        fields.error_at("key", format!("{}: `{key}` is not a valid label key", fields.path_of("key")));
    }
    fields.finish();
    Some(match operator {
        "In" => Requirement::In(key, values),
        "NotIn" => Requirement::NotIn(key, values),
        "Exists" => Requirement::Exists(key),
        _ => Requirement::DoesNotExist(key),
    })
}

/// Reads one entry of `matchClusterPropertyExpressions`.
pub fn of_property(mut fields: Fields<'_>) -> Option<PropertyRequirement> {
    let (key, operator, values) =
        parts(&mut fields, &OF_NUMBERS, &OF_TEXT, "berth compares properties as numbers")?;
    let measure = measure(&fields, "key", &key);
    let than = values.first().and_then(|text| match text.parse() {
        Ok(quantity) => Some(quantity),
        Err(fault) => {
            fields.error_at("values", format!("{}: `{text}` is {fault}", fields.path_of("values")));
            None
        }
    });
    fields.finish();
    Some(PropertyRequirement { measure: measure?, comparison: comparison(operator), than: than? })
}

/// Reads key, operator and values. Returns `None` after a fault.
fn parts(
    fields: &mut Fields<'_>,
    operators: &[&'static str],
    others: &[&'static str],
    why: &str,
) -> Option<(String, &'static str, Vec<String>)> {
    let key = fields.required_str("key").map(str::to_owned);
    fields.require("operator");
    let both: Vec<&'static str> = operators.iter().chain(others).copied().collect();
    let operator = fields.choice("operator", &both);
    let values: Vec<String> =
        fields.strings("values").unwrap_or_default().into_iter().map(str::to_owned).collect();
    let (key, operator) = (key?, operator?);
    if others.contains(&operator) {
        let message = format!("{} {operator} does not fit here: {why}", fields.path_of("operator"));
        let hint = format!("use one of {}", operators.join(", "));
        let at = fields.scope().pos(fields.place_of("operator"));
        fields.scope().report(Diagnostic::error(at, message).hint(hint));
        return None;
    }
    let wanted = match operator {
        "In" | "NotIn" => (!values.is_empty(), "at least one value"),
        "Exists" | "DoesNotExist" => (values.is_empty(), "no values"),
        _ => (values.len() == 1, "exactly one value"),
    };
    if !wanted.0 {
        let message = format!("{} must hold {} with {operator}", fields.path_of("values"), wanted.1);
        fields.error_at("values", message);
        return None;
    }
    Some((key, operator, values))
}
