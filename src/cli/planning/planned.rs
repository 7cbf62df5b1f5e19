//! A change and its effect, for `plan` and `review`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;

use super::faults::{StandingFaults, misspelt_fields, refused_by_hubs};
use super::rehearsal::{
    Change, Merging, Rehearsal, Rehearsed, Revision, conflict, merge, source_tip, uncommitted,
};
use crate::flags::fleet::moment;
use crate::flags::pass::{GateArgs, Tip, TrustArgs};
use crate::flags::state::StateArgs;
use crate::output::held::without_held;
use crate::output::plan_forms::PlanReport;
use crate::output::plan_forms::reasons::Reasons;
use crate::output::plan_forms::sections::{self, Rollout};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, exit_for};
use berth_base::diag::{Diagnostic, Diagnostics, Severity, harmless_line};
use berth_base::model::{ContentId, Key, Timestamp};
use berth_base::yaml;
use berth_engine::causes::Causes;
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::consequences::folding::{ToFold, fold};
use berth_engine::gate::Held;
use berth_engine::pipeline::Built;
use berth_engine::plan::{ObjectChange, Plan, plan};
use berth_engine::state::State;
use berth_git::{CommitId, Repo};
use berth_hub::daemon::PassError;
use berth_hub::inputs::{LocatedState, SourceCommit, current_state};
use berth_hub::next_commit::NextCommit;
use berth_vendor::folder;

/// The flags that say where a plan begins, and by which limits it is judged.
#[derive(Debug, clap::Args)]
pub(crate) struct StepArgs {
    #[command(flatten)]
    pub state: StateArgs,
    /// Decide for this moment (RFC 3339), in place of now or the revision's date
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub now: Option<Timestamp>,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    gate: GateArgs,
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
    /// Objects or decisions that are removed in the end, also by deadlines; the exit code is 3
    Removals,
    /// Any change in the end; the exit code is 3
    #[value(alias = "any")]
    Changes,
}

/// The revisions of a change.
#[derive(Debug)]
pub(crate) struct Revisions<'a> {
    /// The revision whose state precedes the change, instead of the current state.
    pub base: Option<Revision>,
    pub head: Revision,
    /// The target branch, instead of the one that `run` reads.
    pub source: Option<&'a str>,
    pub is_merged: bool,
}

/// The change to plan, and its base.
pub(crate) struct PlanRequest {
    pub located: LocatedState,
    /// The revision whose state precedes the change, instead of the current state.
    pub base: Option<Revision>,
    pub change: Change,
    /// The subject of the head's commit.
    pub subject: String,
}

impl StepArgs {
    /// Finds the state on which the plan is based.
    pub fn locate(&self, folder: &Path, repo: &Repo, ui: &Ui) -> Result<LocatedState, CommandError> {
        let search = self.state.search(folder)?;
        Ok(ui.watching("reading the current state", || LocatedState::find(repo, &search))?)
    }
}

impl PlanRequest {
    /// Returns the diagnostics of the step and of the change. Held workloads have their own part of the plan.
    fn diagnostics(
        &self,
        repo: &Repo,
        step: &NextCommit,
        wanted: &Plan,
    ) -> Result<Diagnostics, CommandError> {
        let mut diagnostics = without_held(&step.diagnostics, &step.held);
        diagnostics.extend(self.change.notes());
        if self.change.head.name == "HEAD" {
            diagnostics.extend(uncommitted(repo)?);
        }
        diagnostics.extend(folder::check(repo, repo.commit(self.change.head.commit)?.tree)?);
        diagnostics.extend(refused_by_hubs(repo, self.since(), step.inputs.tree())?);
        let workloads = &step.built.fleet.workloads;
        let touched =
            wanted.workloads.keys().filter_map(|key| workloads.get(key)).map(|workload| &**workload);
        diagnostics.extend(misspelt_fields(touched, step.inputs.tree()));
        Ok(diagnostics)
    }

