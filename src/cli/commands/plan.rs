//! `berth plan`: what a change does, removals first.

use serde_json::{Value as Json, json};

use super::exit::{CommandError, Exit, Outcome};
use super::fleet::{Format, exit_for, moment};
use super::foresee::{refusals_json, refusals_text, refused_by_hubs};
use super::gate::{GateArgs, When, deadlines_json, deadlines_text, held_json, held_text};
use super::plan_form::{self, Reasons, object_diff, plan_json};
use super::rehearsal::{
    Change as MergedChange, Merging, Rehearsal, Rehearsed, Revision, conflict, merge, source_tip, uncommitted,
};
use super::slips;
use super::state::StateArgs;
use super::summary::{Length, plan_of_length};
use super::trust::{Tip, TrustArgs};
use super::ui::Ui;
use super::validate::diagnostics_json;
use berth_base::diag::harmless_line;
use berth_base::model::{ContentId, Timestamp};
use berth_engine::plan::plan;
use berth_git::Repo;
use berth_hub::daemon::PassError;
use berth_hub::inputs::{LocatedState, current_state};

/// Show what a change does to every cluster
///
/// Shows the step from the current state that `berth run` would make once the head was merged into the source
/// branch. With --base, the step from the state that the base gives, once the head was merged into the base.
/// Nothing is written. Files that the two sides changed in ways that do not go together end with 1, a state or a
/// history that is missing in this clone with 6, and a state that `run` would not go on from with 5. A plan of more than 40 lines is summed up; -v or --diff prints
/// every change, and JSON and YAML have them all. Refusals, held workloads and deadlines are never cut.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth plan\n  berth plan --base main --head my-change --diff\n  berth plan --fail-on held -o json"
)]
pub struct PlanArgs {
    /// The fleet repository
    #[arg(long, value_name = "PATH", default_value = ".", env = "BERTH_REPO")]
    repo: std::path::PathBuf,
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
    #[command(flatten)]
    state: StateArgs,
    /// Decide for this moment, in place of the revision's date
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<Timestamp>,
    /// Show each object's difference
    #[arg(long)]
    diff: bool,
    /// Exit with 3 where there are such changes
    #[arg(long, value_name = "WHAT", value_enum)]
    fail_on: Option<FailOn>,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    gate: GateArgs,
}

/// Changes to fail on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    Any,
    Removals,
    /// Removals that would be held for approval, or anything that `run` would refuse; the exit code is 5
    Held,
}

