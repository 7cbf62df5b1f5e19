//! A pass: read the source's newest commit, decide, render, publish, and update the derived refs.

use std::path::PathBuf;

use super::branches::{find_source, refuse_other_branch, refuse_untrusted};
use super::cache::Cache;
use super::error::PassError;
use super::idle_pass::{OwnRefs, RefSnapshot};
use super::settings::Settings;
use super::standing::FleetStanding;
use crate::history;
use crate::inputs::{PassInputs, Reports};
use crate::next_commit::{self, NextCommit, StepInputs};
use crate::publish::cluster_refs::WantedRefs;
use crate::publish::own_files::{IN_FORCE, remember};
use crate::publish::rollout_steps::RolloutStep;
use crate::publish::{self, CurrentState, Processed, Published, cluster_refs};
use crate::verify::trust::{self, Trust};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity};
use berth_base::model::{Map, Timestamp};
use berth_engine::gate::{Held, HeldRecord};
use berth_engine::hub_objects::HubContent;
use berth_engine::pipeline::Built;
use berth_engine::plan::Plan;
use berth_engine::report::SummaryInputs;
use berth_git::shared_refs::{list_statuses, read_listed};
use berth_git::{CommitId, GitError, Repo};

/// The seconds after which a pass tries to render sources again that the renderer failed to render.
const RENDER_AGAIN: i64 = 300;

/// The result of a pass.
#[derive(Debug)]
pub struct PassResult {
    pub source: CommitId,
    pub outcome: PassOutcome,
    pub plan: Plan,
    /// The published steps of rollouts.
    pub rollout_steps: Vec<RolloutStep>,
    pub standing: FleetStanding,
    /// The published decisions and the clusters, for outputs elsewhere.
    pub shown: HubContent,
    /// The workloads that keep their current state until an approval.
    pub held: Vec<Held>,
    pub diagnostics: Diagnostics,
    pub next_change: Option<Timestamp>,
    /// Another pass over the same refs would do nothing and report the same.
    pub(super) is_steady: bool,
    pub seen: RefSnapshot,
}

/// The publication of a pass, if it made one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PassOutcome {
    Published {
        commit: CommitId,
        seq: u64,
    },
    #[default]
    Unchanged,
}

/// The publications of all attempts of one pass.
#[derive(Default)]
struct Publications {
    outcome: PassOutcome,
    plan: Plan,
    rollout_steps: Vec<RolloutStep>,
}

impl Publications {
    fn add(&mut self, outcome: PassOutcome, plan: Plan, rollout_steps: Vec<RolloutStep>) {
        if outcome != PassOutcome::Unchanged || self.outcome == PassOutcome::Unchanged {
            (self.outcome, self.plan) = (outcome, plan);
        }
        self.rollout_steps.extend(rollout_steps);
    }
}

impl PassOutcome {
    fn of(published: &Published) -> PassOutcome {
        match published {
            Published::Committed(committed) => {
                PassOutcome::Published { commit: committed.commit, seq: committed.seq }
            }
            Published::Unchanged => PassOutcome::Unchanged,
        }
    }

    fn word(self) -> &'static str {
        match self {
            PassOutcome::Published { .. } => "published",
            PassOutcome::Unchanged => "unchanged",
        }
    }
}

impl PassResult {
    pub fn errors(&self) -> usize {
        self.diagnostics.errors().count()
    }
}

/// The number of attempts before a pass that keeps losing races fails.
pub(super) const ATTEMPTS: u32 = 5;

/// Runs a pass. `clock` only decides which deadlines have passed; it does not appear in the output.
pub fn pass(settings: &Settings, clock: Timestamp) -> Result<PassResult, PassError> {
    pass_with_cache(settings, clock, &mut Cache::default())
}

