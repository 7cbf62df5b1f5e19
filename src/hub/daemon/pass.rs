//! A pass: read the source's newest commit, decide, render, publish, and update the derived refs.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::cache::Cache;
use super::error::PassError;
use super::settings::Settings;
use super::source_branch::find_source;
use super::standing::FleetStanding;
use super::tip_check::refuse_untrusted;
use crate::inputs::Reports;
use crate::next_commit::{self, NextCommit, StepInputs};
use crate::publish::cluster_refs::WantedRefs;
use crate::publish::rollout_steps::RolloutStep;
use crate::publish::trusted_commits::{IN_FORCE, remember};
use crate::publish::{self, Published, cluster_branches, cluster_refs};
use crate::verify::trust;
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity};
use berth_base::model::{Map, Timestamp};
use berth_engine::gate::{Held, HeldRecord};
use berth_engine::hub_objects::Shown;
use berth_engine::plan::Plan;
use berth_engine::report::SummaryInputs;
use berth_git::protocol::{list_statuses, read_listed};
use berth_git::{CommitId, GitError, Recent, Repo};

/// The result of a pass.
#[derive(Debug)]
pub struct PassResult {
    pub source: CommitId,
    pub outcome: PassOutcome,
    pub plan: Plan,
    /// The steps of rollouts that were published.
    pub rollout_steps: Vec<RolloutStep>,
    pub standing: FleetStanding,
    /// The published decisions and the clusters, for those who show them elsewhere.
    pub shown: Shown,
    /// The workloads that keep their last good form until somebody approves.
    pub held: Vec<Held>,
    pub diagnostics: Diagnostics,
    pub next_change: Option<Timestamp>,
    /// Another pass over the same refs would do nothing and say the same.
    pub(super) is_steady: bool,
    pub seen: RefSnapshot,
}

/// The publication of a pass, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PassOutcome {
    Published {
        commit: CommitId,
        seq: u64,
    },
    #[default]
    Unchanged,
}

/// All that the attempts of one pass published.
#[derive(Default)]
struct Made {
    outcome: PassOutcome,
    plan: Plan,
    rollout_steps: Vec<RolloutStep>,
}

impl PassOutcome {
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

/// The refs a pass depends on, to tell whether another one has anything to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefSnapshot {
    /// The source and the reports, as they were before the pass read them: what comes during a pass is for
    /// the next one.
    source: (String, CommitId),
    statuses: Map<String, CommitId>,
    own: OwnRefs,
}

/// The refs that berth writes, as they were after the pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OwnRefs {
    rendered: Option<CommitId>,
    clusters: Map<String, CommitId>,
    /// Of clusters whose folder another program applies.
    branches: Map<String, CommitId>,
}

/// The number of attempts before a pass gives up a lost race.
pub(super) const ATTEMPTS: u32 = 5;

/// Runs a pass; `clock` decides only which deadlines have passed, and shows in no output by itself.
pub fn pass(settings: &Settings, clock: Timestamp) -> Result<PassResult, PassError> {
    pass_with_cache(settings, clock, &mut Cache::default())
}