    /// Merges the change. If the merge has conflicts, calls `on_conflicts` with the files.
    pub fn gather(
        located: LocatedState,
        revisions: Revisions<'_>,
        repo: &Repo,
        on_conflicts: impl Fn(&[String]),
    ) -> Result<PlanRequest, CommandError> {
        let Revisions { base, head, source, is_merged } = revisions;
        if located.current.as_ref().is_some_and(|current| current.commit == head.commit) {
            let name = current_state::short(&located.refs.rendered).to_owned();
            return Err(PassError::SourceIsRendered(name).into());
        }
        let into = match &base {
            _ if !is_merged => None,
            Some(base) => Some(base.clone()),
            None => source_tip(repo, &located, source)?,
        };
        let change = match merge(repo, &located, head, into)? {
            Merging::Done(change) => change,
            Merging::Conflicts { head, into, files } => {
                on_conflicts(&files);
                return Err(conflict(&head, &into, &files));
            }
        };
        let subject = repo.commit(change.head.commit)?.subject().to_owned();
        Ok(PlanRequest { located, base, change, subject })
    }

    pub fn rehearse(
        &self,
        args: &StepArgs,
        repo: &Repo,
        clock: Timestamp,
    ) -> Result<Rehearsed, CommandError> {
        self.rehearse_at(args.now, args, repo, clock)
    }

    /// Rehearses for a moment, in place of the one from the step's inputs.
    pub fn rehearse_at(
        &self,
        at: Option<Timestamp>,
        args: &StepArgs,
        repo: &Repo,
        clock: Timestamp,
    ) -> Result<Rehearsed, CommandError> {
        let (limits, first) = (args.gate.limits(), args.state.first);
        let rehearsal = Rehearsal { repo, located: &self.located, limits, at, clock, first };
        match &self.base {
            Some(base) => rehearsal.change_upon(base, &self.change),
            None => rehearsal.change(&self.change),
        }
    }

    /// Describes the base and the change briefly.
    pub fn words(&self) -> String {
        let upon = match &self.base {
            Some(base) => format!("{} on {}", base.name, self.located.words()),
            None => self.located.words(),
        };
        format!("{upon} → {}", harmless_line(&self.change.words(&self.subject)))
    }

    /// Returns the source commit before the change.
    fn since(&self) -> Option<CommitId> {
        let published = || self.located.current.as_ref()?.trailers.source;
        self.base.as_ref().map(|base| base.commit).or_else(published)
    }

