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
use berth_base::diag::{Diagnostic, Diagnostics, harmless_line};
use berth_base::model::{ContentId, Timestamp};
use berth_engine::plan::{Plan, plan};
use berth_git::{CommitId, Repo};
use berth_hub::daemon::PassError;
use berth_hub::inputs::{LocatedState, current_state};
use berth_hub::next_commit::NextCommit;

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
pub(crate) struct PlanArgs {
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

pub(crate) fn cmd_plan(args: &PlanArgs, ui: &Ui, verbose: u8) -> Outcome {
    if args.diff && args.output != Format::Text {
        let error = CommandError::usage("--diff works only with text output");
        return Err(error.hint("read the objects from Git by the paths in the plan"));
    }
    let repo = Repo::rehearsal(&args.repo)?.watched(ui.progress());
    let asked = Asked::gather(args, &repo, ui)?;
    let rehearsed = ui.watching("reading the fleet", || asked.rehearse(args, &repo))?;
    ui.status(&asked.words());
    let planned = Planned::of(args, &repo, &asked, rehearsed, ui)?;
    ui.diagnostics(&planned.diagnostics);
    match args.output {
        Format::Text => planned.print(args, &repo, verbose, ui)?,
        format => format.write(&planned.json(&asked), ui),
    }
    Ok(planned.exit(args.fail_on))
}

/// The change to plan, and where it begins.
struct Asked {
    located: LocatedState,
    /// The revision whose state comes before the change, in place of the current state.
    base: Option<Revision>,
    change: MergedChange,
    /// The subject of the head's commit.
    subject: String,
}

impl Asked {
    fn gather(args: &PlanArgs, repo: &Repo, ui: &Ui) -> Result<Asked, CommandError> {
        let search = args.state.search(&args.repo)?;
        let located = ui.watching("reading the current state", || LocatedState::find(repo, &search))?;
        let revision = |name: &String| -> Result<Revision, CommandError> {
            Ok(Revision { name: name.clone(), commit: repo.require(name)? })
        };
        let head = revision(&args.head)?;
        if located.current.as_ref().is_some_and(|current| current.commit == head.commit) {
            let name = current_state::short(&located.refs.rendered).to_owned();
            return Err(PassError::SourceIsRendered(name).into());
        }
        let base = args.base.as_ref().map(revision).transpose()?;
        let into = match &base {
            _ if args.no_merge => None,
            Some(base) => Some(base.clone()),
            None => source_tip(repo, &located, args.source.as_deref())?,
        };
        let change = match merge(repo, &located, head, into)? {
            Merging::Done(change) => change,
            Merging::Conflicts { head, into, files } => {
                if args.output != Format::Text {
                    args.output.write(&plan_form::conflicts_json(&files), ui);
                }
                return Err(conflict(&head, &into, &files));
            }
        };
        let subject = repo.commit(change.head.commit)?.subject().to_owned();
        Ok(Asked { located, base, change, subject })
    }

    fn rehearse(&self, args: &PlanArgs, repo: &Repo) -> Result<Rehearsed, CommandError> {
        let (limits, first) = (args.gate.limits(), args.state.first);
        let rehearsal = Rehearsal { repo, located: &self.located, limits, at: args.now, first };
        match &self.base {
            Some(base) => rehearsal.change_upon(base, &self.change),
            None => rehearsal.change(&self.change),
        }
    }

    /// The beginning and the change, in a few words.
    fn words(&self) -> String {
        let upon = match &self.base {
            Some(base) => format!("{} on {}", base.name, self.located.words()),
            None => self.located.words(),
        };
        format!("{upon} → {}", harmless_line(&self.change.words(&self.subject)))
    }

    /// The source commit before the change.
    fn since(&self) -> Option<CommitId> {
        let published = || self.located.current.as_ref()?.trailers.source;
        self.base.as_ref().map(|base| base.commit).or_else(published)
    }

