//! The division of replicas among clusters: reads the inputs of [`planner`] and applies its result.
//!
//! The inputs are the clusters' reports and the replicas of the current decision, so a number changes only if
//! one of its inputs does.

pub mod order;
pub mod planner;
#[cfg(test)]
mod tests;
mod warnings;

use std::collections::BTreeMap;

use super::case::Case;
use super::cluster_table::{Row, Table};
use super::filter::Checked;
use berth_base::model::placement::{Division, Filter, Policy};
use berth_base::model::{Cluster, Decision};
use planner::{Contender, Portion, Request};

pub(super) use warnings::warn;

/// The result of a division.
pub(super) enum Divided<'a> {
    /// The policy divides nothing: its filters decide.
    Not,
    /// No cluster takes part, but some did before: the last division stays.
    Keep(&'a Division),
    Among(&'a Division, Portions<'a>),
}

/// The clusters that take part, each with its portion.
pub(super) struct Portions<'a> {
    pub(super) rows: Vec<Row>,
    pub(super) contenders: Vec<Contender<'a>>,
    pub(super) portions: Vec<Portion>,
}

impl Portions<'_> {
    pub(super) fn replicas(&self, row: Row) -> Option<i64> {
        self.rows.binary_search(&row).ok().map(|index| self.portions[index].replicas())
    }
}

pub(super) fn divide<'a>(case: &Case<'a>) -> Divided<'a> {
    let Some(division) = case.policy.division.as_deref() else { return Divided::Not };
    let rows = taking_part(case.table, division, case.candidates);
    let earlier = current(case.previous);
    if rows.is_empty() {
        return if earlier.is_empty() { Divided::Not } else { Divided::Keep(division) };
    }
    let contender = |row: &Row| {
        let cluster = case.table.cluster(*row);
        let name = &*cluster.name;
        let share = division.shares.get(name).map(|(share, _)| *share).or(division.others);
        let current = earlier.get(name).copied();
        Contender { cluster: name, share, current, capacity: room(cluster, division) }
    };
    let contenders: Vec<Contender<'a>> = rows.iter().map(contender).collect();
    let request = Request { total: division.total, rebalance: division.rebalance, key: &division.hash_key };
    let portions = planner::plan(request, &contenders);
    Divided::Among(division, Portions { rows, contenders, portions })
}

fn taking_part(table: &Table<'_>, division: &Division, candidates: &[Row]) -> Vec<Row> {
    let checks: Vec<_> = division.among.iter().map(|filter| Checked::new(table, filter, &[])).collect();
    let takes_part = |row: &Row| checks.iter().all(|check| check.refuse(*row).is_none());
    candidates.iter().copied().filter(takes_part).collect()
}

/// Returns the replicas of the current decision, by cluster.
fn current(previous: Option<&Decision>) -> BTreeMap<&str, i64> {
    let picks = previous.map(|previous| previous.picks.as_slice()).unwrap_or_default();
    picks.iter().filter_map(|pick| Some((&*pick.cluster, pick.replicas?))).collect()
}

/// Returns the number of replicas that fit into a cluster; `None` without a limit.
pub(super) fn room(cluster: &Cluster, division: &Division) -> Option<i64> {
    cluster.workloads.get(&division.workload).and_then(|report| report.capacity)
}

/// Returns the filters to use: those of a division with participants, or the policy's own.
pub(super) fn filters<'a>(policy: &'a Policy, divided: &Divided<'_>) -> Vec<&'a Filter> {
    match (divided, policy.division.as_deref()) {
        (Divided::Among(..), Some(division)) => division.among.iter().chain(&division.then).collect(),
        (Divided::Keep(_), Some(division)) => division.then.iter().collect(),
        _ => policy.filters.iter().collect(),
    }
}