/// Runs a [`pass`] with the cache of earlier ones.
pub fn pass_with_cache(
    settings: &Settings,
    clock: Timestamp,
    cache: &mut Cache,
) -> Result<PassResult, PassError> {
    let mut attempt = 1;
    // A lost attempt's publication stays, and counts as the pass's own.
    let mut made = Made::default();
    loop {
        match attempt_pass(settings, clock, cache, &mut made) {
            // A lock has been waited for already.
            Err(error) if error.is_race() && !error.is_locked() && attempt < ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}

/// The folders whose refs are to be watched: of this work tree, and what all work trees share. An error
/// where waiting would not help: a source without a commit may get one, a misspelt one never does.
pub(crate) fn git_folders(settings: &Settings) -> Result<[PathBuf; 2], PassError> {
    let repo = Repo::open(&settings.repo)?;
    match find_source(&repo, settings) {
        Ok(_) | Err(PassError::NoSource(_)) => Ok([repo.path().to_owned(), repo.shared_path().to_owned()]),
        Err(error) => Err(error),
    }
}

/// Reads the refs as they are now.
pub(crate) fn snapshot_refs(settings: &Settings) -> Result<RefSnapshot, PassError> {
    let repo = Repo::open(&settings.repo)?;
    let source = find_source(&repo, settings)?;
    RefSnapshot::upon(source, &repo, settings)
}

/// Reports whether no ref has moved. The source comes first: it mostly is the one that has, and the others are many.
pub(super) fn is_as_seen(
    settings: &Settings,
    seen: &RefSnapshot,
    recent: &Recent,
) -> Result<bool, PassError> {
    let repo = Repo::open(&settings.repo)?.recalling(recent);
    let source = find_source(&repo, settings)?;
    Ok(source == seen.source && RefSnapshot::upon(source, &repo, settings)? == *seen)
}

impl RefSnapshot {
    /// Reads all refs but the source.
    fn upon(source: (String, CommitId), repo: &Repo, settings: &Settings) -> Result<RefSnapshot, PassError> {
        let statuses = list_statuses(repo, &settings.refs)?;
        Ok(RefSnapshot { source, statuses, own: OwnRefs::read(repo, settings)? })
    }

    pub(super) fn source(&self) -> CommitId {
        self.source.1
    }

    /// Returns the refs with their commits.
    pub(super) fn inputs(&self) -> Json {
        let RefSnapshot { source: (name, source), statuses, own: OwnRefs { rendered, clusters, branches } } =
            self;
        let refs = |refs: &Map<String, CommitId>| -> serde_json::Map<String, Json> {
            refs.iter().map(|(name, id)| (name.clone(), id.to_string().into())).collect()
        };
        let others = [statuses, clusters, branches].map(refs);
        json!([name, source.to_string(), rendered.map(|id| id.to_string()), others])
    }
}

impl OwnRefs {
    fn read(repo: &Repo, settings: &Settings) -> Result<OwnRefs, PassError> {
        let refs = &settings.refs;
        Ok(OwnRefs {
            rendered: repo.read_ref(&refs.rendered)?,
            clusters: repo.list_refs(&refs.clusters)?,
            branches: repo.list_refs(&refs.cluster_branches)?,
        })
    }
}

fn attempt_pass(
    settings: &Settings,
    clock: Timestamp,
    cache: &mut Cache,
    made: &mut Made,
) -> Result<PassResult, PassError> {
    let repo = Repo::open(&settings.repo)?.watched(&settings.progress).recalling(&cache.recent);
    let refs = &settings.refs;
    settings.progress.begin("reading the current state");
    // The state before the source: a source read earlier could be older than the state's own.
    let current = cache.take_current(&repo, &refs.rendered)?;
    let (name, source) = find_source(&repo, settings)?;
    let asked = list_statuses(&repo, refs)?;
    let believed = trust::believes(&repo, refs, &refs.processed, &settings.anchors)?;
    let before = publish::read_processed(&repo, refs)?.filter(|_| believed);
    settings.progress.begin("proving the current state");
    let trusted = match &current {
        Some(current) => Some(refuse_untrusted(&repo, settings, current, source, clock, cache)?),
        None => None,
    };
    let statuses = read_listed(&repo, refs, &asked, &mut cache.statuses);
    let reports = Reports::of(&repo, statuses, refs, &settings.limits.labels, current.as_ref())?;
    let start = StepInputs {
        name: &name,
        source,
        current: current.as_ref(),
        processed: before.as_ref(),
        refs,
        reports: cache.hear(reports, clock, settings.max_silent),
        identity: &settings.identity,
        signs_anew: settings.identity.signer.is_some() && publish::is_unsigned(&repo, current.as_ref())?,
        limits: &settings.limits,
        exemptions: settings.exemptions(),
        clock,
        at: None,
        cache: std::mem::take(&mut cache.build),
    };
    let next = next_commit::step(&repo, start)?;
    let NextCommit {
        drafted, rules, inputs, built, state, held, plan, rollout_steps, mut diagnostics, ..
    } = next;
    publish::point(&repo, refs, current.as_ref(), &drafted)?;
    let outcome = outcome(&drafted);
    if outcome != PassOutcome::Unchanged || made.outcome == PassOutcome::Unchanged {
        (made.outcome, made.plan) = (outcome, plan);
    }
    made.rollout_steps.extend(rollout_steps);
    let rendered = match drafted {
        Published::Committed(committed) => Some(committed.into_current(state)),
        Published::Unchanged => current.map(|current| current.sharing(state)),
    };
    let beat = settings.beat(clock);
    let alive = beat.map(|(last, _)| last);
    let mut own = OwnRefs::default();
    if let Some(rendered) = &rendered {
        let wanted =
            WantedRefs { rendered, clusters: &built.fleet.clusters, identity: &settings.identity, alive };
        cluster_refs::repair(&repo, refs, wanted, &mut cache.cluster_refs)?;
        let others = cache.cluster_refs.applied_by_others();
        cluster_branches::repair(&repo, refs, others, rendered)?;
        own = OwnRefs {
            rendered: Some(rendered.commit),
            clusters: cache.cluster_refs.refs(),
            branches: repo.list_refs(&refs.cluster_branches)?,
        };
    }
    let processed = publish::Processed {
        source,
        branch: Some(name.clone()).filter(|name| name.starts_with("refs/")),
        rendered: rendered.as_ref().map(|rendered| rendered.commit),
        errors: diagnostics.errors().count(),
        warnings: diagnostics.iter().filter(|d| d.severity == Severity::Warning).count(),
        result: if held.is_empty() { outcome.word() } else { "held" }.to_owned(),
        held: held.iter().map(|held| HeldRecord::of(held).to_string()).collect(),
        rules,
        moment: inputs.now,
    };
    let written = publish::write_processed(&repo, refs, &processed, &settings.identity)?;
    remember(&repo, &refs.processed, written);
    if let Some(rendered) = &rendered {
        let folders = cache.cluster_refs.folders(&repo, &own.clusters)?;
        let (statuses, published) = (inputs.statuses.clone(), folders.clone());
        let differing = publish::differing(&repo, &statuses, &published, &mut cache.differing);
        cache.summary.update(SummaryInputs {
            statuses,
            published,
            differing,
            decisions: rendered.state.decisions.clone(),
            releases: rendered.state.releases.clone(),
            now: inputs.now,
        });
        let earlier = cache.report.take();
        let seconds = inputs.now.as_second();
        let written =
            publish::write_report(&repo, refs, &cache.summary, earlier, &settings.identity, seconds)?;
        cache.report = Some(written);
        still_in_force(&repo, settings, rendered.commit)?;
        if !settings.is_copy {
            remember(&repo, IN_FORCE, rendered.commit);
        }
    }
    // Said once, where it happened: proofs of what others made, and locks.
    let proved = trusted.and_then(|trust| trust.note(&refs.rendered)).map(Diagnostic::note);
    let locks = repo.cleared_locks().into_iter().map(cleared);
    let once: Vec<Diagnostic> = proved.into_iter().chain(locks).collect();
    // Objects that are missing may arrive without a ref that moves.
    let lacks_objects = cache.statuses.lacks_objects() || inputs.lacks_objects();
    let is_ahead = inputs.is_ahead_of(clock) || repo.commit(source)?.seconds > clock.as_second();
    let is_steady = outcome == PassOutcome::Unchanged
        && held.is_empty()
        && once.is_empty()
        && !lacks_objects
        && !is_ahead;
    diagnostics.extend(once);
    let seen = RefSnapshot { source: (name, source), statuses: asked, own };
    if inputs.silences.outage.is_some() {
        cache.forgive(clock);
    }
    let standing = FleetStanding::of(rendered.as_ref(), &inputs, &built, cache, clock);
    let next_silence = inputs.silences.next;
    let shown = Shown {
        sequence: rendered.as_ref().map(|rendered| rendered.trailers.seq).unwrap_or_default(),
        decisions: rendered.as_ref().map(|rendered| rendered.state.decisions.clone()).unwrap_or_default(),
        clusters: built.fleet.clusters.clone(),
        statuses: inputs.statuses.clone(),
    };
    cache.keep(inputs.into_cache(), rendered);
    let timed = built.next_change.into_iter().chain(next_silence);
    let next_change = timed.chain(beat.map(|(_, next)| next)).min();
    let Made { outcome, plan, rollout_steps } = std::mem::take(made);
    Ok(PassResult {
        source,
        outcome,
        plan,
        rollout_steps,
        standing,
        shown,
        held,
        diagnostics,
        next_change,
        is_steady,
        seen,
    })
}

pub(super) fn cleared(lock: String) -> Diagnostic {
    Diagnostic::warning(Pos::file(lock), "removed a stale lock left by a process that has exited")
}

/// Derived refs were written for one state. If another process published meanwhile, they may now stand
/// behind the branch, and this pass is run again.
fn still_in_force(repo: &Repo, settings: &Settings, rendered: CommitId) -> Result<(), PassError> {
    let name = &settings.refs.rendered;
    match repo.read_ref(name)? {
        Some(now) if now == rendered => Ok(()),
        _ => Err(GitError::Raced { name: name.clone() }.into()),
    }
}

fn outcome(published: &Published) -> PassOutcome {
    match published {
        Published::Committed(committed) => {
            PassOutcome::Published { commit: committed.commit, seq: committed.seq }
        }
        Published::Unchanged => PassOutcome::Unchanged,
    }
}
