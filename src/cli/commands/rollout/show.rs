//! The commands that only look. `berth rollout list` and `berth rollout show`: the progress of rollouts, and the reasons
//! why they wait. `berth rollout next`: the next step of every rollout, for given facts. `berth rollout stages`: the
//! stages of a staged run, with their clusters in order.

use std::path::PathBuf;

use clap_complete::engine::ArgValueCandidates;
use serde::Serialize;

use super::progress::{WorkloadRolloutForm, cluster_row, or_dash, picture_of_stage, workload_row};
use super::timeline::timeline;
use crate::flags::fleet::FleetArgs;
use crate::flags::names::{self, find};
use crate::flags::state::{Record, RecordArgs};
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::model::rollout::StageTask;
use berth_base::model::staged::{Run, StageProgress};
use berth_base::model::{Fleet, Timestamp};
use berth_base::text::{counted, some_of};
use berth_engine::release::next_step::{self, NextStep, next_steps};
use berth_engine::release::runs;
use berth_engine::release::stages::ClusterLabels;
use berth_engine::release::strategies::{Turn, Version};
use berth_engine::rollouts::RolloutProgress;

/// Show the rollouts of all workloads
///
/// Each workload with a strategy: its release, how many clusters have it, its state and the reason. In the picture of the
/// progress, `#` is a cluster where the release succeeded, `>` one on its way, `x` a failed one, `.` one to come, and `|`
/// stands between stages. Read from the record on the rendered branch and from members' reports.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth rollout list\n  berth rollout list --repo FLEET -o json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    record: RecordArgs,
}

/// Show the rollout of a workload, cluster by cluster
///
/// For each cluster its release, its health and since when, and the reason why it waits; the stages of a staged
/// rollout; the next moment at which the rollout goes on by itself. A picture shows the rollout over time, with the
/// marks of `berth rollout list`; a line of several clusters shows the worst of them.
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
    workloads: Vec<WorkloadRolloutForm<'a>>,
}

