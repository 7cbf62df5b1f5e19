//! Warnings of placements that pick no cluster, with the reasons summed up, and of unknown names of
//! clusters.

use super::cluster_table::Table;
use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::model::placement::{Placement, Policy, Rule, Source};
use berth_base::model::{Decision, Refused};
use berth_base::text::{counted, some_quoted};

const REASONS_NAMED: usize = 3;
const CLUSTERS_NAMED: usize = 3;

/// Warns of a blocked placement, or of one that picks no cluster.
pub(super) fn about(placement: &Placement, decision: &Decision, diagnostics: &mut Diagnostics) {
    let message = decision.condition.as_ref().map(|condition| condition.message.as_str()).unwrap_or_default();
    let blocked = matches!(&placement.source, Source::Own(policy) if policy.blocked.is_some());
    let text = if blocked {
        format!("{}: {message}", decision.key)
    } else if decision.picks.is_empty() {
        let why = match decision.refused.as_slice() {
            [] if message.is_empty() => "there is no candidate".to_owned(),
            [] => message.to_owned(),
            refused => summed_up(refused),
        };
        format!("{} picks no cluster: {why}", decision.key)
    } else {
        return;
    };
    diagnostics.push(Diagnostic::warning(placement.origin.clone(), text));
}

/// Warns of clusters that a placement names and the fleet does not have.
pub(super) fn about_names(
    placement: &Placement,
    policy: &Policy,
    table: &Table<'_>,
    diagnostics: &mut Diagnostics,
) {
    // Names from a namespace are reported at the namespace.
    for filter in policy.filters.iter().filter(|filter| filter.by.is_none()) {
        let Rule::Named(names) = &filter.rule else { continue };
        let unknown: Vec<&String> = names.iter().filter(|name| table.row(name).is_none()).collect();
        let Some(first) = unknown.first() else { continue };
        let are = if unknown.len() == 1 { "is not a cluster" } else { "are not clusters" };
        let names = some_quoted(&unknown, CLUSTERS_NAMED);
        let message = format!("{} names {names}, which {are} of the fleet", placement.key);
        let hint = did_you_mean(first, table.rows().map(|row| table.name(row)));
        diagnostics.push(Diagnostic::warning(placement.origin.clone(), message).maybe_hint(hint));
    }
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
