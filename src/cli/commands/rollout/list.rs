//! `berth rollout list` and `berth rollout show`: how far the rollouts of workloads are, and why they wait.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use clap_complete::engine::ArgValueCandidates;

use super::super::exit::{CommandError, Exit, Outcome};
use super::super::explain::find;
use super::super::fleet::{Format, moment};
use super::super::names;
use super::super::state::StateArgs;
use super::super::table::table;
use super::super::ui::Ui;
use super::standing::{ClusterLine, WorkloadLine};
use berth_base::model::{Key, Timestamp};
use berth_base::text::counted;
use berth_engine::pipeline::Built;
use berth_engine::state::State;
use berth_git::{GitContents, Repo};
use berth_hub::inputs::{LocatedState, PassInputs};

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

/// The record to read
#[derive(Clone, Debug, clap::Args)]
struct RecordArgs {
    /// The fleet repository
    #[arg(long, value_name = "PATH", default_value = ".", env = "BERTH_REPO")]
    repo: PathBuf,
    #[command(flatten)]
    state: StateArgs,
    /// Tell the reasons for this moment (RFC 3339), in place of now
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<Timestamp>,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

/// The record, and the step that a pass would make now.
struct Record {
    current: State,
    built: Built,
    now: Timestamp,
}

impl Record {
    fn read(args: &RecordArgs, ui: &Ui) -> Result<Record, CommandError> {
        let repo = Repo::open(&args.repo)?;
        let search = args.state.search(&args.repo)?;
        let located = LocatedState::find(&repo, &search)?;
        ui.status(&format!("reading {}", located.words()));
        let Some(current) = located.current else {
            let error = CommandError::usage("nothing is published yet");
            return Err(error.hint("publish with `berth run --once`"));
        };
        // A source that changes nothing makes no publication, and may pause or pin all the same.
        let processed = located.processed.as_ref().map(|processed| processed.source);
        let sources = processed.into_iter().chain(current.trailers.source);
        let source = sources.into_iter().find(|source| repo.has_commit(*source));
        let Some(source) = source else {
            let error = CommandError::usage("the source of the current state is not in this clone");
            return Err(error.hint("fetch the branch that people edit"));
        };
        let now = args.now.unwrap_or_else(Timestamp::now);
        let source = source.to_string();
        let inputs = ui.watching("reading the fleet", || {
            PassInputs::revision(&args.repo, &source, Some(now), None, &search)
        })?;
        ui.diagnostics(&inputs.odd_reports);
        // Copies are compared with the published ones, so that they need Git's ids.
        let built = inputs.build(&mut GitContents::remembering(&repo)?)?;
        Ok(Record { current: current.state, built, now })
    }

    fn line(&self, key: &Key) -> Option<WorkloadLine> {
        WorkloadLine::of(key, &self.current, &self.built, self.now)
    }
}

pub(crate) fn cmd_list(args: &ListArgs, ui: &Ui) -> Outcome {
    let record = Record::read(&args.record, ui)?;
    let lines: Vec<WorkloadLine> =
        record.current.releases.keys().filter_map(|key| record.line(key)).collect();
    match args.record.output {
        Format::Text if lines.is_empty() => ui.out("no workload rolls out step by step"),
        Format::Text => {
            let rows: Vec<Vec<String>> = lines.iter().map(WorkloadLine::row).collect();
            let headings = ["WORKLOAD", "STRATEGY", "RELEASE", "CLUSTERS", "STATE", "REASON"];
            ui.out(table(&headings, &rows).trim_end());
        }
        format => {
            let workloads: Vec<Json> = lines.iter().map(WorkloadLine::json).collect();
            format.write(&json!({"workloads": workloads}), ui);
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn cmd_show(args: &ShowArgs, ui: &Ui) -> Outcome {
    let record = Record::read(&args.record, ui)?;
    let keys = find(record.current.decisions.keys().collect(), &args.workload)?;
    let lines: Vec<WorkloadLine> = keys.iter().filter_map(|key| record.line(key)).collect();
    if lines.is_empty() {
        let error = CommandError::usage(format!("`{}` does not roll out step by step", args.workload));
        return Err(error.hint("`berth rollout list` shows the workloads that do"));
    }
    match args.record.output {
        Format::Text => {
            let texts: Vec<String> = lines.iter().map(text).collect();
            ui.out(texts.join("\n\n").trim_end());
        }
        format => {
            let shown: Vec<Json> = lines.iter().map(WorkloadLine::json_in_full).collect();
            match shown.as_slice() {
                [one] => format.write(one, ui),
                all => format.write(&json!({"workloads": all}), ui),
            }
        }
    }
    Ok(Exit::Done)
}

fn text(line: &WorkloadLine) -> String {
    let mut lines = vec![
        line.key.to_string(),
        format!("  strategy: {}", line.strategy),
        format!("  release: {}, since {}", line.release, line.begun),
        format!("  last good: {}", line.good.map_or_else(|| "none yet".to_owned(), |good| good.to_string())),
        format!("  state: {}", line.state),
    ];
    let reason = Some(&line.reason).filter(|reason| !reason.is_empty());
    lines.extend(reason.map(|reason| format!("  reason: {reason}")));
    lines.extend(line.next.map(|next| format!("  next moment: {next}")));
    lines.extend(line.notes.iter().map(|note| format!("  note: {note}")));
    let mut text = lines.join("\n");
    if !line.stages.is_empty() {
        let rows: Vec<Vec<String>> = line.stages.iter().map(stage_row).collect();
        text.push_str("\n\n");
        text.push_str(table(&["STAGE", "CLUSTERS", "STARTED", "FINISHED"], &rows).trim_end());
    }
    let rows: Vec<Vec<String>> = line.clusters.iter().map(ClusterLine::row).collect();
    text.push_str("\n\n");
    text.push_str(table(&["CLUSTER", "RELEASE", "HEALTH", "SINCE", "WAITS"], &rows).trim_end());
    text
}

fn stage_row(stage: &berth_base::model::staged::StageProgress) -> Vec<String> {
    let done = stage.clusters.iter().filter(|cluster| cluster.succeeded.is_some()).count();
    let moment = |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    let clusters = format!("{done} of {}", counted(stage.clusters.len(), "cluster"));
    vec![stage.name.clone(), clusters, moment(stage.started), moment(stage.finished)]
}
