//! The division of replicas among clusters: reads the inputs of [`planner`] and applies its result.
//!
//! The inputs are the clusters' reports and the replicas of the current decision, so that a number changes
//! only where one of its inputs has changed.

pub mod order;
pub mod planner;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::case::Case;
use super::cluster_table::{Row, Table};
use super::filter::Checked;
use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::model::placement::{Division, Filter, Placement, Policy, Rule, Source};
use berth_base::model::{Cluster, Decision};
use berth_base::text::some_quoted;
use planner::{Contender, Portion, Request};

/// The most clusters that a message names.
const CLUSTERS_NAMED: usize = 3;

/// The result of a division.
pub(super) enum Divided<'a> {
    /// There is none: the policy's filters decide.
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

/// The replicas of the current decision, by cluster.
fn current(previous: Option<&Decision>) -> BTreeMap<&str, i64> {
    let picks = previous.map(|previous| previous.picks.as_slice()).unwrap_or_default();
    picks.iter().filter_map(|pick| Some((&*pick.cluster, pick.replicas?))).collect()
}

/// Returns the number of replicas that fit into a cluster, or `None` without a limit.
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

/// Warns of unknown names, lost replicas and excess ones in a division. `fresh` marks a decision that is made
/// now.
pub(super) fn warn(
    case: &Case<'_>,
    placement: &Placement,
    decision: &Decision,
    fresh: bool,
    found: &mut Diagnostics,
) {
    let Source::Own(policy) = &placement.source else { return };
    let (Some(division), None) = (policy.division.as_deref(), &policy.blocked) else { return };
    let (table, by, at) = (case.table, &division.by, &division.origin);
    let mut say = |at: &berth_base::diag::Pos, message: String, hint: Option<String>| {
        found.push(Diagnostic::warning(at.clone(), message).maybe_hint(hint));
    };
    for (name, (_, at)) in division.shares.iter().filter(|(name, _)| table.row(name).is_none()) {
        let hint = did_you_mean(name, table.rows().map(|row| table.name(row)));
        say(at, format!("{by} names `{name}`, which is not a cluster of the fleet"), hint);
    }
    let rows = taking_part(table, division, case.candidates);
    // Reading the preference has reported why no cluster can take part.
    if division.among.iter().any(|filter| matches!(filter.rule, Rule::Nowhere(_))) {
        return;
    }
    if rows.is_empty() {
        let stands = if decision.picks.iter().any(|pick| pick.replicas.is_some()) {
            "the previous division stays"
        } else {
            "the placement applies as written"
        };
        let rule = division.among.iter().map(|filter| Checked::new(table, filter, &[]).words());
        let rule = rule.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; ");
        let hint = format!("a cluster takes part if it meets all of: {rule}");
        say(at, format!("{by} divides nothing, because no cluster takes part: {stands}"), Some(hint));
        return;
    }
    let unasked = |name: &&str| division.others.is_none() && !division.shares.contains_key(*name);
    let idle: Vec<&str> =
        rows.iter().map(|row| table.name(*row)).filter(unasked).filter(|name| decision.has(name)).collect();
    if !idle.is_empty() {
        let message = format!(
            "{by} has no entry for {}, so {} has 0 replicas there",
            some_quoted(&idle, CLUSTERS_NAMED),
            placement.key
        );
        let hint = "give them an entry, or keep them out with `intersectWithClusterSelector: true`";
        say(at, message, Some(hint.to_owned()));
    }
    let running = current(case.previous);
    let running = rows.iter().filter_map(|row| running.get(table.name(*row)));
    let running = running.fold(0, |sum: i64, count| sum.saturating_add(*count));
    if fresh && !division.rebalance && running > i64::from(division.total.max(0)) {
        let message = format!(
            "{by} asks for {}, and {running} run: without `rebalance` some clusters keep all replicas and \
             others lose all",
            division.total
        );
        let hint = "set `rebalance: true` to reduce all of them by weight";
        say(at, message, Some(hint.to_owned()));
    }
    let placed = decision.picks.iter().filter_map(|pick| pick.replicas).fold(0, i64::saturating_add);
    let total = i64::from(division.total);
    let lost: Vec<&str> =
        rows.iter().map(|row| table.name(*row)).filter(|name| !decision.has(name)).collect();
    let missing = total.saturating_sub(placed);
    if missing > 0 && !lost.is_empty() {
        let message = format!(
            "{missing} of the {total} replicas of {by} run nowhere: {} took part, but {} is not placed there",
            some_quoted(&lost, CLUSTERS_NAMED),
            placement.key
        );
        let hint = "let the namespace go to these clusters, or narrow who takes part: \
                    `intersectWithClusterSelector: true`, or a `clusters` map without `*`";
        say(at, message, Some(hint.to_owned()));
    } else if missing > 0 {
        let message = format!(
            "{missing} of the {total} replicas of {by} run nowhere: no cluster may take \
                               them"
        );
        let hint = "raise a ceiling or a weight; `berth explain` shows what limits each cluster";
        say(at, message, Some(hint.to_owned()));
    } else if missing < 0 && total >= 0 {
        let message = format!("{by} asks for {placed} replicas, {} more than its total of {total}", -missing);
        let hint = "set maxReplicas to the cluster's capacity: with `rebalance: true` replicas that a \
                    cluster has no room for are requested twice, there and elsewhere";
        say(at, message, Some(hint.to_owned()));
    }
}
