//! A filter's rule → a check of single clusters: one file per family of rules.
//!
//! A check returns a refusal as a small number, which is cheap to count. The text is made from the number
//! afterwards: coarse for a summary, precise for one cluster.

mod eligibility;
mod membership;
mod selectors;

use super::cluster_table::{Row, Table};
use berth_base::model::placement::{Filter, Rule};

pub(super) use eligibility::{eligibility, expiry, flip, is_ready, may_expire, untolerated};
pub(super) use selectors::{Needs, TermNeeds};

/// The number of a refusal's reason, in the check's own numbering.
pub(super) type Code = u32;

/// A rule that is prepared for testing clusters.
pub(super) trait Check {
    fn refuse(&self, row: Row) -> Option<Code>;
    /// Returns the rule in words.
    fn words(&self) -> String;
    /// Returns the reason behind a number, for any cluster.
    fn summary(&self, code: Code) -> String;
    /// Returns the reason for one cluster.
    fn detail(&self, code: Code, _row: Row) -> String {
        self.summary(code)
    }
}

/// A filter's check, whose reasons name the filter's source.
pub(super) struct Checked<'a> {
    pub(super) filter: &'a Filter,
    check: Box<dyn Check + 'a>,
}

impl<'a> Checked<'a> {
    /// `is_current` marks the placement's current clusters by row; empty without any.
    pub(super) fn new(table: &'a Table<'a>, filter: &'a Filter, is_current: &'a [bool]) -> Checked<'a> {
        let check: Box<dyn Check + 'a> = match &filter.rule {
            Rule::Nowhere(why) => Box::new(membership::Nowhere(why)),
            Rule::Named(wanted) => {
                Box::new(membership::NamedClusters::new(table, wanted, filter.by.as_ref()))
            }
            Rule::Labels(selector) => Box::new(selectors::Labels::new(table, selector)),
            Rule::AnyOf(terms) => Box::new(selectors::AnyOf::new(table, terms)),
            Rule::InSets(sets) => Box::new(membership::InSets::new(table, sets)),
            Rule::NotLeaving => Box::new(eligibility::NotLeaving(table)),
            Rule::Eligible(limits) => Box::new(eligibility::Eligible { table, limits: *limits }),
            Rule::Tolerates(tolerations) => {
                Box::new(eligibility::Tolerates { table, tolerations, is_current })
            }
            Rule::HoldsNamespace(namespace) => Box::new(membership::HoldsNamespace { table, namespace }),
            Rule::Ready => Box::new(eligibility::Ready(table)),
            Rule::Reachable(reach) => Box::new(membership::Reachable::new(table, reach, is_current)),
        };
        Checked { filter, check }
    }

    pub(super) fn refuse(&self, row: Row) -> Option<Code> {
        self.check.refuse(row)
    }

    pub(super) fn words(&self) -> String {
        self.check.words()
    }

    pub(super) fn summary(&self, code: Code) -> String {
        self.attributed(self.check.summary(code))
    }

    pub(super) fn detail(&self, code: Code, row: Row) -> String {
        self.attributed(self.check.detail(code, row))
    }

    fn attributed(&self, reason: String) -> String {
        match &self.filter.by {
            // A list of names mentions its owner itself.
            Some(by) if !matches!(self.filter.rule, Rule::Named(_)) => format!("{reason} (asked by {by})"),
            _ => reason,
        }
    }
}

/// Reports whether a filter reads the current picks of its own placement, so its verdict depends on more than
/// the fleet.
pub(super) fn looks_at_own_picks(filter: &Filter) -> bool {
    matches!(filter.rule, Rule::Tolerates(_) | Rule::Reachable(_))
}