/// Runs a [`pass`] with the cache of earlier ones.
pub fn pass_with_cache(
    settings: &Settings,
    clock: Timestamp,
    cache: &mut Cache,
) -> Result<PassResult, PassError> {
    let mut number = 1;
    // A publication of an attempt that later lost a race stays, and counts as the pass's own.
    let mut publications = Publications::default();
    loop {
        match attempt(settings, clock, cache, &mut publications) {
            // For a lock, the attempt has already waited.
            Err(error) if error.is_race() && !error.is_locked() && number < ATTEMPTS => number += 1,
            done => return done,
        }
    }
}

/// Returns the folders whose refs must be watched: this work tree's, and the one that all work trees share. Fails
/// only if waiting would not help: a source without a commit may get one, a misspelt one never does.
pub(crate) fn git_folders(settings: &Settings) -> Result<[PathBuf; 2], PassError> {
    let repo = Repo::open(&settings.repo)?;
    match find_source(&repo, settings) {
        Ok(_) | Err(PassError::NoSource(_)) => Ok([repo.path().to_owned(), repo.shared_path().to_owned()]),
        Err(error) => Err(error),
    }
}

/// Makes one attempt at a pass.
fn attempt(
    settings: &Settings,
    clock: Timestamp,
    cache: &mut Cache,
    publications: &mut Publications,
) -> Result<PassResult, PassError> {
    let repo = Repo::open(&settings.repo)?.watched(&settings.progress).recalling(&cache.recent);
    let attempt = Attempt { repo: &repo, settings, clock };
    let mut start = attempt.read(cache)?;
    let next = attempt.step(&start, cache)?;
    let step = attempt.point(&mut start, next, publications)?;
    let own = attempt.derive_refs(&step, cache)?;
    attempt.note_processed(&start, &step)?;
    attempt.report(&step, &own, cache)?;
    if let PassOutcome::Published { commit, seq } = step.outcome {
        history::keep(&repo, commit, seq);
    }
    attempt.result(start, step, own, cache, publications)
}

/// An attempt at a pass, in stages: read, step, point, derive refs, report.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) repo: &'a Repo,
    pub(super) settings: &'a Settings,
    pub(super) clock: Timestamp,
}

/// The inputs that an attempt reads before its step.
struct Start {
    current: Option<CurrentState>,
    trust: Option<Trust>,
    /// The name of the source, and its commit.
    source: (String, CommitId),
    statuses: Map<String, CommitId>,
    processed: Option<Processed>,
}

/// A step after the branch was moved to its commit, if it has one.
struct PointedStep {
    outcome: PassOutcome,
    rendered: Option<CurrentState>,
    rules: Option<CommitId>,
    inputs: PassInputs,
    built: Built,
    held: Vec<Held>,
    diagnostics: Diagnostics,
}

