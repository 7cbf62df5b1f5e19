//! `berth rollout stages`: the stages of a staged run, with their clusters in order.

use serde::Serialize;

use crate::flags::fleet::FleetArgs;
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use berth_base::diag::did_you_mean;
use berth_base::model::Fleet;
use berth_base::model::rollout::StageTask;
use berth_base::model::staged::{Run, StageProgress};
use berth_base::text::some_of;
use berth_engine::release::runs;
use berth_engine::release::stages::ClusterLabels;

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
    let run = match find(&loaded.fleet, args.run.as_deref()) {
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
        Format::Text => ui.out(&text(run, &stages, ui)),
        format => format.write(ResultKind::StageList, &StageList::of(run, &stages), ui),
    }
    Ok(exit_for(&diagnostics))
}

/// Returns the run with this name, or the only one.
fn find<'f>(fleet: &'f Fleet, wanted: Option<&str>) -> Result<&'f Run, CommandError> {
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
    stages: Vec<StageForm<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StageForm<'a> {
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
        let stage = |stage: &'a StageProgress| StageForm {
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

fn text(run: &Run, stages: &[StageProgress], ui: &Ui) -> String {
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
