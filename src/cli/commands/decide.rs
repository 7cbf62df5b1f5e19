//! `berth decide`: the clusters that each placement picks.

use crate::flags::fleet::FleetArgs;
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{Outcome, exit_for};
use berth_base::model::{Decision, Key, Map};
use berth_base::text::some_of;
use berth_engine::state::DecisionList;

/// Decide which clusters get what
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth decide\n  berth decide --rev main -o json\n  berth decide --now 2026-01-01T00:00:00Z"
)]
pub(crate) struct DecideArgs {
    #[command(flatten)]
    fleet: FleetArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub(crate) fn cmd_decide(args: &DecideArgs, ui: &Ui) -> Outcome {
    let inputs = args.fleet.read(ui)?;
    let (_, decided, diagnostics) = inputs.decide();
    ui.diagnostics(&diagnostics);
    match args.output {
        Format::Text => ui.out(&decisions_table(&decided.decisions, ui)),
        format => {
            format.write(ResultKind::DecisionList, &DecisionList::of(decided.decisions.values()), ui);
        }
    }
    Ok(exit_for(&diagnostics))
}

/// Returns a table with one row for each decision.
pub(crate) fn decisions_table(decisions: &Map<Key, Decision>, ui: &Ui) -> String {
    let row = |(key, decision): (&Key, &Decision)| {
        let condition = decision.condition.as_ref();
        vec![
            key.kind.to_string(),
            key.full_name(),
            decision.picks.len().to_string(),
            pick_names(decision, 8),
            condition.map(|condition| condition.reason.clone()).unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = decisions.iter().map(row).collect();
    if rows.is_empty() {
        return ui.tint("no placements in this fleet", Tone::Faint);
    }
    table(&["KIND", "NAME", "N", "CLUSTERS", "CONDITION"], &rows, ui)
}

/// Lists the picked clusters by name, cut after `most`.
pub(crate) fn pick_names(decision: &Decision, most: usize) -> String {
    let names = decision.picks.iter().map(|pick| match pick.replicas {
        Some(replicas) => format!("{}={replicas}", pick.cluster),
        None => pick.cluster.to_string(),
    });
    if decision.picks.is_empty() { "none".to_owned() } else { some_of(names, most) }
}