impl Attempt<'_> {
    fn read(&self, cache: &mut Cache) -> Result<Start, PassError> {
        let Attempt { repo, settings, .. } = *self;
        let refs = &settings.refs;
        settings.progress.begin("reading the current state");
        // The state must be read before the source: a source read earlier could be older than the state's own.
        let current = cache.take_current(repo, &refs.rendered)?;
        let source = find_source(repo, settings)?;
        let statuses = list_statuses(repo, refs)?;
        let believed = trust::believes(repo, refs, &refs.processed, &settings.anchors)?;
        let processed = publish::read_processed(repo, refs)?.filter(|_| believed);
        if current.is_some() && !repo.is_bare() {
            refuse_other_branch(settings, &source.0, processed.as_ref())?;
        }
        settings.progress.begin("proving the current state");
        let trust = current.as_ref().map(|current| refuse_untrusted(*self, current, source.1, cache));
        Ok(Start { trust: trust.transpose()?, current, source, statuses, processed })
    }

    fn step(&self, start: &Start, cache: &mut Cache) -> Result<NextCommit, PassError> {
        let Attempt { repo, settings, clock } = *self;
        let (refs, current) = (&settings.refs, start.current.as_ref());
        let statuses = read_listed(repo, refs, &start.statuses, &mut cache.statuses);
        let reports = Reports::of(repo, statuses, refs, &settings.limits.labels, current)?;
        let inputs = StepInputs {
            name: &start.source.0,
            source: start.source.1,
            current,
            processed: start.processed.as_ref(),
            refs,
            reports: cache.hear(reports, clock, settings.max_silent),
            identity: &settings.identity,
            signs_anew: settings.identity.signer.is_some() && publish::is_unsigned(repo, current)?,
            limits: &settings.limits,
            exemptions: settings.exemptions(),
            clock,
            at: None,
            cache: std::mem::take(&mut cache.build),
        };
        Ok(next_commit::step(repo, inputs)?)
    }

    /// Moves the branch to the drafted commit.
    fn point(
        &self,
        start: &mut Start,
        next: NextCommit,
        publications: &mut Publications,
    ) -> Result<PointedStep, PassError> {
        let NextCommit {
            drafted, rules, inputs, built, state, held, plan, rollout_steps, diagnostics, ..
        } = next;
        publish::point(self.repo, &self.settings.refs, start.current.as_ref(), &drafted)?;
        let outcome = PassOutcome::of(&drafted);
        publications.add(outcome, plan, rollout_steps);
        let rendered = match drafted {
            Published::Committed(committed) => Some(committed.into_current(state)),
            Published::Unchanged => start.current.take().map(|current| current.sharing(state)),
        };
        Ok(PointedStep { outcome, rendered, rules, inputs, built, held, diagnostics })
    }

    fn derive_refs(&self, step: &PointedStep, cache: &mut Cache) -> Result<OwnRefs, PassError> {
        let Attempt { repo, settings, clock } = *self;
        let (refs, identity) = (&settings.refs, &settings.identity);
        let Some(rendered) = &step.rendered else { return Ok(OwnRefs::default()) };
        let alive = settings.beat(clock).map(|(last, _)| last);
        let wanted = WantedRefs { rendered, clusters: &step.built.fleet.clusters, identity, alive };
        cluster_refs::repair(repo, refs, wanted, &mut cache.cluster_refs)?;
        let others = cache.cluster_refs.applied_by_others();
        cluster_refs::repair_branches(repo, refs, others, rendered)?;
        Ok(OwnRefs {
            rendered: Some(rendered.commit),
            clusters: cache.cluster_refs.refs(),
            branches: repo.list_refs(&refs.cluster_branches)?,
        })
    }

    fn note_processed(&self, start: &Start, step: &PointedStep) -> Result<(), PassError> {
        let Attempt { repo, settings, .. } = *self;
        let PointedStep { outcome, rendered, rules, inputs, held, diagnostics, .. } = step;
        let (name, source) = &start.source;
        let processed = Processed {
            source: *source,
            branch: Some(name.clone()).filter(|name| name.starts_with("refs/")),
            rendered: rendered.as_ref().map(|rendered| rendered.commit),
            errors: diagnostics.errors().count(),
            warnings: diagnostics.iter().filter(|one| one.severity == Severity::Warning).count(),
            result: if held.is_empty() { outcome.word() } else { "held" }.to_owned(),
            held: held.iter().map(|held| HeldRecord::of(held).to_string()).collect(),
            rules: *rules,
            moment: inputs.now,
        };
        let written = publish::write_processed(repo, &settings.refs, &processed, &settings.identity)?;
        remember(repo, &settings.refs.processed, written);
        Ok(())
    }

    /// Writes the fleet report.
    fn report(&self, step: &PointedStep, own: &OwnRefs, cache: &mut Cache) -> Result<(), PassError> {
        let Attempt { repo, settings, .. } = *self;
        let PointedStep { rendered: Some(rendered), inputs, .. } = step else { return Ok(()) };
        let folders = cache.cluster_refs.folders(repo, &own.clusters)?;
        let (statuses, published) = (inputs.reports.statuses.clone(), folders.clone());
        let differing = publish::differing(repo, &statuses, &published, &mut cache.differing);
        cache.summary.update(SummaryInputs {
            statuses,
            published,
            differing,
            decisions: rendered.state.decisions.clone(),
            releases: rendered.state.releases.clone(),
            now: inputs.now,
        });
        let earlier = cache.report.take();
        let author = (&settings.identity, inputs.now.as_second());
        cache.report = Some(publish::write_report(repo, &settings.refs, &cache.summary, earlier, author)?);
        still_in_force(repo, settings, rendered.commit)?;
        if !settings.is_copy {
            remember(repo, IN_FORCE, rendered.commit);
        }
        Ok(())
    }

    fn result(
        &self,
        start: Start,
        step: PointedStep,
        own: OwnRefs,
        cache: &mut Cache,
        publications: &mut Publications,
    ) -> Result<PassResult, PassError> {
        let Attempt { repo, settings, clock } = *self;
        let (source, rendered) = (start.source.1, step.rendered.as_ref());
        let noted = self.events(start.trust);
        let is_ahead = step.inputs.is_ahead_of(clock) || repo.commit(source)?.seconds > clock.as_second();
        // Missing objects may arrive without a move of any ref.
        let lacks_objects = cache.statuses.lacks_objects() || step.inputs.lacks_objects();
        let has_nothing_to_say = step.held.is_empty() && noted.is_empty();
        let is_unchanged = step.outcome == PassOutcome::Unchanged;
        if step.inputs.reports.silences.outage.is_some() {
            cache.forgive(clock);
        }
        let standing = FleetStanding::of(rendered, &step.inputs, &step.built, cache, clock);
        let shown = HubContent {
            sequence: rendered.map(|rendered| rendered.trailers.seq).unwrap_or_default(),
            decisions: rendered.map(|rendered| rendered.state.decisions.clone()).unwrap_or_default(),
            clusters: step.built.fleet.clusters.clone(),
            statuses: step.inputs.reports.statuses.clone(),
        };
        let next_beat = settings.beat(clock).map(|(_, next)| next);
        let is_unrendered = step.inputs.has_unrendered();
        let retry = Timestamp::from_second(clock.as_second() + RENDER_AGAIN).ok().filter(|_| is_unrendered);
        let next_change = [step.built.next_change, step.inputs.reports.silences.next, next_beat, retry]
            .into_iter()
            .flatten()
            .min();
        let mut diagnostics = step.diagnostics;
        diagnostics.extend(noted);
        cache.keep(step.inputs.into_cache(), step.rendered);
        let Publications { outcome, plan, rollout_steps } = std::mem::take(publications);
        Ok(PassResult {
            source,
            outcome,
            plan,
            rollout_steps,
            standing,
            shown,
            held: step.held,
            diagnostics,
            next_change,
            is_steady: is_unchanged && has_nothing_to_say && !lacks_objects && !is_ahead && !is_unrendered,
            seen: RefSnapshot { source: start.source, statuses: start.statuses, own },
        })
    }

    /// Returns the notes about events of this pass: proofs of others' commits, and removed stale locks.
    fn events(&self, trust: Option<Trust>) -> Vec<Diagnostic> {
        let proved = trust.and_then(|trust| trust.note(&self.settings.refs.rendered)).map(Diagnostic::note);
        proved.into_iter().chain(self.repo.cleared_locks().into_iter().map(cleared)).collect()
    }
}

pub(super) fn cleared(lock: String) -> Diagnostic {
    Diagnostic::warning(Pos::file(lock), "removed a stale lock left by a process that has exited")
}

/// Derived refs were written for one state. If another process published meanwhile, they may be behind the branch,
/// and the pass runs again.
fn still_in_force(repo: &Repo, settings: &Settings, rendered: CommitId) -> Result<(), PassError> {
    let name = &settings.refs.rendered;
    match repo.read_ref(name)? {
        Some(now) if now == rendered => Ok(()),
        _ => Err(GitError::Raced { name: name.clone() }.into()),
    }
}