pub(crate) fn cmd_list(args: &ListArgs, ui: &Ui) -> Outcome {
    let record = Record::read(&args.record, ui)?;
    let lines = RolloutProgress::all(record.rollout_sources());
    match args.record.output {
        Format::Text if lines.is_empty() => ui.out("no workload rolls out step by step"),
        Format::Text => {
            let rows: Vec<Vec<String>> = lines.iter().map(workload_row).collect();
            let headings = ["WORKLOAD", "STRATEGY", "RELEASE", "CLUSTERS", "PROGRESS", "STATE", "REASON"];
            ui.out(table(&headings, &rows, ui).trim_end());
        }
        format => {
            let list = RolloutList { workloads: lines.iter().map(WorkloadRolloutForm::of).collect() };
            format.write(ResultKind::RolloutList, &list, ui);
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn cmd_show(args: &ShowArgs, ui: &Ui) -> Outcome {
    let record = Record::read(&args.record, ui)?;
    let keys = find(record.current.decisions.keys().collect(), &args.workload)?;
    let sources = record.rollout_sources();
    let lines: Vec<_> = keys.iter().filter_map(|key| RolloutProgress::of(key, sources)).collect();
    if lines.is_empty() {
        let error = CommandError::usage(format!("`{}` does not roll out step by step", args.workload));
        return Err(error.hint("`berth rollout list` shows the workloads that do"));
    }
    match args.record.output {
        Format::Text => {
            let texts: Vec<String> = lines.iter().map(|line| rollout_text(line, record.now, ui)).collect();
            ui.out(texts.join("\n\n").trim_end());
        }
        format => {
            let list =
                RolloutList { workloads: lines.iter().map(WorkloadRolloutForm::with_details).collect() };
            format.write(ResultKind::RolloutList, &list, ui);
        }
    }
    Ok(Exit::Done)
}

fn rollout_text(line: &RolloutProgress, now: Timestamp, ui: &Ui) -> String {
    let mut lines = vec![
        line.key.to_string(),
        format!("  strategy: {}", line.strategy.unwrap_or("-")),
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
        let rows: Vec<Vec<String>> = line.stages.iter().map(|stage| stage_row(line, stage)).collect();
        text.push_str("\n\n");
        text.push_str(table(&["STAGE", "CLUSTERS", "PROGRESS", "STARTED", "FINISHED"], &rows, ui).trim_end());
    }
    text.extend(timeline(line, now, ui).map(|drawn| format!("\n\n{drawn}")));
    let rows: Vec<Vec<String>> = line.clusters.iter().map(cluster_row).collect();
    text.push_str("\n\n");
    text.push_str(table(&["CLUSTER", "RELEASE", "HEALTH", "SINCE", "WAITS"], &rows, ui).trim_end());
    text
}

fn stage_row(line: &RolloutProgress, stage: &StageProgress) -> Vec<String> {
    let done = stage.clusters.iter().filter(|cluster| cluster.succeeded.is_some()).count();
    let moment = |at: Option<Timestamp>| or_dash(at.map(|at| at.to_string()));
    let clusters = format!("{done} of {}", counted(stage.clusters.len(), "cluster"));
    let picture = picture_of_stage(line, stage);
    vec![stage.name.clone(), clusters, picture, moment(stage.started), moment(stage.finished)]
}

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
        Format::Text => ui.out(&forecast_text(&steps, ui)),
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

fn forecast_text(steps: &[NextStep<'_>], ui: &Ui) -> String {
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

/// The clusters that a row shows.
const SHOWN: usize = 8;

/// Show the stages of a staged run: their clusters in order, how many go at a time, what is waited for
///
/// The stages are worked out from the files as they are now, as a run works them out when it begins.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth rollout stages\n  berth rollout stages web-2 -o json\n  berth rollout stages shop/web-2"
)]
pub(crate) struct StagesArgs {
    /// The run, as NAME or NAMESPACE/NAME; may be left out if the fleet has only one
    run: Option<String>,
    #[command(flatten)]
    fleet: FleetArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub(super) fn cmd_stages(args: &StagesArgs, ui: &Ui) -> Outcome {
    let inputs = args.fleet.read(ui)?;
    let (loaded, decided, mut diagnostics) = inputs.decide();
    let run = match find_run(&loaded.fleet, args.run.as_deref()) {
        Ok(run) => run,
        Err(error) => {
            ui.diagnostics(&diagnostics);
            return Err(error);
        }
    };
    let labels = ClusterLabels::of(&loaded.fleet, &decided.facts);
    let planned = runs::plan_run(&loaded.fleet, &labels, decided.decisions.get(&run.workload), run);
    let stages = match planned {
        Ok(stages) => stages,
        Err(faults) => {
            diagnostics.extend(runs::diagnostics(&loaded.fleet, run, &faults));
            diagnostics.sort();
            ui.diagnostics(&diagnostics);
            return Ok(Exit::Faulty);
        }
    };
    ui.diagnostics(&diagnostics);
    match args.output {
        Format::Text => ui.out(&stages_text(run, &stages, ui)),
        format => format.write(ResultKind::StageList, &StageList::of(run, &stages), ui),
    }
    Ok(exit_for(&diagnostics))
}

/// Returns the run with this name, or the only one.
fn find_run<'f>(fleet: &'f Fleet, wanted: Option<&str>) -> Result<&'f Run, CommandError> {
    let fits =
        |run: &&Run| wanted.is_none_or(|wanted| *run.key.name == *wanted || run.key.full_name() == wanted);
    let found: Vec<&Run> = fleet.runs.values().filter(fits).collect();
    let names = || fleet.runs.values().map(|run| run.key.full_name()).collect::<Vec<_>>();
    match (found.as_slice(), wanted) {
        ([run], _) => Ok(run),
        ([], Some(wanted)) => {
            let error = CommandError::new(Exit::Faulty, format!("no staged run `{wanted}` in this fleet"));
            let names = names();
            Err(match did_you_mean(wanted, names.iter().map(String::as_str)) {
                Some(near) => error.hint(near),
                None => error,
            })
        }
        ([], None) => Err(CommandError::new(Exit::Faulty, "this fleet has no staged run that can be read")
            .hint("write a ClusterStagedUpdateRun, or mend the one that is faulty")),
        _ => Err(CommandError::usage("this fleet has several staged runs")
            .hint(format!("name one: {}", some_of(names(), SHOWN)))),
    }
}

/// The stages of a run, for programs.
#[derive(Serialize)]
struct StageList<'a> {
    run: String,
    placement: String,
    strategy: String,
    stages: Vec<StagePlanForm<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StagePlanForm<'a> {
    name: &'a str,
    clusters: Vec<&'a str>,
    max_concurrency: usize,
    before_stage_tasks: Vec<&'static str>,
    after_stage_tasks: Vec<&'static str>,
}

impl<'a> StageList<'a> {
    fn of(run: &Run, stages: &'a [StageProgress]) -> StageList<'a> {
        let tasks = |tasks: &[StageTask]| {
            let word = |task: &StageTask| match task {
                StageTask::Approval => "Approval",
                StageTask::Wait(_) => "TimedWait",
            };
            tasks.iter().map(word).collect()
        };
        let stage = |stage: &'a StageProgress| StagePlanForm {
            name: &stage.name,
            clusters: stage.clusters.iter().map(|cluster| cluster.name.as_str()).collect(),
            max_concurrency: stage.most_at_a_time(),
            before_stage_tasks: tasks(&stage.before),
            after_stage_tasks: tasks(&stage.after),
        };
        StageList {
            run: run.key.full_name(),
            placement: run.workload.full_name(),
            strategy: run.strategy.full_name(),
            stages: stages.iter().map(stage).collect(),
        }
    }
}

fn stages_text(run: &Run, stages: &[StageProgress], ui: &Ui) -> String {
    let row = |(index, stage): (usize, &StageProgress)| {
        let clusters = some_of(stage.clusters.iter().map(|cluster| &cluster.name), SHOWN);
        vec![
            (index + 1).to_string(),
            stage.name.clone(),
            tasks_text(&stage.before),
            stage.clusters.len().to_string(),
            stage.most_at_a_time().to_string(),
            if stage.clusters.is_empty() { "none".to_owned() } else { clusters },
            tasks_text(&stage.after),
        ]
    };
    let rows: Vec<_> = stages.iter().enumerate().map(row).collect();
    if rows.is_empty() {
        return ui.tint(&format!("{} has no stages", run.strategy), Tone::Faint);
    }
    let headings = ["#", "STAGE", "BEFORE", "N", "AT A TIME", "CLUSTERS", "AFTER"];
    format!("{} rolls out {} by {}\n\n{}", run.key, run.workload, run.strategy, table(&headings, &rows, ui))
}

fn tasks_text(tasks: &[StageTask]) -> String {
    let text = |task: &StageTask| match task {
        StageTask::Approval => "approval".to_owned(),
        StageTask::Wait(seconds) => format!("wait {}", duration(*seconds)),
    };
    tasks.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Writes a duration such as `1h30m`.
fn duration(seconds: i64) -> String {
    let parts = [(seconds / 3600, "h"), (seconds % 3600 / 60, "m"), (seconds % 60, "s")];
    let shown =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, unit)| format!("{number}{unit}"));
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn a_time_is_shown_without_its_empty_parts() {
        assert_eq!([3600, 5400, 45, 3661].map(duration), ["1h", "1h30m", "45s", "1h1m1s"]);
    }
}
