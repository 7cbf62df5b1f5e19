//! Labels, claims, measures and expressions: selectors and the terms that combine them.
//!
//! Each requirement becomes a table from the number of a text to yes or no.

use std::sync::Arc;

use super::{Check, Code};
use crate::decide::cluster_table::{Row, Table, Texts};
use crate::decide::expression_verdicts::Column;
use berth_base::model::selector::{PropertyRequirement, Requirement, Selector, Term};
use berth_base::model::{Cluster, Expression, Quantity};

/// A selector, prepared for testing clusters.
pub(in crate::decide) struct Needs {
    needs: Vec<Need>,
}

struct Need {
    column: Arc<Texts>,
    accepts: Vec<bool>,
}

impl Needs {
    pub(in crate::decide) fn labels(table: &Table<'_>, selector: &Selector) -> Needs {
        Needs::new(selector, |key| table.labels(key))
    }

    fn claims(table: &Table<'_>, selector: &Selector) -> Needs {
        Needs::new(selector, |key| table.claims(key))
    }

    fn new(selector: &Selector, column: impl Fn(&str) -> Arc<Texts>) -> Needs {
        let need = |requirement: &Requirement| {
            let column = column(requirement.key());
            let accepts = accepts(requirement, &column);
            Need { column, accepts }
        };
        Needs { needs: selector.requirements.iter().map(need).collect() }
    }

    pub(in crate::decide) fn first_unmet(&self, row: Row) -> Option<usize> {
        self.needs.iter().position(|need| !need.accepts[need.column.ids[row as usize] as usize])
    }
}

fn accepts(requirement: &Requirement, column: &Texts) -> Vec<bool> {
    let all = |yes: bool| vec![yes; column.count()];
    let listed = |mut accepts: Vec<bool>, texts: &[String], yes: bool| {
        texts.iter().filter_map(|text| column.id(text)).for_each(|id| accepts[id as usize] = yes);
        accepts
    };
    match requirement {
        Requirement::Is(_, text) => listed(all(false), std::slice::from_ref(text), true),
        Requirement::In(_, texts) => listed(all(false), texts, true),
        Requirement::NotIn(_, texts) => listed(all(true), texts, false),
        Requirement::Exists(_) => {
            let mut accepts = all(true);
            accepts[0] = false;
            accepts
        }
        Requirement::DoesNotExist(_) => {
            let mut accepts = all(false);
            accepts[0] = true;
            accepts
        }
    }
}

/// A term, prepared for testing clusters.
pub(in crate::decide) struct TermNeeds<'a> {
    labels: Needs,
    claims: Needs,
    measures: Vec<(&'a PropertyRequirement, Arc<Vec<Option<Quantity>>>)>,
    table: &'a Table<'a>,
    expressions: Vec<Arc<Column>>,
}

impl<'a> TermNeeds<'a> {
    pub(in crate::decide) fn new(table: &'a Table<'a>, term: &'a Term) -> TermNeeds<'a> {
        TermNeeds {
            labels: Needs::labels(table, &term.labels),
            claims: Needs::claims(table, &term.claims),
            measures: term.properties.iter().map(|one| (one, table.amounts(&one.measure))).collect(),
            table,
            expressions: term.expressions.iter().map(|one| table.ran(one)).collect(),
        }
    }

    pub(in crate::decide) fn matches(&self, row: Row) -> bool {
        self.first_unmet(row).is_none()
    }

    /// Returns the number of the first unmet part, counting labels, claims, measures and expressions in this
    /// order.
    fn first_unmet(&self, row: Row) -> Option<usize> {
        let (labels, claims) = (self.labels.needs.len(), self.claims.needs.len());
        self.labels
            .first_unmet(row)
            .or_else(|| self.claims.first_unmet(row).map(|index| labels + index))
            .or_else(|| self.first_measure_unmet(row).map(|index| labels + claims + index))
            .or_else(|| {
                let before = labels + claims + self.measures.len();
                let unmet = |column: &Arc<Column>| !column.matches(row as usize, self.table.cluster(row));
                self.expressions.iter().position(unmet).map(|index| before + index)
            })
    }

    fn first_measure_unmet(&self, row: Row) -> Option<usize> {
        self.measures.iter().position(|(wanted, amounts)| {
            amounts[row as usize].is_none_or(|amount| !wanted.comparison.holds(amount, wanted.than))
        })
    }
}

pub(super) struct Labels<'a> {
    table: &'a Table<'a>,
    selector: &'a Selector,
    needs: Needs,
}

impl<'a> Labels<'a> {
    pub(super) fn new(table: &'a Table<'a>, selector: &'a Selector) -> Labels<'a> {
        Labels { table, selector, needs: Needs::labels(table, selector) }
    }
}

impl Check for Labels<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        self.needs.first_unmet(row).map(|index| index as Code)
    }

    fn words(&self) -> String {
        in_words(self.selector, "label").join(" and ")
    }

    fn summary(&self, code: Code) -> String {
        self.selector.requirements.get(code as usize).map(|one| wanted("label", one)).unwrap_or_default()
    }

    fn detail(&self, code: Code, row: Row) -> String {
        let Some(requirement) = self.selector.requirements.get(code as usize) else { return String::new() };
        let has = self.table.cluster(row).labels.get(requirement.key());
        format!("{}, {}", wanted("label", requirement), found(requirement.key(), has))
    }
}