pub fn cmd_plan(args: &PlanArgs, ui: &Ui, verbose: u8) -> Outcome {
    if args.diff && args.output != Format::Text {
        let error = CommandError::usage("--diff works only with text output");
        return Err(error.hint("read the objects from Git by the paths in the plan"));
    }
    let repo = Repo::rehearsal(&args.repo)?.watched(ui.progress());
    let search = args.state.search(&args.repo)?;
    let located = ui.watching("reading the current state", || LocatedState::find(&repo, &search))?;
    let head = Revision { name: args.head.clone(), commit: repo.require(&args.head)? };
    if located.current.as_ref().is_some_and(|current| current.commit == head.commit) {
        return Err(
            PassError::SourceIsRendered(current_state::short(&located.refs.rendered).to_owned()).into()
        );
    }
    let base = match &args.base {
        Some(name) => Some(Revision { name: name.clone(), commit: repo.require(name)? }),
        None => None,
    };
    let into = match &base {
        _ if args.no_merge => None,
        Some(base) => Some(base.clone()),
        None => source_tip(&repo, &located, args.source.as_deref())?,
    };
    let change = match merge(&repo, &located, head, into)? {
        Merging::Done(change) => change,
        Merging::Conflicts { head, into, files } => {
            if args.output != Format::Text {
                print(args.output, &plan_form::conflicts_json(&files), ui);
            }
            return Err(conflict(&head, &into, &files));
        }
    };
    let limits = args.gate.limits();
    let first = args.state.first;
    let rehearsal = Rehearsal { repo: &repo, located: &located, limits, at: args.now, first };
    let Rehearsed { step, refusals } = ui.watching("reading the fleet", || match &base {
        Some(base) => rehearsal.change_upon(base, &change),
        None => rehearsal.change(&change),
    })?;
    let subject = repo.commit(change.head.commit)?.subject().to_owned();
    let upon = match &base {
        Some(base) => format!("{} on {}", base.name, located.words()),
        None => located.words(),
    };
    ui.status(&format!("{upon} → {}", harmless_line(&change.words(&subject))));
    let mut diagnostics = step.diagnostics.clone();
    diagnostics.extend(change.notes());
    if args.head == "HEAD" {
        diagnostics.extend(uncommitted(&repo)?);
    }
    let published = located.current.as_ref().and_then(|current| current.trailers.source);
    let since = base.as_ref().map(|base| base.commit).or(published);
    diagnostics.extend(refused_by_hubs(&repo, since, step.inputs.tree())?);
    let plan = plan(&step.inputs.current, &step.built.state);
    let workloads = &step.built.fleet.workloads;
    let touched = plan.workloads.keys().filter_map(|key| workloads.get(key)).map(|workload| &**workload);
    diagnostics.extend(slips::of(touched, step.inputs.tree()));
    let mut refused: Vec<CommandError> = refusals.into_iter().map(CommandError::from).collect();
    let mut is_trusted = true;
    if let Some(current) = &located.current {
        let limits = args.gate.limits();
        let source = change.into.as_ref().filter(|_| base.is_none()).map(|into| into.commit);
        let tip = Tip { refs: &located.refs, commit: current.commit, source, limits: &limits };
        match ui.watching("proving the current state", || args.trust.judge(&repo, &tip))? {
            Ok(note) => diagnostics.extend(note),
            Err(refusal) => {
                is_trusted = false;
                refused.insert(0, refusal);
            }
        }
    }
    diagnostics.sort();
    ui.diagnostics(&diagnostics);
    let held = &step.held;
    let reasons = Reasons::of(&plan, &step);
    match args.output {
        Format::Text => {
            if !refused.is_empty() {
                ui.out(&refusals_text(&refused, ui));
            }
            let screen = Length::Screen("`-v`, or `-o json` for programs");
            let length = if verbose > 0 || args.diff { Length::Whole } else { screen };
            ui.out(&plan_of_length(&plan, &reasons, length, ui));
            if !step.deadlines.is_empty() {
                ui.out(&deadlines_text(&step.deadlines, ui));
            }
            if !held.is_empty() {
                ui.out(&held_text(held, When::Foreseen, verbose, ui));
            }
            if args.diff {
                let read = |id: Option<ContentId>| id.map(|id| repo.blob(id)).transpose();
                for change in plan.changes() {
                    ui.out(&object_diff(change, read(change.before)?, read(change.after)?, ui));
                }
            }
        }
        format => {
            let mut form = plan_json(&plan, &reasons);
            form["state"] = current_json(&located);
            form["base"] = base.as_ref().map_or(Json::Null, revision_json);
            form["head"] = change_json(&change, &subject);
            form["moment"] = json!(step.inputs.now.to_string());
            form["held"] = held_json(held);
            form["deadlines"] = deadlines_json(&step.deadlines);
            form["refused"] = refusals_json(&refused);
            form["diagnostics"] = diagnostics_json(&diagnostics)["diagnostics"].take();
            print(format, &form, ui);
        }
    }
    let counts = plan.counts();
    let fails = |differs: bool, exit| if differs { exit } else { Exit::Done };
    let exit = match args.fail_on {
        Some(FailOn::Any) => fails(counts.added + counts.changed + counts.removed > 0, Exit::Different),
        Some(FailOn::Removals) => fails(counts.removed > 0, Exit::Different),
        Some(FailOn::Held) => fails(!held.is_empty() || !refused.is_empty(), Exit::Held),
        None => Exit::Done,
    };
    let exit = if is_trusted { exit } else { exit.worst(Exit::Held) };
    Ok(exit_for(&diagnostics).worst(exit))
}

fn print(format: Format, form: &Json, ui: &Ui) {
    if format == Format::Yaml { ui.yaml(form) } else { ui.json(form) }
}

/// The state that a plan goes on from, for programs.
fn current_json(located: &LocatedState) -> Json {
    let Some(current) = &located.current else { return Json::Null };
    json!({
        "ref": located.refs.rendered,
        "commit": current.commit.to_string(),
        "sequence": current.trailers.seq,
        "source": current.trailers.source.map(|source| source.to_string()),
    })
}

fn revision_json(revision: &Revision) -> Json {
    json!({"revision": revision.name, "commit": revision.commit.to_string()})
}

fn change_json(change: &MergedChange, subject: &str) -> Json {
    let mut form = revision_json(&change.head);
    form["subject"] = json!(subject);
    form["mergedInto"] = change.into.as_ref().map_or(Json::Null, revision_json);
    form["behind"] = json!(change.behind);
    form
}
