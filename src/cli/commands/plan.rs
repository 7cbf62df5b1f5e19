//! `berth plan`: the effects of a change, removals first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value as Json;

use crate::commands::site::{ChangePageArgs, ToShow};
use crate::flags::fleet::RepoArg;
use crate::output::changes::{conflicts_json, object_diff};
use crate::output::plan_forms::PlanReport;
use crate::output::plan_forms::json::ReportForm;
use crate::output::results::ResultKind;
use crate::output::ui::Ui;
use crate::planning::combination::combine;
use crate::planning::planned::{FailOn, PlanRequest, Planned, Revisions, StepArgs};
use crate::planning::rehearsal::Revision;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::model::{ContentId, Timestamp};
use berth_base::text::{counted, some_of};
use berth_engine::gate::Deadline;
use berth_engine::plan::ObjectChange;
use berth_git::Repo;
use berth_hub::inputs::LocatedState;

/// The number of clusters that a diff names.
const MOST_NAMED: usize = 8;

/// Show what a change does to every cluster
///
/// Shows where the change leads from the current state once the head was merged into the source branch: all that differs
/// when every rollout is done, in how many steps, and what comes with the first. With --base, the same from the state
/// that the base gives, once the head was merged into the base.
/// Nothing is written. Files that the two sides changed in ways that do not go together end with 1, a state or a
/// history that is missing in this clone with 6, and a state that `run` would not go on from with 5. Equal
/// changes are shown once, with the workloads and clusters they are for; JSON and YAML have every object. A plan
/// of many causes ends after those that matter most, unless -v is given. Refusals, held workloads and deadlines
/// are never cut. A plan that is longer than the terminal opens in BERTH_PAGER, PAGER or `less`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth plan\n  berth plan --base main --head my-change --diff\n  berth plan --head my-change --with her-change,his-change\n  berth plan --fail-on warnings,held -o markdown"
)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    repo: RepoArg,
    /// Begin with the state of this revision, and merge into the revision
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Revision to plan
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    head: String,
    /// Branch to merge into; default: the one that `run` reads, as far as this clone knows
    #[arg(long, value_name = "BRANCH", env = "BERTH_SOURCE", conflicts_with = "base")]
    source: Option<String>,
    /// Plan the head unmerged: commits that it lacks show as reverted
    #[arg(long)]
    no_merge: bool,
    /// Plan this branch as well, merged after the head, and name what comes about only together; several are
    /// separated by commas
    #[arg(long, value_name = "BRANCH", value_delimiter = ',', conflicts_with = "no_merge")]
    with: Vec<String>,
    /// Show each object's difference in the end, and the objects that deadlines of the change remove
    #[arg(long)]
    diff: bool,
    /// Fail where there is any of these, separated by commas
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    #[arg(short, long, value_enum, default_value = "text")]
    output: PlanFormat,
    #[command(flatten)]
    page: ChangePageArgs,
    #[command(flatten)]
    step: StepArgs,
}

/// The forms of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PlanFormat {
    /// For people
    Text,
    Json,
    Yaml,
    /// One comment for a pull request
    Markdown,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands of GitHub and Gitea, which annotate the changed lines
    Annotations,
    /// GitLab's code quality report
    CodeQuality,
}

pub(crate) fn cmd_plan(args: &PlanArgs, ui: &Ui, verbose: u8) -> Outcome {
    if args.diff && args.output != PlanFormat::Text {
        let error = CommandError::usage("--diff works only with text output");
        return Err(error.hint("read the objects from Git by the paths in the plan"));
    }
    let repo = Repo::rehearsal(&args.repo.path)?.watched(ui.progress());
    let mut asked = gather(args, &repo, ui)?;
    let mut alone = None;
    if !args.with.is_empty() {
        let branches = (args.with.as_slice(), args.source.as_deref());
        let (combined, each) = combine(&args.step, &repo, asked, branches, ui)?;
        (asked, alone) = (combined, Some(each));
    }
    let rehearsed = ui.watching("reading the fleet", || asked.rehearse(&args.step, &repo, ui.now()))?;
    ui.status(&asked.words());
    let planned = Planned::of(&args.step, &repo, &asked, rehearsed, ui)?;
    planned.show_diagnostics(verbose > 0, ui);
    let words = asked.words();
    let together = alone.map(|alone| alone.compared(&repo, &planned));
    let report = PlanReport { together: together.as_ref(), ..planned.report(&words) };
    match args.output {
        PlanFormat::Text => {
            let mut text = report.text(verbose > 0, ui);
            if args.diff {
                text.push_str(&differences(&planned, &repo, ui)?);
            }
            ui.paged(&text);
        }
        PlanFormat::Json => ui.json(&plan_json(&planned, &asked, &report)),
        PlanFormat::Yaml => ui.yaml(&plan_json(&planned, &asked, &report)),
        PlanFormat::Markdown => ui.out(&report.markdown()),
        PlanFormat::Sarif => ui.json(&report.sarif()),
        PlanFormat::Annotations => ui.workflow_commands(&report.workflow_commands()),
        PlanFormat::CodeQuality => ui.json(&report.code_quality()),
    }
    let to_show = ToShow {
        repo: &repo,
        path: &args.repo.path,
        state: &args.step.state,
        request: &asked,
        planned: &planned,
        report: &report,
    };
    args.page.write(&to_show, ui)?;
    let conflicts = together.is_some_and(|together| !together.conflicts.is_empty());
    Ok(planned.exit(&args.fail_on).worst(if conflicts { Exit::Faulty } else { Exit::Done }))
}

