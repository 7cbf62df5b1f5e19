//! `predicates` → terms: a cluster passes if it fits one of them, and so the three selectors of it.

use crate::meta::{label_selector, match_expressions};
use crate::model::{Selector, Term};
use crate::yaml::{Fields, Scope};

/// The terms; none where there are no predicates, so that everything passes.
pub(super) fn read(scope: &Scope, spec: &mut Fields<'_>) -> Option<Vec<Term>> {
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

/// The selectors for labels and claims, which both must fit.
pub(super) fn selectors(scope: &Scope, mut fields: Fields<'_>, may_have_cel: bool) -> Term {
    let node = fields.node("labelSelector");
    let labels = node.and_then(|node| label_selector(scope, node, &fields.path_of("labelSelector")));
    let mut term = Term { labels: labels.unwrap_or_default(), ..Term::default() };
    if let Some(mut claims) = fields.fields("claimSelector") {
        let requirements = match_expressions(&mut claims).unwrap_or_default();
        term.claims = Selector { requirements };
        claims.finish();
    }
    if may_have_cel && let Some(mut cel) = fields.fields("celSelector") {
        if cel.strings("celExpressions").is_some_and(|expressions| !expressions.is_empty()) {
            let message =
                format!("{} is not supported: this version evaluates no CEL", cel.path_of("celExpressions"));
            cel.error_at("celExpressions", message);
        }
        cel.finish();
    }
    fields.finish();
    term
}
