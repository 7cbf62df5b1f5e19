//! `predicates` → terms: a cluster passes if it matches one of them with all three selectors.
//!
//! A CEL expression is parsed here to report its faults; the engine runs it from its text.

use crate::dialects::ocm::cel_view::MANAGED_CLUSTER;
use berth_base::diag::Diagnostic;
use berth_base::meta::{label_selector, match_expressions};
use berth_base::model::{Expression, Selector, Term};
use berth_base::yaml::{Fields, Node, Scope};
use berth_cel::{Names, Program, Variable};

/// Reads the terms; empty without predicates, so that everything passes.
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

/// Reads the selectors for labels and claims; both must match.
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
