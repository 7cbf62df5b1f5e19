//! Placement → its own policy: candidates from the bound sets, predicates and tolerations as filters,
//! prioritizers as scorers, a number of clusters, decision groups.

mod condition;
mod groups;
mod predicates;
mod prioritizers;
mod spread;
mod tolerations;

pub use condition::SATISFIED;

use super::Context;
use super::groups::CLUSTER;
use crate::dialects::Document;
use crate::dialects::ocm::fields::open_namespaced;
use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::model::placement::{Blocked, ClusterSet, Filter, Policy, Rule, Selection};
use berth_base::model::{Key, Placement, Source};
use berth_base::packed::Packed;
use berth_base::yaml::{Fields, Scope};

const DISABLED: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

pub(super) fn read(scope: &Scope, document: &Document, context: &Context) -> Option<Placement> {
    let root = document.open();
    let (mut fields, metadata) = open_namespaced(scope, &root)?;
    let text = document.root.get("spec").map_or(Packed::NULL, |spec| Packed::of(&spec.to_json()));
    let bound: Vec<&ClusterSet> =
        context.bindings.of(&metadata.namespace).filter_map(|name| context.sets.get(name)).collect();
    let mut policy = Policy {
        scorers: prioritizers::default(),
        groups: Some(groups::one()),
        blocked: bound
            .is_empty()
            .then(|| Blocked { condition: condition::no_bindings(&metadata.namespace), keep_earlier: false }),
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
                let condition = condition::no_intersection(&named, &bound);
                policy.blocked = Some(Blocked { condition, keep_earlier: false });
            }
        }
        read_spec(scope, document, &mut spec, &mut policy);
        spec.finish();
    }
    fields.finish();
    if metadata.annotations.get(DISABLED).is_some_and(|value| value == "true") {
        policy.blocked = Some(Blocked { condition: condition::disabled(), keep_earlier: true });
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
    let mut rules: Vec<Rule> = predicates::read(scope, spec).map(Rule::AnyOf).into_iter().collect();
    rules.push(Rule::Tolerates(tolerations::read(spec)));
    policy.filters = rules.into_iter().map(|rule| Filter { rule, by: None }).collect();
    let has_names = document.version == "v1alpha1";
    if let Some(prioritizers) = spec.fields("prioritizerPolicy") {
        policy.scorers = prioritizers::read(scope, prioritizers, has_names);
    }
    if let Some(mut strategy) = spec.fields("decisionStrategy") {
        if let Some(groups) = strategy.fields("groupStrategy") {
            policy.groups = Some(groups::read(scope, groups));
        }
        strategy.finish();
    }
    policy.scorers.extend(spread::read(spec));
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
