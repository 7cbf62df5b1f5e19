//! Warnings about placements that pick no cluster, with a summary of the reasons, and about unknown cluster
//! names.

use super::cluster_table::Table;
use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::model::placement::{NamedCluster, Placement, Source};
use berth_base::model::{Decision, Refused};
use berth_base::text::counted;

const REASONS_NAMED: usize = 3;
const CLUSTERS_NAMED: usize = 10;

/// Warns of a blocked placement, or of a placement that picks no cluster.
pub(super) fn about(
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
pub(super) fn about_names(placement: &Placement, table: &Table<'_>, diagnostics: &mut Diagnostics) {
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
