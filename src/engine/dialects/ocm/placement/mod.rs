//! Placement → its own policy: candidates from the bound sets, predicates and tolerations as filters,
//! prioritizers as scorers, a number of clusters, decision groups; and the condition PlacementSatisfied,
//! with OCM's own reasons.
//!
//! A cluster passes `predicates` if it matches one of them with all three selectors. A CEL expression is
//! parsed here to report its faults; the engine runs it from its text. `spreadPolicy` becomes constraints
//! on the picks, as the field's description defines them. OCM itself accepts the field and ignores it.

mod prioritizers;

use super::PlacementContext;
use super::cel_view::MANAGED_CLUSTER;
use super::cluster::EFFECT_WORDS;
use super::fields::{open_namespaced, taint_key, text_or_number};
use super::kinds::CLUSTER;
use crate::dialects::Document;
use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::meta::names::is_label_key;
use berth_base::meta::{label_selector, match_expressions};
use berth_base::model::decision::Outcome;
use berth_base::model::named::Named;
use berth_base::model::placement::{
    Blocked, ClusterSet, EvenConstraint, Filter, GroupSize, Grouping, Policy, Rule, ScoreRule, Scorer,
    Selection, Toleration, Wording,
};
use berth_base::model::{Condition, Expression, Key, Placement, Selector, Source, Term};
use berth_base::packed::Packed;
use berth_base::yaml::{Fields, Node, Scope};
use berth_cel::{Names, Program, Variable};

const DISABLED: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

pub(super) fn read(scope: &Scope, document: &Document, context: &PlacementContext) -> Option<Placement> {
    let root = document.open();
    let (mut fields, metadata) = open_namespaced(scope, &root)?;
    let text = document.root.get("spec").map_or(Packed::NULL, |spec| Packed::of(&spec.to_json()));
    let bound: Vec<&ClusterSet> =
        context.bindings.of(&metadata.namespace).filter_map(|name| context.sets.get(name)).collect();
    let mut policy = Policy {
        scorers: prioritizers::default(),
        groups: Some(one_group()),
        blocked: bound
            .is_empty()
            .then(|| Blocked { condition: no_bindings(&metadata.namespace), keep_earlier: false }),
        condition: SATISFIED,
        text,
        ..Policy::BLANK
    };
    let mut sets: Vec<ClusterSet> = bound.iter().map(|set| (*set).clone()).collect();
    if let Some(mut spec) = fields.fields("spec") {
        let named = spec.strings("clusterSets").unwrap_or_default();
        for set in named.iter().filter(|set| context.sets.get(set).is_none()) {
            let message = format!("there is no ManagedClusterSet `{set}`");
            let warning = Diagnostic::warning(scope.pos(spec.place_of("clusterSets")), message);
            scope.report(warning.maybe_hint(did_you_mean(set, context.sets.names())));
        }
        if !named.is_empty() {
            sets.retain(|set| named.contains(&set.name.as_str()));
            if sets.is_empty() && policy.blocked.is_none() {
                let condition = no_intersection(&named, &bound);
                policy.blocked = Some(Blocked { condition, keep_earlier: false });
            }
        }
        read_spec(scope, document, &mut spec, &mut policy);
        spec.finish();
    }
    fields.finish();
    if metadata.annotations.get(DISABLED).is_some_and(|value| value == "true") {
        policy.blocked = Some(Blocked { condition: disabled(), keep_earlier: true });
    }
    let by_placement = |rule| Filter { rule, by: None };
    policy.candidates = vec![by_placement(Rule::InSets(sets)), by_placement(Rule::NotLeaving)];
    let key = Key::new(CLUSTER, "Placement", &metadata.namespace, &metadata.name);
    Some(Placement::new(key, document.at.clone(), Source::Own(Box::new(policy))))
}

fn read_spec(scope: &Scope, document: &Document, spec: &mut Fields<'_>, policy: &mut Policy) {
    if let Some(count) = spec.int_in("numberOfClusters", 0..=i64::from(i32::MAX)) {
        policy.selection = Selection::First(usize::try_from(count).unwrap_or(usize::MAX));
    }
    let mut rules: Vec<Rule> = read_predicates(scope, spec).map(Rule::AnyOf).into_iter().collect();
    rules.push(Rule::Tolerates(read_tolerations(spec)));
    policy.filters = rules.into_iter().map(|rule| Filter { rule, by: None }).collect();
    let has_names = document.version == "v1alpha1";
    if let Some(prioritizers) = spec.fields("prioritizerPolicy") {
        policy.scorers = prioritizers::read(scope, prioritizers, has_names);
    }
    if let Some(mut strategy) = spec.fields("decisionStrategy") {
        if let Some(groups) = strategy.fields("groupStrategy") {
            policy.groups = Some(read_groups(scope, groups));
        }
        strategy.finish();
    }
    policy.scorers.extend(read_spread(spec));
    spec.choice("sortBy", &["ClusterName", "Score"]);
    check_rate(spec);
}

