//! The division of replicas among clusters: reads the inputs of [`planner`], applies its result, and warns
//! about unknown names, lost replicas and excess ones.
//!
//! The inputs are the clusters' reports and the replicas of the current decision, so a number changes only
//! if one of its inputs does.

pub mod planner;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::cluster_table::{Row, Table};
use super::filter::Checked;
use super::own_policy::DecisionCase;
use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::model::placement::{Division, Filter, Placement, Policy, Rule, Source};
use berth_base::model::{Cluster, Decision};
use berth_base::text::some_quoted;
use planner::{Contender, Portion, Request};

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

pub(super) fn divide<'a>(case: &DecisionCase<'a>) -> Divided<'a> {
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

/// The maximal number of clusters that a message names.
const CLUSTERS_NAMED: usize = 3;

/// Warns of unknown names, lost replicas and excess ones in a division. `fresh` marks a new decision.
pub(super) fn warn(
    case: &DecisionCase<'_>,
    placement: &Placement,
    decision: &Decision,
    fresh: bool,
    found: &mut Diagnostics,
) {
    let Source::Own(policy) = &placement.source else { return };
    let (Some(division), None) = (policy.division.as_deref(), &policy.blocked) else { return };
    let (table, by) = (case.table, &division.by);
    for (name, (_, at)) in division.shares.iter().filter(|(name, _)| table.row(name).is_none()) {
        let message = format!("{by} names `{name}`, which is not a cluster of the fleet");
        let hint = did_you_mean(name, table.rows().map(|row| table.name(row)));
        found.push(Diagnostic::warning(at.clone(), message).maybe_hint(hint));
    }
    // The reader of the preference has reported why no cluster can take part.
    if division.among.iter().any(|filter| matches!(filter.rule, Rule::Nowhere(_))) {
        return;
    }
    let rows = taking_part(table, division, case.candidates);
    let outcome = DivisionOutcome { case, division, placement, decision, rows };
    let faults = match outcome.rows.is_empty() {
        true => vec![outcome.nobody_takes_part()],
        false => [outcome.clusters_without_entry(), outcome.too_many_run(fresh), outcome.wrong_sum()]
            .into_iter()
            .flatten()
            .collect(),
    };
    for (message, hint) in faults {
        found.push(Diagnostic::warning(division.origin.clone(), message).hint(hint));
    }
}

/// A finished division, and its clusters.
struct DivisionOutcome<'a> {
    case: &'a DecisionCase<'a>,
    division: &'a Division,
    placement: &'a Placement,
    decision: &'a Decision,
    rows: Vec<Row>,
}

/// A message, and its hint.
type DivisionFault = (String, String);

impl<'a> DivisionOutcome<'a> {
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.rows.iter().map(|row| self.case.table.name(*row))
    }

    fn nobody_takes_part(&self) -> DivisionFault {
        let DivisionOutcome { case, division, decision, .. } = self;
        let outcome = if decision.picks.iter().any(|pick| pick.replicas.is_some()) {
            "the previous division stays"
        } else {
            "the placement applies as written"
        };
        let rule = division.among.iter().map(|filter| Checked::new(case.table, filter, &[]).words());
        let rule = rule.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; ");
        let message =
            format!("{} divides no replicas, because no cluster takes part: {outcome}", division.by);
        (message, format!("a cluster takes part if it meets all of: {rule}"))
    }

    fn clusters_without_entry(&self) -> Option<DivisionFault> {
        let DivisionOutcome { division, placement, decision, .. } = self;
        let has_none = |name: &&str| division.others.is_none() && !division.shares.contains_key(*name);
        let idle: Vec<&str> = self.names().filter(has_none).filter(|name| decision.has(name)).collect();
        let message = format!(
            "{} has no entry for {}, so {} has 0 replicas there",
            division.by,
            some_quoted(&idle, CLUSTERS_NAMED),
            placement.key
        );
        let hint = "give them an entry, or keep them out with `intersectWithClusterSelector: true`";
        (!idle.is_empty()).then(|| (message, hint.to_owned()))
    }

    fn too_many_run(&self, fresh: bool) -> Option<DivisionFault> {
        let Division { by, total, rebalance, .. } = self.division;
        let running = current(self.case.previous);
        let running = self.names().filter_map(|name| running.get(name));
        let running = running.fold(0, |sum: i64, count| sum.saturating_add(*count));
        let message = format!(
            "{by} asks for {total}, and {running} run: without `rebalance` some clusters keep all replicas and \
             others lose all"
        );
        let is_too_many = fresh && !rebalance && running > i64::from((*total).max(0));
        is_too_many.then(|| (message, "set `rebalance: true` to reduce all of them by weight".to_owned()))
    }

    fn wrong_sum(&self) -> Option<DivisionFault> {
        let DivisionOutcome { division: Division { by, total, .. }, placement, decision, .. } = self;
        let total = i64::from(*total);
        let placed = decision.picks.iter().filter_map(|pick| pick.replicas).fold(0, i64::saturating_add);
        let lost: Vec<&str> = self.names().filter(|name| !decision.has(name)).collect();
        let missing = total.saturating_sub(placed);
        let (message, hint) = if missing > 0 && !lost.is_empty() {
            let lost = some_quoted(&lost, CLUSTERS_NAMED);
            let message = format!(
                "{missing} of the {total} replicas of {by} run nowhere: {lost} took part, but {} is not placed there",
                placement.key
            );
            let hint = "let the namespace go to these clusters, or narrow who takes part: \
                        `intersectWithClusterSelector: true`, or a `clusters` map without `*`";
            (message, hint)
        } else if missing > 0 {
            let message =
                format!("{missing} of the {total} replicas of {by} run nowhere: no cluster may take them");
            (message, "raise a ceiling or a weight; `berth explain` shows what limits each cluster")
        } else if missing < 0 && total >= 0 {
            let message =
                format!("{by} asks for {placed} replicas, {} more than its total of {total}", -missing);
            let hint = "set maxReplicas to the cluster's capacity: with `rebalance: true` replicas that a \
                        cluster has no room for are requested twice, there and elsewhere";
            (message, hint)
        } else {
            return None;
        };
        Some((message, hint.to_owned()))
    }
}