pub(super) struct AnyOf<'a> {
    table: &'a Table<'a>,
    terms: &'a [Term],
    needs: Vec<TermNeeds<'a>>,
}

impl<'a> AnyOf<'a> {
    pub(super) fn new(table: &'a Table<'a>, terms: &'a [Term]) -> AnyOf<'a> {
        AnyOf { table, terms, needs: terms.iter().map(|term| TermNeeds::new(table, term)).collect() }
    }
}

impl Check for AnyOf<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        match self.needs.as_slice() {
            [only] => only.first_unmet(row).map(|index| index as Code),
            many => (!many.iter().any(|needs| needs.matches(row))).then_some(0),
        }
    }

    fn words(&self) -> String {
        let term = |term: &Term| {
            let mut parts = in_words(&term.labels, "label");
            parts.extend(in_words(&term.claims, "claim"));
            parts.extend(term.properties.iter().map(ToString::to_string));
            parts.extend(term.expressions.iter().map(|one| format!("`{}`", one.text)));
            if parts.is_empty() { "any cluster".to_owned() } else { parts.join(" and ") }
        };
        self.terms.iter().map(term).collect::<Vec<_>>().join(", or ")
    }

    fn summary(&self, code: Code) -> String {
        match self.terms {
            [] => "there is no term to match".to_owned(),
            [only] => term_reason(self.table, only, code as usize, None),
            many => format!("none of the {} terms matches", many.len()),
        }
    }

    fn detail(&self, code: Code, row: Row) -> String {
        match self.terms {
            [] => self.summary(code),
            [only] => term_reason(self.table, only, code as usize, Some(row)),
            many => {
                let reason = |(term, needs): (&Term, &TermNeeds<'_>)| {
                    term_reason(self.table, term, needs.first_unmet(row).unwrap_or_default(), Some(row))
                };
                let reasons: Vec<_> = many.iter().zip(&self.needs).map(reason).collect();
                format!("{}: {}", self.summary(code), reasons.join("; "))
            }
        }
    }
}

/// Returns why a term does not match: names the part with this number and, given a cluster, the cluster's
/// value.
fn term_reason(table: &Table<'_>, term: &Term, part: usize, row: Option<Row>) -> String {
    let cluster: Option<&Cluster> = row.map(|row| table.cluster(row));
    let (labels, claims) = (term.labels.requirements.as_slice(), term.claims.requirements.as_slice());
    let reason = |what, one: &Requirement, has: Option<Option<&String>>| match has {
        Some(has) => format!("{}, {}", wanted(what, one), found(one.key(), has)),
        None => wanted(what, one),
    };
    if let Some(one) = labels.get(part) {
        return reason("label", one, cluster.map(|cluster| cluster.labels.get(one.key())));
    }
    let part = part.saturating_sub(labels.len());
    if let Some(one) = claims.get(part) {
        return reason("claim", one, cluster.map(|cluster| cluster.claims.get(one.key())));
    }
    let part = part.saturating_sub(claims.len());
    let Some(one) = term.properties.get(part) else {
        let one = term.expressions.get(part.saturating_sub(term.properties.len()));
        return one.map(|one| expression_reason(table, one, row)).unwrap_or_default();
    };
    match cluster.map(|cluster| cluster.measured(&one.measure)) {
        Some(Some(amount)) => format!("{one} is required, the cluster has {amount}"),
        Some(None) => format!("{one} is required, the cluster does not report it"),
        None => format!("{one} is required"),
    }
}

/// Returns why an expression does not match, with the value of a cluster if a row is given.
fn expression_reason(table: &Table<'_>, expression: &Expression, row: Option<Row>) -> String {
    let wanted = format!("`{}` must be true", expression.text);
    match row {
        Some(row) => format!("{wanted}: {}", table.ran(expression).why(row as usize, table.cluster(row))),
        None => wanted,
    }
}

fn in_words(selector: &Selector, what: &str) -> Vec<String> {
    selector.requirements.iter().map(|one| format!("{what} {one}")).collect()
}

fn wanted(what: &str, requirement: &Requirement) -> String {
    match requirement {
        Requirement::Is(..) | Requirement::In(..) => format!("{what} {requirement} is required"),
        Requirement::NotIn(key, values) => format!("{what} {key} must not be {}", values.join(" or ")),
        Requirement::Exists(key) => format!("{what} {key} is required"),
        Requirement::DoesNotExist(key) => format!("{what} {key} must be absent"),
    }
}

fn found(key: &str, has: Option<&String>) -> String {
    has.map_or_else(|| "the cluster has none".to_owned(), |value| format!("the cluster has {key}={value}"))
}
