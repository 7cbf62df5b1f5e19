//! Computes a step. Proofs repeat the computation.

use std::mem;

use crate::inputs::gate::{self, Basis, Gated, Step};
use crate::inputs::{BuildCache, InputError, PassInputs, PolicyReport, Rendering, Reports, SourceCommit};
use crate::publish::rollout_steps::{self, RolloutStep};
use crate::publish::{self, CurrentState, PublishError, Published, Stamp, Summary, Trailers};
use berth_base::diag::Diagnostics;
use berth_base::model::{ClusterStatus, ContentError, Key, Map, Shared, Timestamp};
use berth_engine::gate::{Approved, Deadline, Held, Outlook, Verdict, without_gate};
use berth_engine::pipeline::Built;
use berth_engine::plan::{Plan, plan_of};
use berth_engine::policy_tests::failing_workloads;
use berth_engine::state::{Comparison, State};
use berth_git::{CommitId, GitContents, GitError, Identity, Repo};

/// All inputs of the next commit, which depends on nothing else.
#[derive(Debug)]
pub struct CommitInputs<'a> {
    pub source: CommitId,
    pub current: Option<&'a CurrentState>,
    pub identity: &'a Identity,
    /// Makes a commit even if nothing changes, so that the branch's tip has a signature.
    pub signs_anew: bool,
    pub outside: Outside,
}

impl CommitInputs<'_> {
    /// Returns the moment, to the second, at which a new source commit is first seen.
    fn first_seen(&self) -> Option<Timestamp> {
        match &self.outside {
            Outside::Now { clock, at: None, basis, .. } if basis.since != Some(self.source) => {
                Timestamp::from_second(clock.as_second()).ok()
            }
            _ => None,
        }
    }

    /// Returns how charts and bases are rendered.
    fn rendering(&self) -> Rendering {
        match &self.outside {
            Outside::Now { .. } => Rendering::Now,
            Outside::Recorded { trailers, .. } => Rendering::of_trailers(&trailers.others),
        }
    }
}

/// The inputs that come from neither the source nor the current state.
#[derive(Debug)]
pub enum Outside {
    /// The present. `clock` decides which reports and deadlines count, and is the moment of a new source commit.
    /// `seen` is the moment of the last pass over this source commit. `at` overrides the resulting moment. Without
    /// `gated`, removals need no approval. The cache only saves time.
    Now {
        clock: Timestamp,
        seen: Option<Timestamp>,
        at: Option<Timestamp>,
        basis: Basis,
        gated: bool,
        reports: Reports,
        cache: Box<BuildCache>,
    },
    /// The inputs recorded in a commit: its facts and trailers. No cache is used.
    Recorded { facts: Map<String, Shared<ClusterStatus>>, trailers: Trailers },
}

/// The next commit with its inputs and intermediate results.
#[derive(Debug)]
pub struct NextCommit {
    pub drafted: Published,
    /// The commit whose access rules applied.
    pub rules: Option<CommitId>,
    pub inputs: PassInputs,
    /// The next state before the gate.
    pub built: Built,
    /// The state to publish: the next state without the changes that the gate holds.
    pub state: State,
    /// The state to which this one leads when all waves are done, with the records of the next state. Held workloads
    /// are unchanged in it.
    pub end: State,
    pub held: Vec<Held>,
    /// The removals that approvals let go with this step.
    pub approved: Vec<Approved>,
    /// Some new approval in a message matches no removal.
    pub has_idle_approval: bool,
    /// The deadlines that the change brings and the gate does not hold.
    pub deadlines: Vec<Deadline>,
    pub plan: Plan,
    pub rollout_steps: Vec<RolloutStep>,
    /// The findings of policy tests, if the step is rehearsed.
    pub policy: PolicyReport,
    /// All diagnostics, including faults of reports.
    pub diagnostics: Diagnostics,
}

/// The reason why the next commit could not be made. Faults of the fleet are diagnostics instead.
#[derive(Debug, thiserror::Error)]
pub enum NextCommitError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error(transparent)]
    Inputs(#[from] InputError),
    #[error(
        "the source `{name}` is at {source_commit}, which does not come after {last}, the commit processed last"
    )]
    Rewound { name: String, source_commit: CommitId, last: CommitId },
}

impl NextCommitError {
    /// Returns the commit with the access rules, if it is missing.
    pub(crate) fn lacks_rules_of(&self) -> Option<CommitId> {
        match self {
            NextCommitError::Inputs(InputError::NoRules { commit }) => Some(*commit),
            _ => None,
        }
    }

