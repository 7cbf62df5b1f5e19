//! `berth plan`: what a change does, removals first.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::changes::{conflicts_json, object_diff};
use super::exit::{CommandError, Exit, Outcome};
use super::fleet::{exit_for, moment};
use super::foresee::refused_by_hubs;
use super::gate::GateArgs;
use super::plan_forms::PlanReport;
use super::plan_forms::json::report_json;
use super::plan_forms::reasons::Reasons;
use super::rehearsal::{
    Change as MergedChange, Merging, Rehearsal, Rehearsed, Revision, conflict, merge, source_tip, uncommitted,
};
use super::slips;
use super::state::StateArgs;
use super::trust::{Tip, TrustArgs};
use super::ui::Ui;
use berth_base::diag::{Diagnostic, Diagnostics, Severity, harmless_line};
use berth_base::model::{ContentId, Timestamp};
use berth_base::yaml;
use berth_engine::causes::Causes;
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::consequences::folding::{ToFold, fold};
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
/// history that is missing in this clone with 6, and a state that `run` would not go on from with 5. Equal
/// changes are shown once, with the workloads and clusters they are for; JSON and YAML have every object. A plan
/// of many causes ends after those that matter most, unless -v is given. Refusals, held workloads and deadlines
/// are never cut.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth plan\n  berth plan --base main --head my-change --diff\n  berth plan --fail-on warnings,held -o markdown"
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
    /// Fail where there is any of these, separated by commas
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    #[arg(short, long, value_enum, default_value = "text")]
    output: PlanFormat,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    gate: GateArgs,
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

/// The findings to fail on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Faults of the fleet's files; the exit code is 1, also where they are not named here
    Errors,
    /// Errors or warnings; the exit code is 1
    Warnings,
    /// Removals that would be held for approval, or anything that `run` would refuse; the exit code is 5
    Held,
    /// Removed objects; the exit code is 3
    Removals,
    /// Any change; the exit code is 3
    #[value(alias = "any")]
    Changes,
}

