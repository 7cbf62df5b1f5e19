//! `berth rollout list` and `berth rollout show`: the progress of rollouts, and the reasons why they wait.

use serde::Serialize;

use clap_complete::engine::ArgValueCandidates;

use super::standing::{WorkloadForm, cluster_row, or_dash, workload_row};
use crate::flags::names;
use crate::flags::names::find;
use crate::flags::record::{Record, RecordArgs};
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::model::Timestamp;
use berth_base::text::counted;
use berth_engine::rollouts::WorkloadRollout;

/// Show the rollouts of all workloads
///
/// Each workload with a strategy: its release, how many clusters have it, its state and the reason. Read from the
/// record on the rendered branch and from members' reports.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth rollout list\n  berth rollout list --repo FLEET -o json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    record: RecordArgs,
}

/// Show the rollout of a workload, cluster by cluster
///
/// For each cluster its release, its health and since when, and the reason why it waits; the stages of a staged
/// rollout; the next moment at which the rollout goes on by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth rollout show shop/web\n  berth rollout show crp/shop -o json")]
pub(crate) struct ShowArgs {
    /// NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME
    #[arg(add = ArgValueCandidates::new(names::placements))]
    workload: String,
    #[command(flatten)]
    record: RecordArgs,
}

/// The rollouts for programs.
#[derive(Serialize)]
struct RolloutList<'a> {
    workloads: Vec<WorkloadForm<'a>>,
}

pub(crate) fn cmd_list(args: &ListArgs, ui: &Ui) -> Outcome {
    let record = Record::read(&args.record, ui)?;
    let lines = WorkloadRollout::all(record.rollout_sources());
    match args.record.output {
        Format::Text if lines.is_empty() => ui.out("no workload rolls out step by step"),
        Format::Text => {
            let rows: Vec<Vec<String>> = lines.iter().map(workload_row).collect();
            let headings = ["WORKLOAD", "STRATEGY", "RELEASE", "CLUSTERS", "STATE", "REASON"];
            ui.out(table(&headings, &rows, ui).trim_end());
        }
        format => {
            let list = RolloutList { workloads: lines.iter().map(WorkloadForm::of).collect() };
            format.write(ResultKind::RolloutList, &list, ui);
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn cmd_show(args: &ShowArgs, ui: &Ui) -> Outcome {
    let record = Record::read(&args.record, ui)?;
    let keys = find(record.current.decisions.keys().collect(), &args.workload)?;
    let sources = record.rollout_sources();
    let lines: Vec<_> = keys.iter().filter_map(|key| WorkloadRollout::of(key, sources)).collect();
    if lines.is_empty() {
        let error = CommandError::usage(format!("`{}` does not roll out step by step", args.workload));
        return Err(error.hint("`berth rollout list` shows the workloads that do"));
    }
    match args.record.output {
        Format::Text => {
            let texts: Vec<String> = lines.iter().map(|line| text(line, ui)).collect();
            ui.out(texts.join("\n\n").trim_end());
        }
        format => {
            let list = RolloutList { workloads: lines.iter().map(WorkloadForm::with_details).collect() };
            format.write(ResultKind::RolloutList, &list, ui);
        }
    }
    Ok(Exit::Done)
}

fn text(line: &WorkloadRollout, ui: &Ui) -> String {
    let mut lines = vec![
        line.key.to_string(),
        format!("  strategy: {}", line.strategy),
        match line.release.zip(line.begun) {
            Some((release, begun)) => format!("  release: {release}, since {begun}"),
            None => "  release: none yet".to_owned(),
        },
        format!("  last good: {}", line.good.map_or_else(|| "none yet".to_owned(), |good| good.to_string())),
        format!("  state: {}", line.state.word()),
    ];
    let reason = Some(&line.reason).filter(|reason| !reason.is_empty());
    lines.extend(reason.map(|reason| format!("  reason: {reason}")));
    lines.extend(line.next.map(|next| format!("  next moment: {next}")));
    lines.extend(line.notes.iter().map(|note| format!("  note: {note}")));
    let mut text = lines.join("\n");
    if !line.stages.is_empty() {
        let rows: Vec<Vec<String>> = line.stages.iter().map(stage_row).collect();
        text.push_str("\n\n");
        text.push_str(table(&["STAGE", "CLUSTERS", "STARTED", "FINISHED"], &rows, ui).trim_end());
    }
    let rows: Vec<Vec<String>> = line.clusters.iter().map(cluster_row).collect();
    text.push_str("\n\n");
    text.push_str(table(&["CLUSTER", "RELEASE", "HEALTH", "SINCE", "WAITS"], &rows, ui).trim_end());
    text
}

fn stage_row(stage: &berth_base::model::staged::StageProgress) -> Vec<String> {
    let done = stage.clusters.iter().filter(|cluster| cluster.succeeded.is_some()).count();
    let moment = |at: Option<Timestamp>| or_dash(at.map(|at| at.to_string()));
    let clusters = format!("{done} of {}", counted(stage.clusters.len(), "cluster"));
    vec![stage.name.clone(), clusters, moment(stage.started), moment(stage.finished)]
}
