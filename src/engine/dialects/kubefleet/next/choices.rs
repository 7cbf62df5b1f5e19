//! `clusterSelectors` and `tolerations` → the engine's policy.

use serde_json::Value as Json;

use super::expressions;
use crate::dialects::kubefleet::policy;
use berth_base::model::Policy;
use berth_base::model::decision::{Condition, Outcome};
use berth_base::model::named::Named;
use berth_base::model::placement::{
    AS_WRITTEN, Choice, Ranking, Retention, ScoreRule, Scorer, Selection, Sorter, Wording,
};
use berth_base::model::selector::{Measure, Selector, Term};
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

/// Reads the clusters that a policy wants. `needed` is the namespace that a cluster must have.
pub fn policy(spec: &mut Fields<'_>, needed: Option<&str>) -> Policy {
    let text = spec.node("clusterSelectors").map_or(Json::Null, |node| node.to_json());
    let tolerations = policy::tolerations(spec, 10);
    let choices = spec.node("clusterSelectors").map(|_| choices(spec));
    // Without selectors, every cluster that passes.
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
    // Nobody here makes clusters, so that each choice keeps searching.
    fields.choice("whenUnfulfilled", &["AddClusterClaim", "RequestCluster", "KeepSearching"]);
    fields.finish();
    let least = least.or(count).unwrap_or(1);
    Choice { name: format!("clusterSelectors[{index}]"), terms, count, least }
}

/// Reads a number or `All`. One without either.
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
    let mut requirements = expressions::match_labels(&mut fields, MOST_IN_A_TERM);
    at_most(&mut fields, "matchLabelExpressions", MOST_IN_A_TERM);
    at_most(&mut fields, "matchClusterPropertyExpressions", MOST_IN_A_TERM);
    let each = fields.each("matchLabelExpressions").into_iter();
    requirements.extend(each.filter_map(expressions::of_label));
    let each = fields.each("matchClusterPropertyExpressions").into_iter();
    let properties = each.filter_map(expressions::of_property).collect();
    fields.finish();
    Term { labels: Selector { requirements }, properties, ..Term::default() }
}

fn at_most(fields: &mut Fields<'_>, key: &'static str, most: usize) {
    if fields.list(key).is_some_and(|list| list.len() > most) {
        let message = format!("{} must not have more than {most} entries", fields.path_of(key));
        fields.error_at(key, message);
    }
}

/// Few nodes, and much that is left of processors and memory, each among the clusters that match.
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
    scheduled(true, format!("found all clusters the policy allows: {}", outcome.picked))
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