/// Checks a field that has no effect, in OCM too.
fn check_rate(spec: &mut Fields<'_>) {
    let Some(rate) = spec.str("scoreRateLimit") else { return };
    let digits = rate.strip_suffix(['h', 'm', 's']).unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let message =
            format!("spec.scoreRateLimit is `{rate}`, but must be a duration such as `30s` or `1m`");
        spec.error_at("scoreRateLimit", message);
    }
}

/// Reads the terms; empty without predicates, so that everything passes.
fn read_predicates(scope: &Scope, spec: &mut Fields<'_>) -> Option<Vec<Term>> {
    let predicates = spec.each("predicates");
    if predicates.is_empty() {
        return None;
    }
    let one = |mut predicate: Fields<'_>| {
        let selector = predicate.fields("requiredClusterSelector");
        let term = selector.map(|selector| selectors(scope, selector, true)).unwrap_or_default();
        predicate.finish();
        term
    };
    Some(predicates.into_iter().map(one).collect())
}

/// Reads the selectors for labels and claims; both must match.
fn selectors(scope: &Scope, mut fields: Fields<'_>, may_have_cel: bool) -> Term {
    let node = fields.node("labelSelector");
    let labels = node.and_then(|node| label_selector(scope, node, &fields.path_of("labelSelector")));
    let mut term = Term { labels: labels.unwrap_or_default(), ..Term::default() };
    if let Some(mut claims) = fields.fields("claimSelector") {
        let requirements = match_expressions(&mut claims).unwrap_or_default();
        term.claims = Selector { requirements };
        claims.finish();
    }
    if may_have_cel && let Some(mut cel) = fields.fields("celSelector") {
        term.expressions = expressions(scope, &mut cel);
        cel.finish();
    }
    fields.finish();
    term
}

fn expressions(scope: &Scope, cel: &mut Fields<'_>) -> Vec<Expression> {
    let path = cel.path_of("celExpressions");
    let methods: Vec<&str> = MANAGED_CLUSTER.methods.iter().map(|(name, _)| *name).collect();
    let names = Names { variables: &[Variable::any(MANAGED_CLUSTER.name)], methods: &methods };
    let texts = cel.strings("celExpressions").unwrap_or_default();
    let nodes = cel.list("celExpressions").unwrap_or_default().iter().filter(|node| node.as_str().is_some());
    let read = |(index, (text, node)): (usize, (&str, &Node))| {
        if let Err(fault) = Program::compile(text, names) {
            let message = format!("{path}[{index}]: {fault}");
            scope.report(Diagnostic::error(scope.pos(node.at), message).maybe_hint(fault.hint));
        }
        Expression { text: text.to_owned(), view: MANAGED_CLUSTER }
    };
    texts.into_iter().zip(nodes).enumerate().map(read).collect()
}

fn read_tolerations(spec: &mut Fields<'_>) -> Vec<Toleration> {
    spec.each("tolerations").into_iter().map(toleration).collect()
}

fn toleration(mut fields: Fields<'_>) -> Toleration {
    let key = fields.str("key").filter(|key| !key.is_empty());
    let key = key.filter(|key| taint_key(&fields, key));
    let operator = match fields.str("operator") {
        None | Some("") => Some("Equal"),
        Some(_) => fields.choice("operator", &["Equal", "Exists"]),
    };
    let value = fields.str("value").unwrap_or_default();
    let effect = fields.choice("effect", &EFFECT_WORDS);
    let seconds = fields.int("tolerationSeconds");
    let is_empty = fields.node("key").and_then(|node| node.as_str()).unwrap_or_default().is_empty();
    if operator == Some("Equal") && is_empty {
        let message = format!("{} is required unless the operator is `Exists`", fields.path_of("key"));
        fields.error_at("key", message);
    }
    if operator == Some("Exists") && !value.is_empty() {
        fields.error_at(
            "value",
            format!("{} must be empty with the operator `Exists`", fields.path_of("value")),
        );
    }
    if value.chars().count() > 1024 {
        fields.error_at("value", format!("{} has more than 1024 characters", fields.path_of("value")));
    }
    fields.finish();
    Toleration {
        key: key.map(str::to_owned),
        value: (operator == Some("Equal")).then(|| value.to_owned()),
        effect: effect.map(str::to_owned),
        seconds,
    }
}

const MOST_CONSTRAINTS: usize = 8;

fn read_spread(spec: &mut Fields<'_>) -> Option<Scorer> {
    let mut policy = spec.fields("spreadPolicy")?;
    let constraints = policy.each("spreadConstraints");
    if constraints.len() > MOST_CONSTRAINTS {
        let message = format!("spec.spreadPolicy.spreadConstraints has more than {MOST_CONSTRAINTS} entries");
        policy.error_at("spreadConstraints", message);
    }
    let constraints: Vec<EvenConstraint> = constraints.into_iter().map(spread_constraint).collect();
    policy.finish();
    // The scorer orders by itself and adds nothing to the score.
    let scorer = Scorer { name: "Spread".to_owned(), weight: 0, rule: ScoreRule::Even(constraints) };
    matches!(&scorer.rule, ScoreRule::Even(constraints) if !constraints.is_empty()).then_some(scorer)
}