    /// Returns the source that cannot be rendered here, and why, if the commit had it rendered.
    pub(crate) fn lacks_renderer(&self) -> Option<String> {
        match self {
            NextCommitError::Inputs(error @ InputError::NotRendered { .. }) => Some(error.to_string()),
            _ => None,
        }
    }

    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        match self {
            NextCommitError::Git(error) => error.hint(),
            NextCommitError::Publish(error) => error.hint(),
            NextCommitError::Content(_) => None,
            NextCommitError::Inputs(error) => error.hint(),
            NextCommitError::Rewound { last, .. } => Some(format!(
                "somebody force-pushed, it is another branch, or a shallow clone lacks the commit; \
                 restore {last} (git merge {last}), or allow it for one run with --allow-rewind"
            )),
        }
    }

    /// Reports whether the step was computed but must not be published.
    pub fn is_refusal(&self) -> bool {
        match self {
            NextCommitError::Publish(error) | NextCommitError::Inputs(InputError::Publish(error)) => {
                error.is_refusal()
            }
            NextCommitError::Rewound { .. } => true,
            _ => false,
        }
    }

    /// Returns the underlying failure of Git, including one while writing.
    pub fn git(&self) -> Option<&GitError> {
        match self {
            NextCommitError::Git(error) | NextCommitError::Publish(PublishError::Git(error)) => Some(error),
            _ => None,
        }
    }
}

impl NextCommit {
    /// Reports whether an approval lets a change of a workload in a cluster go with this step.
    pub fn is_approved(&self, key: &Key, cluster: &str) -> bool {
        let lets_go = |approved: &Approved| {
            approved.places.is_empty() || approved.places.iter().any(|(loses, _)| loses == cluster)
        };
        self.approved.iter().any(|approved| approved.key == *key && lets_go(approved))
    }
}

/// Makes the next commit without refusing any: [`step`] refuses, and a proof repeats a publication.
pub fn compute(repo: &Repo, mut given: CommitInputs<'_>) -> Result<NextCommit, NextCommitError> {
    let mut contents = GitContents::writing(repo)?;
    let (mut inputs, built, rules) = read_and_build(repo, &mut given, &mut contents)?;
    let mut objects = inputs.take_object_index();
    repo.progress().begin("comparing with the current state");
    let states = Comparison::of(&inputs.current, &built.desired);
    let mut step =
        Unjudged { repo, given: &given, inputs: &inputs, now: inputs.now, built: &built, states: &states };
    let mut gated = step.ask_gate()?;
    if let Some(seen) = given.first_seen().filter(|seen| *seen > step.now && gated.reads_moment(step.inputs))
    {
        step.now = seen;
        gated = step.ask_gate()?;
    }
    inputs.now = step.now;
    let Verdict { held, approved, deadlines, state, mut end, .. } = gated.verdict;
    built.keep_pins(&mut end);
    (end.releases, end.ledger) = (state.releases.clone(), state.ledger.clone());
    objects.update(&state.decisions);
    let plan = plan_of(&Comparison::of(&inputs.current, &state), &objects);
    let mut told = inputs.foreign().clone();
    told.extend(built.diagnostics.iter().cloned());
    told.extend(gated.diagnostics);
    told.sort();
    let info = repo.commit(given.source)?;
    let stamp = Stamp {
        identity: given.identity.clone(),
        trailers: gated.trailers.into_iter().chain(inputs.rendering_trailers()).collect(),
        signs_anew: given.signs_anew,
        ..Stamp::new(given.source, info.subject(), info.seconds, inputs.now)
    };
    let summary = Summary::of(&plan, given.current.is_none());
    let rollout_steps = rollout_steps::steps(&inputs.current.releases, &state.releases);
    let summary =
        summary.with_rollouts(&rollout_steps).with_members(&inputs.current, &state).with_problems(&told);
    let drafted = publish::draft(repo, given.current, &state, &stamp, &summary)?;
    let mut diagnostics = told;
    diagnostics.extend(inputs.reports.odd.iter().cloned());
    diagnostics.sort();
    let policy = PolicyReport::default();
    inputs.keep_object_index(objects);
    Ok(NextCommit {
        policy,
        drafted,
        rules,
        inputs,
        built,
        state,
        end,
        held,
        approved,
        has_idle_approval: gated.has_idle_approval,
        deadlines,
        plan,
        rollout_steps,
        diagnostics,
    })
}