    /// Returns the diagnostics from before the change. If there are only notes, the earlier source is not read.
    fn standing<'k>(
        &self,
        args: &StepArgs,
        repo: &Repo,
        found: &Diagnostics,
        workloads: impl Iterator<Item = &'k Key>,
        ui: &Ui,
    ) -> Result<Diagnostics, CommandError> {
        let is_grave = |one: &Diagnostic| one.severity != Severity::Note;
        let into = self.change.into.as_ref().map(|into| into.commit);
        let base = self.base.as_ref().map(|base| base.commit);
        // If the source itself is planned, the change is its unpublished part.
        let before = base.or(into.filter(|into| *into != self.change.source)).or_else(|| self.since());
        let before = before.filter(|before| repo.has_commit(*before));
        let Some(before) = before.filter(|_| found.iter().any(is_grave)) else {
            return Ok(Diagnostics::new());
        };
        let standing = ui.watching("reading the fleet before the change", || {
            let reports = self.located.reports(repo, &args.gate.limits().labels)?;
            let current = self.located.current.as_ref();
            let before = SourceCommit { repo, commit: before, rules: None, current };
            StandingFaults::of(before, reports, workloads, ui.now())
        })?;
        Ok(standing.among(found))
    }

    /// Judges whether `run` would build on the current state. Returns its refusal, or a note.
    pub fn judge(
        &self,
        args: &StepArgs,
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
pub(crate) struct Planned {
    /// The final state including held workloads, and all changes until then.
    pub end: State,
    pub wanted: Plan,
    /// The changes that will happen, without those of earlier edits.
    published: Plan,
    /// The first step of these changes.
    now: Plan,
    /// The changes of earlier edits.
    earlier: Plan,
    /// The workloads whose files are broken.
    staying: Vec<Key>,
    folded: FoldedPlan,
    /// The edits, reports or times behind each change.
    causes: Causes,
    pub reasons: Reasons,
    pub step: NextCommit,
    /// The rollouts that the change begins or affects.
    rollouts: Vec<Rollout>,
    /// The reasons why `run` would publish nothing.
    pub refused: Vec<CommandError>,
    /// True if the current state is not trusted.
    is_untrusted: bool,
    pub diagnostics: Diagnostics,
    /// The diagnostics from before the change.
    pub standing: Diagnostics,
}

impl Planned {
    pub fn of(
        args: &StepArgs,
        repo: &Repo,
        asked: &PlanRequest,
        rehearsed: Rehearsed,
        ui: &Ui,
    ) -> Result<Planned, CommandError> {
        let Rehearsed { mut step, refusals } = rehearsed;
        let end = step.built.end();
        let wanted = plan(&step.inputs.current, &end);
        let mut diagnostics = asked.diagnostics(repo, &step, &wanted)?;
        let mut refused: Vec<CommandError> = refusals.into_iter().map(CommandError::from).collect();
        let judged = asked.judge(args, repo, ui)?;
        let is_untrusted = judged.is_err();
        match judged {
            Ok(note) => diagnostics.extend(note),
            Err(refusal) => refused.insert(0, refusal),
        }
        diagnostics.extend(step.policy.note.clone());
        diagnostics.sort();
        let standing = asked.standing(args, repo, &diagnostics, wanted.workloads.keys(), ui)?;
        let reasons = Reasons::of(&wanted, &step);
        let causes = ui.watching("tracing causes", || step.inputs.causes(repo, &end, Built::end))?;
        // An approval makes the removals of an earlier edit its own.
        let is_earlier =
            |key: &Key, cluster: &str| causes.is_earlier(key, cluster) && !step.is_approved(key, cluster);
        let is_own = |key: &Key, cluster: &str| !is_earlier(key, cluster);
        // Held workloads have their own part of the plan.
        let without_held = plan(&step.inputs.current, &step.end);
        let (published, now) = (without_held.only(is_own), step.plan.only(is_own));
        let earlier = without_held.only(is_earlier);
        let staying = staying(&step);
        let folded = FoldedPlan::default();
        let rollouts = sections::rollouts_of(&step.inputs.current, &step.built, &causes, step.inputs.now);
        let mut planned = Planned {
            end,
            wanted,
            published,
            now,
            earlier,
            staying,
            folded,
            causes,
            reasons,
            step,
            rollouts,
            refused,
            is_untrusted,
            diagnostics,
            standing,
        };
        planned.folded = planned.fold(repo, &planned.wanted);
        Ok(planned)
    }

    /// Prints the diagnostics. Warnings and notes from before the change are only counted.
    pub fn show_diagnostics(&self, is_whole: bool, ui: &Ui) {
        let is_left_out = |one: &Diagnostic| {
            !is_whole
                && one.severity != Severity::Error
                && self.standing.iter().any(|standing| standing == one)
        };
        let mut shown = self.diagnostics.clone();
        shown.retain(|one| !is_left_out(one));
        ui.diagnostics(&shown);
        let left = self.diagnostics.len() - shown.len();
        if left > 0 {
            ui.status(&format!(
                "warnings and notes that were there before this change: {left}; `-v` shows them"
            ));
        }
    }

    /// Groups some of the changes.
    pub fn fold(&self, repo: &Repo, changes: &Plan) -> FoldedPlan {
        let Planned { causes, reasons, step, .. } = self;
        let held: BTreeMap<&Key, &Held> = step.held.iter().map(|held| (&held.key, held)).collect();
        fold(ToFold {
            wanted: changes,
            before: &step.inputs.current,
            after: &self.end,
            fleet: &step.built.fleet,
            causes,
            read: &mut |id| read_object(repo, id),
            held: &|key, cluster| held.get(key).is_some_and(|held| held.holds_in(cluster)),
            reasons: &|key, cluster| reasons.get(key, cluster),
        })
    }

    /// Returns the changes of the first step, without those of earlier edits.
    pub fn first_step(&self) -> &Plan {
        &self.now
    }

    /// Returns the changes until the end, without those of earlier edits and held ones.
    pub fn in_the_end(&self) -> &Plan {
        &self.published
    }

    /// Returns all changes, grouped.
    pub fn folded(&self) -> &FoldedPlan {
        &self.folded
    }

    /// Reports whether a cluster gets a change after the first step.
    pub fn is_later(&self, change: &ObjectChange) -> bool {
        let folder = |state: &State| state.folders.get(&*change.cluster)?.get(&change.path).copied();
        folder(&self.step.built.state) != folder(&self.end)
    }

    pub fn report<'a>(&'a self, words: &'a str) -> PlanReport<'a> {
        PlanReport {
            words,
            published: &self.published,
            now: Some(&self.now),
            earlier: &self.earlier,
            staying: &self.staying,
            wanted: &self.wanted,
            folded: &self.folded,
            causes: &self.causes,
            fleet: &self.step.built.fleet,
            held: &self.step.held,
            deadlines: &self.step.deadlines,
            rollouts: &self.rollouts,
            refused: &self.refused,
            policy: &self.step.policy,
            diagnostics: &self.diagnostics,
            standing: &self.standing,
            together: None,
        }
    }

    /// Returns the exit code.
    pub fn exit(&self, fail_on: &[FailOn]) -> Exit {
        let counts = self.published.counts();
        let placements = &self.published.placements;
        let is_held = !self.step.held.is_empty();
        let policy = self.step.policy.diagnostics();
        let all = || self.diagnostics.iter().chain(policy.iter());
        let has_warnings = all().any(|one| one.severity == Severity::Warning);
        // If a decision no longer names a cluster, its readers remove their objects there.
        let loses = placements.values().any(|change| !change.lost.is_empty());
        let fleet = self.causes.of_fleet(&self.step.built.fleet);
        let loses = loses || !fleet.lost.is_empty();
        let removes = counts.removed > 0 || loses || !self.step.deadlines.is_empty();
        let fails = |what: &FailOn| match what {
            FailOn::Errors => None,
            FailOn::Warnings => has_warnings.then_some(Exit::Faulty),
            FailOn::Held => (is_held || !self.refused.is_empty()).then_some(Exit::Held),
            FailOn::Removals => (removes || is_held).then_some(Exit::Different),
            FailOn::Changes => {
                let joins = !fleet.gained.is_empty() || !placements.is_empty();
                let changes = removes || counts.added + counts.changed > 0 || joins;
                (changes || is_held).then_some(Exit::Different)
            }
        };
        let untrusted = if self.is_untrusted { Exit::Held } else { Exit::Done };
        let exits = fail_on.iter().filter_map(fails);
        let faulty = exit_for(&self.diagnostics).worst(exit_for(&policy));
        exits.fold(faulty.worst(untrusted), Exit::worst)
    }
}

/// Returns the workloads that keep their last good form, because their files are broken.
fn staying(step: &NextCommit) -> Vec<Key> {
    let (kept, rendered) = (&step.built.desired.kept, &step.inputs.tree().rendered);
    let is_kept =
        |file: &str| kept.contains_key(file) && !(rendered.files.contains(file) && rendered.is_current(file));
    let workloads = step.built.fleet.workloads.values();
    let staying = workloads.filter(|workload| is_kept(&workload.origin.file));
    staying.map(|workload| workload.key.clone()).collect()
}

/// Reads a rendered object.
pub(crate) fn read_object(repo: &Repo, id: ContentId) -> Option<Json> {
    let bytes = repo.blob(id).ok()?;
    let read = yaml::read(&bytes, &yaml::Limits::of_a_part());
    Some(read.documents.first()?.root.to_json())
}
