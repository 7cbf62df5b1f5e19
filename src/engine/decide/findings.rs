//! The recorder of a decision's findings. A pass only counts them; [`trace`](super::trace) has the other
//! recorder.
//!
//! From the counts come the warnings about placements that pick no cluster, with a summary of the reasons;
//! others are about unknown cluster names.

use std::collections::BTreeMap;

use super::cluster_table::{Row, Table};
use super::divide::Divided;
use super::filter::{Checked, Code};
use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::model::placement::{NamedCluster, Placement, Source};
use berth_base::model::{Decision, Refused};
use berth_base::text::counted;

/// Records the verdicts on each cluster.
pub(super) trait Recorder {
    /// Records the division of replicas, before any cluster is picked.
    fn divided(&mut self, _divided: &Divided<'_>) {}

    /// Records that a filter, given by its index, refused the cluster.
    fn refused(&mut self, row: Row, filter: usize, code: Code);

    /// Records that the cluster is a current pick and stays.
    fn kept(&mut self, _row: Row) {}

    /// Records that the cluster passed but is not picked.
    fn not_chosen_with(&mut self, row: Row, reason: impl FnOnce() -> String);

    fn not_chosen(&mut self, row: Row, reason: &str) {
        self.not_chosen_with(row, || reason.to_owned());
    }

    /// Records that these clusters are not picked, all for one reason.
    fn none_chosen(&mut self, rows: &[Row], reason: &str) {
        rows.iter().for_each(|row| self.not_chosen(*row, reason));
    }

    /// Records that the cluster is or could be picked, but is one too many; each such cluster has its own
    /// reason.
    fn dropped(&mut self, row: Row, reason: &str);

    /// Records the filters, after all clusters have passed through them.
    fn checks(&mut self, checks: &[Checked<'_>]);

    /// Reports whether clusters that are not picked must be sorted too.
    fn wants_ranks(&self) -> bool {
        false
    }

    /// Records the clusters that passed, one list of scores per scorer, and their order, best first.
    fn ranked(&mut self, _passed: &[Row], _parts: &[Vec<i64>], _order: &[u32]) {}
}

/// Counts the refused clusters by reason.
#[derive(Default)]
pub(super) struct RefusalCounts {
    by_code: Vec<Vec<usize>>,
    /// The reason and number of the clusters that were not chosen, if all share the reason.
    not_chosen: Option<(String, usize)>,
    by_reason: BTreeMap<String, usize>,
}

impl Recorder for RefusalCounts {
    fn refused(&mut self, _row: Row, filter: usize, code: Code) {
        let code = code as usize;
        if self.by_code.len() <= filter {
            self.by_code.resize(filter + 1, Vec::new());
        }
        let counts = &mut self.by_code[filter];
        if counts.len() <= code {
            counts.resize(code + 1, 0);
        }
        counts[code] += 1;
    }

    fn not_chosen_with(&mut self, _row: Row, reason: impl FnOnce() -> String) {
        self.not_chosen.get_or_insert_with(|| (reason(), 0)).1 += 1;
    }

    fn none_chosen(&mut self, rows: &[Row], reason: &str) {
        if !rows.is_empty() {
            self.not_chosen.get_or_insert_with(|| (reason.to_owned(), 0)).1 += rows.len();
        }
    }

    fn dropped(&mut self, _row: Row, reason: &str) {
        *self.by_reason.entry(reason.to_owned()).or_default() += 1;
    }

    fn checks(&mut self, checks: &[Checked<'_>]) {
        for (check, counts) in checks.iter().zip(&self.by_code) {
            for (code, clusters) in counts.iter().enumerate().filter(|(_, clusters)| **clusters > 0) {
                let reason = check.summary(super::cluster_table::number(code));
                *self.by_reason.entry(reason).or_default() += clusters;
            }
        }
    }
}

impl RefusalCounts {
    /// Returns the counts, the most frequent reason first.
    pub(super) fn finish(mut self) -> Vec<Refused> {
        if let Some((reason, clusters)) = self.not_chosen {
            *self.by_reason.entry(reason).or_default() += clusters;
        }
        let one = |(reason, clusters)| Refused { reason, clusters };
        let mut refused: Vec<_> = self.by_reason.into_iter().map(one).collect();
        // The sort is stable, so equal counts stay in the order of their reasons.
        refused.sort_by_key(|one| std::cmp::Reverse(one.clusters));
        refused
    }
}

const REASONS_NAMED: usize = 3;
const CLUSTERS_NAMED: usize = 10;

/// Warns of a blocked placement, or of a placement that picks no cluster.
pub(super) fn warn_about(
    placement: &Placement,
    decision: &Decision,
    table: &Table<'_>,
    diagnostics: &mut Diagnostics,
) {
    let message = decision.condition.as_ref().map(|condition| condition.message.as_str()).unwrap_or_default();
    let blocked = matches!(&placement.source, Source::Own(policy) if policy.blocked.is_some());
    let mut at = &placement.origin;
    let text = if blocked {
        format!("{}: {message}", decision.key)
    } else if decision.picks.is_empty() {
        let named = placement.named.first();
        let lost = named.filter(|_| unknown(placement, table).count() == placement.named.len());
        at = lost.map_or(at, |named| &named.at);
        let why = match decision.refused.as_slice() {
            _ if lost.is_some() => "none of the clusters that it names exists".to_owned(),
            [] if message.is_empty() => "there is no candidate".to_owned(),
            [] => message.to_owned(),
            refused => summed_up(refused),
        };
        format!("{} picks no cluster: {why}", decision.key)
    } else {
        return;
    };
    diagnostics.push(Diagnostic::warning(at.clone(), text));
}

/// Warns of each cluster name in a placement that the fleet does not have, at the place of the name.
pub(super) fn warn_about_names(placement: &Placement, table: &Table<'_>, diagnostics: &mut Diagnostics) {
    let unknown: Vec<&NamedCluster> = unknown(placement, table).collect();
    let key = &placement.key;
    for NamedCluster { name, at } in unknown.iter().take(CLUSTERS_NAMED) {
        let message = format!("{key} names `{name}`, which is not a cluster of the fleet");
        let hint = did_you_mean(name, table.rows().map(|row| table.name(row)));
        diagnostics.push(Diagnostic::warning(at.clone(), message).maybe_hint(hint));
    }
    if let Some(next) = unknown.get(CLUSTERS_NAMED) {
        let count = unknown.len() - CLUSTERS_NAMED;
        let message = format!("{key} names {count} more that are not clusters of the fleet");
        diagnostics.push(Diagnostic::warning(next.at.clone(), message));
    }
}

/// Returns the cluster names in a placement that the fleet does not have.
fn unknown<'p>(placement: &'p Placement, table: &Table<'_>) -> impl Iterator<Item = &'p NamedCluster> {
    placement.named.iter().filter(|named| table.row(&named.name).is_none())
}

fn summed_up(refused: &[Refused]) -> String {
    let one = |refused: &Refused| format!("{} ({})", refused.reason, counted(refused.clusters, "cluster"));
    let mut parts: Vec<_> = refused.iter().take(REASONS_NAMED).map(one).collect();
    let rest: usize = refused.iter().skip(REASONS_NAMED).map(|refused| refused.clusters).sum();
    if rest > 0 {
        parts.push(format!("other reasons ({})", counted(rest, "cluster")));
    }
    parts.join(", ")
}