fn gather(args: &PlanArgs, repo: &Repo, ui: &Ui) -> Result<PlanRequest, CommandError> {
    let located = args.step.locate(&args.repo.path, repo, ui)?;
    let revision = |name: &String| -> Result<Revision, CommandError> {
        Ok(Revision { name: name.clone(), commit: repo.require(name)? })
    };
    let revisions = Revisions {
        base: args.base.as_ref().map(revision).transpose()?,
        head: revision(&args.head)?,
        source: args.source.as_deref(),
        is_merged: !args.no_merge,
    };
    PlanRequest::gather(located, revisions, repo, |files| match args.output {
        PlanFormat::Json => ui.json(&conflicts_json(files)),
        PlanFormat::Yaml => ui.yaml(&conflicts_json(files)),
        _ => {}
    })
}

/// Shows the difference of each object. Equal differences are shown once, with all their clusters.
fn differences(planned: &Planned, repo: &Repo, ui: &Ui) -> Result<String, CommandError> {
    let read = |id: Option<ContentId>| id.map(|id| repo.blob(id)).transpose();
    let mut alike: BTreeMap<_, (Vec<&str>, usize)> = BTreeMap::new();
    for change in planned.wanted.changes() {
        let (clusters, later) = alike.entry((&change.path, change.before, change.after)).or_default();
        clusters.push(&change.cluster);
        *later += usize::from(planned.is_later(change));
    }
    let mut text = String::new();
    for change in planned.wanted.changes() {
        if let Some((clusters, later)) = alike.remove(&(&change.path, change.before, change.after)) {
            text.push_str(&object_diff(change, read(change.before)?, read(change.after)?, ui));
            if let [_, others @ ..] = clusters.as_slice()
                && !others.is_empty()
            {
                let _ = writeln!(text, "(the same in {})", some_of(others, MOST_NAMED));
            }
            if later > 0 {
                let _ = writeln!(text, "({later} of {} later)", counted(clusters.len(), "cluster"));
            }
        }
    }
    text.push_str(&removals_by_deadlines(planned, repo, ui)?);
    Ok(text)
}

/// Shows the objects that deadlines of the change remove. Equal ones are shown once.
fn removals_by_deadlines(planned: &Planned, repo: &Repo, ui: &Ui) -> Result<String, CommandError> {
    let mut text = String::new();
    for Deadline { at, places, .. } in &planned.step.deadlines {
        let mut clusters: BTreeMap<_, usize> = BTreeMap::new();
        let removals: Vec<ObjectChange> =
            places.iter().filter_map(|place| ObjectChange::removal(&planned.end, place)).collect();
        removals
            .iter()
            .for_each(|removal| *clusters.entry((&removal.path, removal.before)).or_default() += 1);
        for removal in &removals {
            let Some(count) = clusters.remove(&(&removal.path, removal.before)) else { continue };
            let before = removal.before.map(|id| repo.blob(id)).transpose()?;
            text.push_str(&object_diff(removal, before, None, ui));
            let _ = writeln!(text, "({} at {at}, by a deadline)", counted(count, "cluster"));
        }
    }
    Ok(text)
}

/// The plan for programs.
#[derive(Serialize)]
struct PlanResult<'a> {
    #[serde(flatten)]
    report: ReportForm<'a>,
    state: Option<StateForm<'a>>,
    base: Option<RevisionForm<'a>>,
    head: HeadForm<'a>,
    moment: Timestamp,
}

/// The state that a plan begins at, for programs.
#[derive(Serialize)]
struct StateForm<'a> {
    #[serde(rename = "ref")]
    name: &'a str,
    commit: String,
    sequence: u64,
    source: Option<String>,
}

#[derive(Serialize)]
struct RevisionForm<'a> {
    revision: &'a str,
    commit: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeadForm<'a> {
    #[serde(flatten)]
    head: RevisionForm<'a>,
    subject: &'a str,
    merged_into: Option<RevisionForm<'a>>,
    behind: usize,
}

fn plan_json(planned: &Planned, asked: &PlanRequest, report: &PlanReport<'_>) -> Json {
    let mut report = ReportForm::of(report, &planned.reasons);
    let forms = report.plan.workloads.iter_mut().flat_map(|workload| &mut workload.changes);
    for (form, change) in forms.zip(planned.wanted.workloads.values().flatten()) {
        form.later = Some(planned.is_later(change));
    }
    ResultKind::Plan.of(&PlanResult {
        report,
        state: StateForm::of(&asked.located),
        base: asked.base.as_ref().map(RevisionForm::of),
        head: HeadForm {
            head: RevisionForm::of(&asked.change.head),
            subject: &asked.subject,
            merged_into: asked.change.into.as_ref().map(RevisionForm::of),
            behind: asked.change.behind,
        },
        moment: planned.step.inputs.now,
    })
}

impl<'a> StateForm<'a> {
    fn of(located: &'a LocatedState) -> Option<StateForm<'a>> {
        let current = located.current.as_ref()?;
        Some(StateForm {
            name: &located.refs.rendered,
            commit: current.commit.to_string(),
            sequence: current.trailers.seq,
            source: current.trailers.source.map(|source| source.to_string()),
        })
    }
}

impl<'a> RevisionForm<'a> {
    fn of(revision: &'a Revision) -> RevisionForm<'a> {
        RevisionForm { revision: &revision.name, commit: revision.commit.to_string() }
    }
}