/// A step before the gate.
struct Unjudged<'a> {
    repo: &'a Repo,
    given: &'a CommitInputs<'a>,
    inputs: &'a PassInputs,
    now: Timestamp,
    built: &'a Built,
    states: &'a Comparison<'a>,
}

impl Unjudged<'_> {
    /// Submits the change to the gate. The first commit removes nothing, so it skips the gate.
    fn ask_gate(&self) -> Result<Gated, NextCommitError> {
        let Unjudged { repo, given, inputs, now, built, states } = *self;
        let basis = match &given.outside {
            Outside::Now { basis, gated, .. } => gated.then(|| basis.clone()),
            Outside::Recorded { trailers, .. } => Basis::of_trailers(trailers),
        };
        let (Some(basis), Some(rendered)) = (basis, given.current) else {
            let (state, end) = (without_gate(states.current, &built.state), built.desired.clone());
            let verdict = Verdict { state, end, ..Verdict::default() };
            return Ok(Gated { verdict, ..Gated::default() });
        };
        let edit_alone = || inputs.edit_alone(&built.desired.facts, rendered.trailers.now);
        let edited = basis.since != Some(given.source);
        let outlook = |until| self.outlook(&basis, until);
        let findings = inputs.holding_findings(built, edited);
        let failing = failing_workloads(&findings, &inputs.current.decisions, &built.desired.decisions);
        let step = Step {
            source: given.source,
            states,
            first: &built.state,
            failing: &failing,
            files: &built.fleet.approvals,
            now,
            rendered,
            edit_alone: &edit_alone,
            outlook: built.next_change.map(|_| &outlook as &dyn Fn(Timestamp) -> _),
            fleet: &built.fleet,
        };
        Ok(gate::ask(repo, &step, &basis)?)
    }

    /// Returns the coming deadlines, and for a new source also those of the previous source.
    fn outlook(&self, basis: &Basis, until: Timestamp) -> Result<Outlook, InputError> {
        let Unjudged { repo, given, inputs, now, built, .. } = *self;
        let facts = &built.desired.facts;
        let with_change = inputs.ahead(facts, facts, now, until);
        let before = basis.since.filter(|since| *since != given.source && repo.has_commit(*since));
        let without_change = match before.filter(|_| !with_change.is_empty()) {
            Some(commit) => {
                let source = SourceCommit { repo, commit, rules: basis.rules, current: given.current };
                let rendering = given.rendering();
                let before = PassInputs::recorded(source, facts.clone(), now, &rendering)?;
                before.ahead(facts, &inputs.current.facts, now, until)
            }
            None => Vec::new(),
        };
        Ok(Outlook { with_change, without_change })
    }
}

fn read_and_build(
    repo: &Repo,
    given: &mut CommitInputs<'_>,
    contents: &mut GitContents<'_>,
) -> Result<(PassInputs, Built, Option<CommitId>), NextCommitError> {
    let progress = repo.progress();
    progress.begin("reading the fleet");
    let first_seen = given.first_seen();
    let source = |rules| SourceCommit { repo, commit: given.source, rules, current: given.current };
    match &mut given.outside {
        Outside::Now { clock, seen, at, basis, reports, cache, .. } => {
            let (reports, cache) = (mem::take(reports), *mem::take(cache));
            let rules = given.current.and_then(|_| basis.rules_for(given.source));
            let mut inputs = PassInputs::commit(source(rules), reports, *clock, cache)?;
            // An imported state names no source. The commit processed last gave the same.
            inputs.assume_published_source(given.current.and(basis.since));
            progress.begin("rendering objects");
            let built = match (at, first_seen) {
                (Some(at), _) => {
                    inputs.now = *at;
                    inputs.build_with_cache(contents)?
                }
                (None, Some(first_seen)) => inputs.build_first(first_seen, contents)?,
                (None, None) => inputs.build_again(*seen, *clock, contents)?,
            };
            Ok((inputs, built, rules))
        }
        Outside::Recorded { facts, trailers } => {
            let now = trailers.now.unwrap_or(Timestamp::UNIX_EPOCH);
            let rules = given.current.and_then(|_| gate::rules_of(trailers, given.source));
            let facts = mem::take(facts);
            let rendering = Rendering::of_trailers(&trailers.others);
            let inputs = PassInputs::recorded(source(rules), facts, now, &rendering)?;
            let built = inputs.build(contents)?;
            Ok((inputs, built, rules))
        }
    }
}