    /// Judges whether `run` would go on from the current state. Gives its refusal, or a note.
    fn judge(
        &self,
        args: &PlanArgs,
        repo: &Repo,
        ui: &Ui,
    ) -> Result<Result<Option<Diagnostic>, CommandError>, CommandError> {
        let Some(current) = &self.located.current else { return Ok(Ok(None)) };
        let limits = args.gate.limits();
        let source = self.change.into.as_ref().filter(|_| self.base.is_none()).map(|into| into.commit);
        let tip = Tip { refs: &self.located.refs, commit: current.commit, source, limits: &limits };
        ui.watching("proving the current state", || args.trust.judge(repo, &tip))
    }
}

/// The effect of the change.
struct Planned {
    plan: Plan,
    reasons: Reasons,
    step: NextCommit,
    /// The reasons why `run` would publish nothing.
    refused: Vec<CommandError>,
    /// The current state is not trusted.
    is_untrusted: bool,
    diagnostics: Diagnostics,
}

impl Planned {
    fn of(
        args: &PlanArgs,
        repo: &Repo,
        asked: &Asked,
        rehearsed: Rehearsed,
        ui: &Ui,
    ) -> Result<Planned, CommandError> {
        let Rehearsed { mut step, refusals } = rehearsed;
        let mut diagnostics = step.diagnostics.clone();
        diagnostics.extend(asked.change.notes());
        if args.head == "HEAD" {
            diagnostics.extend(uncommitted(repo)?);
        }
        diagnostics.extend(refused_by_hubs(repo, asked.since(), step.inputs.tree())?);
        // The step's own plan leaves out what is held.
        let plan = match step.held.is_empty() {
            true => std::mem::take(&mut step.plan),
            false => plan(&step.inputs.current, &step.built.state),
        };
        let workloads = &step.built.fleet.workloads;
        let touched = plan.workloads.keys().filter_map(|key| workloads.get(key)).map(|workload| &**workload);
        diagnostics.extend(slips::of(touched, step.inputs.tree()));
        let mut refused: Vec<CommandError> = refusals.into_iter().map(CommandError::from).collect();
        let judged = asked.judge(args, repo, ui)?;
        let is_untrusted = judged.is_err();
        match judged {
            Ok(note) => diagnostics.extend(note),
            Err(refusal) => refused.insert(0, refusal),
        }
        diagnostics.sort();
        let reasons = Reasons::of(&plan, &step);
        Ok(Planned { plan, reasons, step, refused, is_untrusted, diagnostics })
    }

    /// Prints the plan for people.
    fn print(&self, args: &PlanArgs, repo: &Repo, verbose: u8, ui: &Ui) -> Result<(), CommandError> {
        if !self.refused.is_empty() {
            ui.out(&refusals_text(&self.refused, ui));
        }
        let screen = Length::Screen("`-v`, or `-o json` for programs");
        let length = if verbose > 0 || args.diff { Length::Whole } else { screen };
        ui.out(&plan_of_length(&self.plan, &self.reasons, length, ui));
        if !self.step.deadlines.is_empty() {
            ui.out(&deadlines_text(&self.step.deadlines, ui));
        }
        if !self.step.held.is_empty() {
            ui.out(&held_text(&self.step.held, When::Foreseen, verbose, ui));
        }
        if args.diff {
            let read = |id: Option<ContentId>| id.map(|id| repo.blob(id)).transpose();
            for change in self.plan.changes() {
                ui.out(&object_diff(change, read(change.before)?, read(change.after)?, ui));
            }
        }
        Ok(())
    }

    /// The plan for programs.
    fn json(&self, asked: &Asked) -> Json {
        let mut form = plan_json(&self.plan, &self.reasons);
        form["state"] = current_json(&asked.located);
        form["base"] = asked.base.as_ref().map_or(Json::Null, revision_json);
        form["head"] = change_json(&asked.change, &asked.subject);
        form["moment"] = json!(self.step.inputs.now.to_string());
        form["held"] = held_json(&self.step.held);
        form["deadlines"] = deadlines_json(&self.step.deadlines);
        form["refused"] = refusals_json(&self.refused);
        form["diagnostics"] = diagnostics_json(&self.diagnostics)["diagnostics"].take();
        form
    }

    fn exit(&self, fail_on: Option<FailOn>) -> Exit {
        let counts = self.plan.counts();
        let fails = |differs: bool, exit| if differs { exit } else { Exit::Done };
        let exit = match fail_on {
            Some(FailOn::Any) => fails(counts.added + counts.changed + counts.removed > 0, Exit::Different),
            Some(FailOn::Removals) => fails(counts.removed > 0, Exit::Different),
            Some(FailOn::Held) => fails(!self.step.held.is_empty() || !self.refused.is_empty(), Exit::Held),
            None => Exit::Done,
        };
        exit_for(&self.diagnostics).worst(exit).worst(fails(self.is_untrusted, Exit::Held))
    }
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
