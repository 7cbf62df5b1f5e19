//! `spec.policy` → the engine's [`Policy`], and the condition `Scheduled` in KubeFleet's words.
//!
//! `PickAll` picks every cluster that passes, `PickN` the best N, `PickFixed` the named ones. Fields of
//! another type are refused, because KubeFleet would ignore them. `tolerations` have KubeFleet's rules:
//! `Equal` by default, `NoSchedule` or any effect.

mod affinity;
mod property;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value as Json;

use affinity::Affinity;
use berth_base::diag::Diagnostic;
use berth_base::meta::names::{is_dns_subdomain, is_label_key, is_label_value};
use berth_base::model::decision::Outcome;
use berth_base::model::named::Named;
use berth_base::model::placement::{
    AgentLimits, Blocked, Filter, Preference, Ranking, Retention, Rule, ScoreRule, Scorer, Selection,
    SpreadConstraint, Toleration, Wording,
};
use berth_base::model::{Condition, Policy};
use berth_base::packed::Packed;
use berth_base::yaml::fields::Fields;

pub use affinity::check_terms;
pub use property::{comparison, measure};
pub use text::{NORMAL_FORM, normal_form};

/// An older heartbeat, or a longer time of bad health, makes a cluster ineligible.
const LIMITS: AgentLimits = AgentLimits { heartbeat_seconds: 300, unhealthy_seconds: 300 };

const MOST_TOLERATIONS: usize = 100;

/// The names of the two parts of a score, in the order of their comparison.
const SPREAD_SCORE: &str = "topologySpreadScore";
const AFFINITY_SCORE: &str = "affinityScore";

/// The fields of a policy of any type.
struct PolicyFields {
    affinity: Option<Affinity>,
    constraints: Vec<SpreadConstraint>,
    tolerations: Vec<Toleration>,
}

/// Reads the field `policy` of a spec; without it, every eligible cluster is picked. `namespace` is the
/// ResourcePlacement's. Faults go to the scope; if there are any, the result must not be used.
pub fn read(spec: &mut Fields<'_>, namespace: Option<&str>) -> Policy {
    let text = normal_form(&spec.node("policy").map_or(Json::Null, |node| node.to_json()));
    let Some(mut fields) = spec.fields("policy") else {
        return pick_all(PolicyFields::none(), namespace, text);
    };
    let kind = fields.choice("placementType", &["PickAll", "PickN", "PickFixed"]);
    let kind = kind.unwrap_or("PickAll");
    // These fields are read for any type, so that their faults are reported.
    let names = names(&mut fields);
    let number = fields.int_in("numberOfClusters", 0..=i64::from(i32::MAX));
    let parts = PolicyFields {
        affinity: affinity::read(&mut fields),
        constraints: read_spread_constraints(&mut fields),
        tolerations: tolerations(&mut fields, MOST_TOLERATIONS),
    };
    refuse_foreign_fields(&mut fields, kind);
    let policy = match kind {
        "PickFixed" => policy(names, text),
        "PickN" => {
            require_number(&mut fields);
            pick_n(
                number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0),
                parts,
                namespace,
                text,
            )
        }
        _ => pick_all(parts, namespace, text),
    };
    fields.finish();
    policy
}

/// Requires a number: the public documentation's example of spread constraints lacks it.
fn require_number(fields: &mut Fields<'_>) {
    if fields.node("numberOfClusters").is_none() {
        let message = format!("{} is required with PickN", fields.path_of("numberOfClusters"));
        let at = fields.scope().pos(fields.place_of("numberOfClusters"));
        let hint = "give the number of clusters, such as `numberOfClusters: 3`, or use PickAll for all";
        fields.scope().report(Diagnostic::error(at, message).hint(hint));
    }
}

