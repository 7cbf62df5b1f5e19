//! `berth rollout next`: the next step of every rollout, for given facts.

use std::path::PathBuf;

use serde::Serialize;

use crate::flags::fleet::FleetArgs;
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_engine::release::next_step::{self, NextStep, next_steps};
use berth_engine::release::strategies::{Turn, Version};

/// Show which clusters may take the files' content now, for facts that a file gives
///
/// The file is a JSON or YAML list with an entry for each copy that a member has:
///
///   workload   namespace/name, or the name of a cluster-scoped one
///   cluster    the member
///   has        none, old (an earlier content) or new (the content of the files)
///   status     applying, progressing, succeeded or failed
///   since      when this status began (RFC 3339)
///   available  true or false, where availability was measured
///   removing   true while the copy is being removed
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth rollout next --works works.json\n  berth rollout next -o json --previous decisions.json --works works.json --now 2026-01-01T00:00:00Z"
)]
#[command(verbatim_doc_comment)]
pub(crate) struct NextArgs {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Take from this file what members have and report
    #[arg(long, value_name = "FILE")]
    works: PathBuf,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

/// The next steps, for programs.
#[derive(Serialize)]
struct RolloutForecast<'a> {
    workloads: &'a [NextStep<'a>],
}

pub(crate) fn cmd_next(args: &NextArgs, ui: &Ui) -> Outcome {
    let file = args.works.display().to_string();
    let bytes =
        std::fs::read(&args.works).map_err(|error| CommandError::io(format!("reading {file}"), &error))?;
    let inputs = args.fleet.read(ui)?;
    let (loaded, decided, mut diagnostics) = inputs.decide();
    let (works, found) = next_step::read_works(&file, &bytes, &loaded.fleet);
    if found.has_errors() {
        ui.diagnostics(&found);
        return Ok(Exit::Usage);
    }
    diagnostics.extend(found);
    let steps = next_steps(&loaded.fleet, &decided.decisions, &works, inputs.now);
    diagnostics.extend(notes(&steps));
    ui.diagnostics(&diagnostics);
    match args.output {
        Format::Text => ui.out(&text(&steps, ui)),
        format => {
            format.write(ResultKind::RolloutForecast, &RolloutForecast { workloads: &steps }, ui);
        }
    }
    Ok(exit_for(&diagnostics))
}

fn notes(steps: &[NextStep<'_>]) -> Diagnostics {
    let mut found = Diagnostics::new();
    for NextStep { workload, step, .. } in steps {
        let warning =
            |note: &String| Diagnostic::warning(workload.origin.clone(), format!("{}: {note}", workload.key));
        found.extend(step.notes.iter().map(warning));
    }
    found
}

fn text(steps: &[NextStep<'_>], ui: &Ui) -> String {
    let mut parts: Vec<String> = steps.iter().map(|step| part(step, ui)).collect();
    if parts.is_empty() {
        parts.push(ui.tint("no workloads in this fleet", Tone::Faint));
    }
    parts.join("\n")
}

fn part(next: &NextStep<'_>, ui: &Ui) -> String {
    let NextStep { workload, turns, step, .. } = next;
    let mut text = format!("{}\n", ui.tint(&workload.key.to_string(), Tone::Strong));
    if let Some(failures) = &step.halted {
        text.push_str(&format!("{}: {}\n", ui.tint("halted", Tone::Bad), failures.words()));
    }
    if let Some(at) = step.next {
        text.push_str(&format!("without any report, the answer changes at {at}\n"));
    }
    let rows: Vec<Vec<String>> = turns.iter().filter_map(|turn| row(turn, next)).collect();
    if rows.is_empty() {
        return text + &ui.tint("no cluster is picked\n", Tone::Faint);
    }
    text + &table(&["CLUSTER", "ANSWER", "REASON"], &rows, ui)
}

/// Returns the line of one cluster; `None` for an unwanted copy without anything to report.
fn row(turn: &Turn<'_>, next: &NextStep<'_>) -> Option<Vec<String>> {
    let (step, cluster) = (&next.step, turn.cluster);
    let status = turn.health.word().to_owned();
    let (answer, reason) = if step.give.contains(cluster) {
        ("take it", String::new())
    } else if step.remove.contains(cluster) {
        ("remove it", "no longer picked".to_owned())
    } else if step.timed_out.contains(cluster) {
        ("has it", format!("{status}, past the deadline"))
    } else if turn.picked && turn.has == Version::New {
        ("has it", status)
    } else {
        ("wait", step.waits.get(cluster)?.to_string())
    };
    Some(vec![cluster.to_owned(), answer.to_owned(), reason])
}