fn spread_constraint(mut constraint: Fields<'_>) -> EvenConstraint {
    let key = constraint.required_str("topologyKey");
    if let Some(key) = key.filter(|key| !is_label_key(key)) {
        let message = format!("{}: `{key}` is not a valid label key", constraint.path_of("topologyKey"));
        constraint.error_at("topologyKey", message);
    }
    constraint.require("topologyKeyType");
    let of_claims = constraint.choice("topologyKeyType", &["Label", "Claim"]) == Some("Claim");
    let max_skew = constraint.int_in("maxSkew", 1..=i64::from(i32::MAX)).unwrap_or(1);
    let unsatisfiable = constraint.choice("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]);
    constraint.finish();
    let required = unsatisfiable == Some("DoNotSchedule");
    EvenConstraint { key: key.unwrap_or_default().to_owned(), of_claims, max_skew, required }
}

/// Returns a grouping with all clusters in one group, the default.
fn one_group() -> Grouping {
    Grouping { size: GroupSize::Percent(100), named: Vec::new() }
}

fn read_groups(scope: &Scope, mut fields: Fields<'_>) -> Grouping {
    let mut named = Vec::new();
    for mut group in fields.each("decisionGroups") {
        let name = group.required_str("groupName");
        if let Some(name) = name.filter(|name| !is_group_name(name)) {
            let message = format!(
                "{} is `{name}`, but must be 2 to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
                group.path_of("groupName")
            );
            group.error_at("groupName", message);
        }
        let selector = group.required_fields("groupClusterSelector");
        if let (Some(name), Some(selector)) = (name, selector) {
            named.push((name.to_owned(), selectors(scope, selector, false)));
        }
        group.finish();
    }
    let text = text_or_number(&mut fields, "clustersPerDecisionGroup");
    let size = text.map_or(Some(GroupSize::Percent(100)), |text| {
        let size = size(&text);
        if size.is_none() {
            let message = format!(
                "{} is `{text}`, but must be a number from 1 or a percentage from 1% to 100%",
                fields.path_of("clustersPerDecisionGroup")
            );
            fields.error_at("clustersPerDecisionGroup", message);
        }
        size
    });
    fields.finish();
    Grouping { size: size.unwrap_or(GroupSize::Percent(100)), named }
}

fn size(text: &str) -> Option<GroupSize> {
    let (digits, percent) = match text.strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    if !digits.starts_with(|first: char| ('1'..='9').contains(&first)) {
        return None;
    }
    let number: u32 = digits.parse().ok()?;
    match percent {
        true => (number <= 100).then_some(GroupSize::Percent(number)),
        false => usize::try_from(number).ok().map(GroupSize::Count),
    }
}

fn is_group_name(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    (2..=63).contains(&name.len())
        && edge(name.chars().next())
        && edge(name.chars().last())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

pub const SATISFIED: Wording = Named { name: "PlacementSatisfied", function: condition_of };

fn condition_of(outcome: &Outcome) -> Option<Condition> {
    let picked = outcome.picked;
    Some(match outcome.wanted {
        _ if outcome.candidates == 0 => satisfied(
            false,
            "AllManagedClusterSetsEmpty",
            "the bound cluster sets hold no cluster".to_owned(),
        ),
        _ if picked == 0 => {
            let message = format!("none of the {} clusters of the bound sets is picked", outcome.candidates);
            satisfied(false, "NoManagedClusterMatched", message)
        }
        Some(wanted) if picked < wanted => {
            let message = format!("{wanted} clusters are wanted and only {picked} can be picked");
            satisfied(false, "NotAllDecisionsScheduled", message)
        }
        _ => satisfied(true, "AllDecisionsScheduled", "all cluster decisions scheduled".to_owned()),
    })
}

fn no_bindings(namespace: &str) -> Condition {
    let message =
        format!("no cluster set is bound to the namespace {namespace} by a ManagedClusterSetBinding");
    satisfied(false, "NoManagedClusterSetBindings", message)
}

fn no_intersection(named: &[&str], bound: &[&ClusterSet]) -> Condition {
    let bound: Vec<&str> = bound.iter().map(|set| set.name.as_str()).collect();
    let message = format!(
        "none of the cluster sets named ({}) is among those bound to the namespace ({})",
        named.join(", "),
        bound.join(", ")
    );
    satisfied(false, "NoIntersection", message)
}

fn disabled() -> Condition {
    let message = "an annotation disables scheduling; the clusters stay unchanged".to_owned();
    satisfied(false, "SchedulingDisabled", message)
}

fn satisfied(status: bool, reason: &str, message: String) -> Condition {
    Condition { kind: "PlacementSatisfied".to_owned(), status, reason: reason.to_owned(), message }
}