/// Reports fields that belong to another placement type.
fn refuse_foreign_fields(fields: &mut Fields<'_>, kind: &str) {
    let foreign: &[(&'static str, &str)] = match kind {
        "PickAll" => &[
            ("clusterNames", "PickFixed"),
            ("numberOfClusters", "PickN"),
            ("topologySpreadConstraints", "PickN"),
        ],
        "PickN" => &[("clusterNames", "PickFixed")],
        _ => &[
            ("numberOfClusters", "PickN"),
            ("affinity", "PickAll and PickN"),
            ("topologySpreadConstraints", "PickN"),
            ("tolerations", "PickAll and PickN"),
        ],
    };
    for (key, owner) in foreign {
        let empty_list = |node: &berth_base::yaml::Node| matches!(&node.value, berth_base::yaml::Value::List(items) if items.is_empty());
        if fields.node(key).is_some_and(|node| !empty_list(node)) {
            let message = format!("{} belongs to {owner}, not to {kind}", fields.path_of(key));
            fields.error_at(key, message);
        }
    }
    if kind == "PickAll" {
        affinity::refuse_preferences(fields);
    }
}

impl PolicyFields {
    fn none() -> PolicyFields {
        PolicyFields { affinity: None, constraints: Vec::new(), tolerations: Vec::new() }
    }
}

/// Returns a policy of the next API that picks every eligible cluster without other taints.
pub fn everywhere(tolerations: Vec<Toleration>, namespace: Option<&str>) -> Policy {
    let filters = filters(&PolicyFields { tolerations, ..PolicyFields::none() }, namespace);
    Policy { filters, ..base(Json::Null) }
}

fn pick_all(parts: PolicyFields, namespace: Option<&str>, text: Json) -> Policy {
    Policy {
        filters: filters(&parts, namespace),
        scorers: scorers(Vec::new(), Vec::new()),
        selection: Selection::All,
        condition: PICK_ALL,
        ..base(text)
    }
}

fn pick_n(number: usize, parts: PolicyFields, namespace: Option<&str>, text: Json) -> Policy {
    let filters = filters(&parts, namespace);
    let preferences = parts.affinity.map(|affinity| affinity.preferred).unwrap_or_default();
    let looks_at_all =
        !parts.constraints.is_empty() || preferences.iter().any(|preference| preference.sorter.is_some());
    let mut scorers = scorers(parts.constraints, preferences);
    // Among equal clusters, those picked under an earlier policy stay. This is no score, so it has no name.
    scorers.push(Scorer { name: String::new(), weight: 1, rule: ScoreRule::Steady });
    let mut policy =
        Policy { filters, scorers, selection: Selection::First(number), condition: PICK_N, ..base(text) };
    if looks_at_all {
        // Domains and extremes cover the whole fleet; leaving clusters are refused as ineligible.
        policy.candidates.clear();
    }
    policy
}

fn base(text: Json) -> Policy {
    Policy {
        candidates: vec![plain(Rule::NotLeaving)],
        ranking: Ranking::PartsThenNameDescending,
        retention: Retention::SamePolicy(NORMAL_FORM),
        condition: PICK_ALL,
        text: Packed::of(&text),
        ..Policy::BLANK
    }
}

/// Returns the filters in KubeFleet's order: a cluster that one filter refuses does not reach the next.
fn filters(parts: &PolicyFields, namespace: Option<&str>) -> Vec<Filter> {
    let required = parts.affinity.as_ref().map(|affinity| affinity.required.clone()).unwrap_or_default();
    let mut filters = Vec::new();
    if !required.is_empty() {
        filters.push(plain(Rule::AnyOf(required)));
    }
    filters.push(plain(Rule::Eligible(LIMITS)));
    if let Some(namespace) = namespace {
        filters.push(plain(Rule::HoldsNamespace(namespace.to_owned())));
    }
    filters.push(plain(Rule::Tolerates(parts.tolerations.clone())));
    filters
}

fn scorers(constraints: Vec<SpreadConstraint>, preferred: Vec<Preference>) -> Vec<Scorer> {
    let scorer = |name: &str, rule| Scorer { name: name.to_owned(), weight: 1, rule };
    vec![
        scorer(SPREAD_SCORE, ScoreRule::Spread(constraints)),
        scorer(AFFINITY_SCORE, ScoreRule::Preferred(preferred)),
    ]
}

fn plain(rule: Rule) -> Filter {
    Filter { rule, by: None }
}

/// Blocks a policy: its earlier decisions stay, with this condition.
pub fn block(policy: &mut Policy, condition: Condition) {
    policy.blocked = Some(Blocked { condition, keep_earlier: true });
}

const MOST_NAMES: usize = 100;

/// Reads `clusterNames`.
pub fn names(fields: &mut Fields<'_>) -> BTreeSet<String> {
    let items = fields.list("clusterNames").unwrap_or_default();
    if items.len() > MOST_NAMES {
        let message =
            format!("{} must not have more than {MOST_NAMES} entries", fields.path_of("clusterNames"));
        fields.error_at("clusterNames", message);
    }
    // This call reports items that are not strings.
    fields.strings("clusterNames");
    let mut names = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let Some(name) = item.as_str() else { continue };
        let path = format!("{}[{index}]", fields.path_of("clusterNames"));
        if name.len() > 63 || !is_dns_subdomain(name) {
            fields.scope().error(item.at, format!("{path}: `{name}` cannot be the name of a cluster"));
        }
        if !names.insert(name.to_owned()) {
            fields.scope().error(item.at, format!("{path} names `{name}` twice"));
        }
    }
    names
}

/// Returns a policy of named clusters, for which only eligibility counts. Without any name KubeFleet's
/// scheduler does nothing, so earlier picks stay.
pub fn policy(names: BTreeSet<String>, text: Json) -> Policy {
    let nothing = names.is_empty().then(no_names);
    Policy {
        filters: vec![plain(Rule::Eligible(LIMITS))],
        selection: Selection::Exactly(names),
        condition: PICK_FIXED,
        blocked: nothing.map(|condition| Blocked { condition, keep_earlier: true }),
        ..base(text)
    }
}