pub(crate) fn cmd_plan(args: &PlanArgs, ui: &Ui, verbose: u8) -> Outcome {
    if args.diff && args.output != PlanFormat::Text {
        let error = CommandError::usage("--diff works only with text output");
        return Err(error.hint("read the objects from Git by the paths in the plan"));
    }
    let repo = Repo::rehearsal(&args.repo)?.watched(ui.progress());
    let asked = Asked::gather(args, &repo, ui)?;
    let rehearsed = ui.watching("reading the fleet", || asked.rehearse(args, &repo))?;
    ui.status(&asked.words());
    let planned = Planned::of(args, &repo, &asked, rehearsed, ui)?;
    ui.diagnostics(&planned.diagnostics);
    let words = asked.words();
    let report = planned.report(&words);
    match args.output {
        PlanFormat::Text => {
            ui.out(&report.text(verbose > 0, ui));
            if args.diff {
                planned.print_differences(&repo, ui)?;
            }
        }
        PlanFormat::Json => ui.json(&planned.json(&asked, &report)),
        PlanFormat::Yaml => ui.yaml(&planned.json(&asked, &report)),
        PlanFormat::Markdown => ui.out(&report.markdown()),
        PlanFormat::Sarif => ui.json(&report.sarif()),
        PlanFormat::Annotations => ui.out(&report.workflow_commands()),
        PlanFormat::CodeQuality => ui.json(&report.code_quality()),
    }
    Ok(planned.exit(&args.fail_on))
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
                match args.output {
                    PlanFormat::Json => ui.json(&conflicts_json(&files)),
                    PlanFormat::Yaml => ui.yaml(&conflicts_json(&files)),
                    _ => {}
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
    /// All changes, with those that are held.
    wanted: Plan,
    folded: FoldedPlan,
    /// The edits, reports or time behind each change.
    causes: Causes,
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
        let wanted = match step.held.is_empty() {
            true => step.plan.clone(),
            false => plan(&step.inputs.current, &step.built.state),
        };
        let workloads = &step.built.fleet.workloads;
        let touched =
            wanted.workloads.keys().filter_map(|key| workloads.get(key)).map(|workload| &**workload);
        diagnostics.extend(slips::of(touched, step.inputs.tree()));
        let mut refused: Vec<CommandError> = refusals.into_iter().map(CommandError::from).collect();
        let judged = asked.judge(args, repo, ui)?;
        let is_untrusted = judged.is_err();
        match judged {
            Ok(note) => diagnostics.extend(note),
            Err(refusal) => refused.insert(0, refusal),
        }
        diagnostics.extend(step.policy.note.clone());
        diagnostics.sort();
        let reasons = Reasons::of(&wanted, &step);
        let causes = ui.watching("tracing causes", || step.inputs.causes(repo, &step.built.state))?;
        let held = step.held.iter().map(|held| held.key.clone()).collect();
        let folded = fold(ToFold {
            wanted: &wanted,
            before: &step.inputs.current,
            after: &step.built.state,
            fleet: &step.built.fleet,
            causes: &causes,
            read: &mut |id| read_object(repo, id),
            held: &held,
            reasons: &|key, cluster| reasons.get(key, cluster),
        });
        Ok(Planned { wanted, folded, causes, reasons, step, refused, is_untrusted, diagnostics })
    }

    fn report<'a>(&'a self, words: &'a str) -> PlanReport<'a> {
        PlanReport {
            words,
            published: &self.step.plan,
            wanted: &self.wanted,
            folded: &self.folded,
            causes: &self.causes,
            fleet: &self.step.built.fleet,
            held: &self.step.held,
            deadlines: &self.step.deadlines,
            refused: &self.refused,
            policy: &self.step.policy,
            diagnostics: &self.diagnostics,
        }
    }

    /// Prints the difference of each object, and equal differences once.
    fn print_differences(&self, repo: &Repo, ui: &Ui) -> Result<(), CommandError> {
        let read = |id: Option<ContentId>| id.map(|id| repo.blob(id)).transpose();
        let mut printed = BTreeSet::new();
        for change in self.wanted.changes() {
            if printed.insert((&change.path, change.before, change.after)) {
                ui.out(&object_diff(change, read(change.before)?, read(change.after)?, ui));
            }
        }
        Ok(())
    }

    /// The plan for programs.
    fn json(&self, asked: &Asked, report: &PlanReport<'_>) -> Json {
        let mut form = report_json(report, &self.reasons);
        form["state"] = current_json(&asked.located);
        form["base"] = asked.base.as_ref().map_or(Json::Null, revision_json);
        form["head"] = change_json(&asked.change, &asked.subject);
        form["moment"] = json!(self.step.inputs.now.to_string());
        form
    }

    fn exit(&self, fail_on: &[FailOn]) -> Exit {
        let counts = self.step.plan.counts();
        let is_held = !self.step.held.is_empty();
        let policy = self.step.policy.diagnostics();
        let all = || self.diagnostics.iter().chain(policy.iter());
        let has_warnings = all().any(|one| one.severity == Severity::Warning);
        let fails = |what: &FailOn| match what {
            FailOn::Errors => None,
            FailOn::Warnings => has_warnings.then_some(Exit::Faulty),
            FailOn::Held => (is_held || !self.refused.is_empty()).then_some(Exit::Held),
            FailOn::Removals => (counts.removed > 0 || is_held).then_some(Exit::Different),
            FailOn::Changes => {
                (counts.added + counts.changed + counts.removed > 0 || is_held).then_some(Exit::Different)
            }
        };
        let untrusted = if self.is_untrusted { Exit::Held } else { Exit::Done };
        let exits = fail_on.iter().filter_map(fails);
        let faulty = exit_for(&self.diagnostics).worst(exit_for(&policy));
        exits.fold(faulty.worst(untrusted), Exit::worst)
    }
}

/// Reads a rendered object.
fn read_object(repo: &Repo, id: ContentId) -> Option<Json> {
    let bytes = repo.blob(id).ok()?;
    let read = yaml::read(&bytes, &yaml::Limits::of_a_part());
    Some(read.documents.first()?.root.to_json())
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