/// Reads the field `tolerations`, with at most `most` entries.
pub fn tolerations(policy: &mut Fields<'_>, most: usize) -> Vec<Toleration> {
    if policy.list("tolerations").is_some_and(|list| list.len() > most) {
        let message = format!("{} must not have more than {most} entries", policy.path_of("tolerations"));
        policy.error_at("tolerations", message);
    }
    let mut tolerations: Vec<Toleration> = Vec::new();
    for fields in policy.each("tolerations") {
        let (scope, at, path) = (fields.scope(), fields.at(), fields.path().to_owned());
        let toleration = toleration(fields);
        if tolerations.contains(&toleration) {
            scope.error(at, format!("{path} repeats an earlier toleration"));
        }
        tolerations.push(toleration);
    }
    tolerations
}

fn toleration(mut fields: Fields<'_>) -> Toleration {
    let key = fields.str("key").filter(|key| !key.is_empty());
    let operator = match fields.node("operator") {
        None => Some("Equal"),
        Some(_) => fields.choice("operator", &["Equal", "Exists"]),
    };
    let value = fields.str("value").unwrap_or_default();
    let effect = fields.choice("effect", &["NoSchedule"]);
    if let Some(key) = key.filter(|key| !is_label_key(key)) {
        fields.error_at("key", format!("{}: `{key}` is not a valid taint key", fields.path_of("key")));
    }
    if !is_label_value(value) {
        fields
            .error_at("value", format!("{}: `{value}` is not a valid taint value", fields.path_of("value")));
    }
    if operator == Some("Exists") && !value.is_empty() {
        fields.error_at("value", format!("{} does not go with operator Exists", fields.path_of("value")));
    }
    if operator == Some("Equal") && key.is_none() {
        let message = format!("{} is required with operator Equal", fields.path_of("key"));
        fields.error_at("key", message);
    }
    fields.finish();
    Toleration {
        key: key.map(str::to_owned),
        value: (operator != Some("Exists")).then(|| value.to_owned()),
        effect: effect.map(str::to_owned),
        seconds: None,
    }
}

pub fn read_spread_constraints(policy: &mut Fields<'_>) -> Vec<SpreadConstraint> {
    policy.each("topologySpreadConstraints").into_iter().map(spread_constraint).collect()
}

fn spread_constraint(mut fields: Fields<'_>) -> SpreadConstraint {
    let max_skew = fields.int_in("maxSkew", 1..=i64::from(i32::MAX)).unwrap_or(1);
    let key = fields.required_str("topologyKey").unwrap_or_default().to_owned();
    let unsatisfiable = fields.choice("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]);
    fields.finish();
    SpreadConstraint { key, max_skew, required: unsatisfiable != Some("ScheduleAnyway") }
}

const FULFILLED: &str = "SchedulingPolicyFulfilled";
const UNFULFILLED: &str = "SchedulingPolicyUnfulfilled";

pub const PICK_ALL: Wording = Named { name: "KubeFleet's PickAll", function: pick_all_condition };
pub const PICK_N: Wording = Named { name: "KubeFleet's PickN", function: pick_n_condition };
pub const PICK_FIXED: Wording = Named { name: "KubeFleet's PickFixed", function: pick_fixed_condition };

/// Returns the condition of `PickAll`, which has no target number and is always fulfilled.
fn pick_all_condition(outcome: &Outcome) -> Option<Condition> {
    scheduled(true, FULFILLED, picked_all(outcome))
}

/// Returns the message of a policy without a target number.
pub(super) fn picked_all(outcome: &Outcome) -> String {
    match outcome.picked {
        0 => "no cluster matches the policy".to_owned(),
        picked => format!("picked every matching cluster: {picked}"),
    }
}

fn pick_n_condition(outcome: &Outcome) -> Option<Condition> {
    let wanted = outcome.wanted.unwrap_or(0);
    let enough = outcome.picked >= wanted;
    let message = format!("found {} of the {wanted} requested clusters", outcome.picked);
    scheduled(enough, if enough { FULFILLED } else { UNFULFILLED }, message)
}

fn pick_fixed_condition(outcome: &Outcome) -> Option<Condition> {
    if outcome.unmet.is_empty() {
        return scheduled(true, FULFILLED, "all clusters named are in the fleet and eligible".to_owned());
    }
    let message = format!("not in the fleet or not eligible: {}", outcome.unmet.join(", "));
    scheduled(false, UNFULFILLED, message)
}

/// Returns the condition of selectors for forbidden objects; nothing moves until they are corrected.
pub fn invalid_selectors(message: String) -> Condition {
    condition(false, "InvalidResourceSelectors", message)
}

fn scheduled(status: bool, reason: &str, message: String) -> Option<Condition> {
    Some(condition(status, reason, message))
}

fn condition(status: bool, reason: &str, message: String) -> Condition {
    Condition { kind: "Scheduled".to_owned(), status, reason: reason.to_owned(), message }
}

/// Returns the condition of `PickFixed` without a name.
fn no_names() -> Condition {
    condition(false, "SchedulePending", "no cluster is named".to_owned())
}
