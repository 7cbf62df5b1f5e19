//! A step of the rendered branch: from a source commit, the current state and the outside to the next commit, which
//! is written while no ref points to it yet.
//!
//! - [`step`]: the next step as of now. Refuses steps that must not be published. The daemon publishes the step; a
//!   plan shows it.
//! - [`compute`]: the underlying computation, which proofs repeat.
//!
//! The daemon uses the outside as it is now, a proof uses the outside as a commit recorded it. Both call [`compute`],
//! so every input of a publication is also proven: the result may depend only on [`CommitInputs`], and inputs from
//! flags or a clock must be recorded in the commit.

mod compute;

use crate::inputs::gate::Basis;
use crate::inputs::{BuildCache, Reports, current_state};
use crate::publish::{self, CurrentState, Processed};
use berth_base::model::Timestamp;
use berth_engine::gate::Limits;
use berth_git::shared_refs::Refs;
use berth_git::{CommitId, Identity, Repo};

pub use compute::{CommitInputs, NextCommit, NextCommitError, Outside, compute};

/// All inputs of the next step, as the repository has them now.
#[derive(Debug)]
pub struct StepInputs<'a> {
    /// The source's name in messages, and its commit.
    pub name: &'a str,
    pub source: CommitId,
    /// The current state.
    pub current: Option<&'a CurrentState>,
    pub processed: Option<&'a Processed>,
    /// The refs as the repository has them.
    pub refs: &'a Refs,
    pub reports: Reports,
    pub identity: &'a Identity,
    /// See [`CommitInputs::signs_anew`].
    pub signs_anew: bool,
    pub limits: &'a Limits,
    pub exemptions: Exemptions,
    pub clock: Timestamp,
    /// The moment to decide for, instead of the one from source, state and reports.
    pub at: Option<Timestamp>,
    pub cache: BuildCache,
}

/// The refusals that are lifted for one step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exemptions {
    /// Allows the source to go back, or to be another branch.
    pub rewind: bool,
    /// Allows a rendered branch other than the one processed last.
    pub rewritten: bool,
    /// Allows a state without objects after one that had some.
    pub empty: bool,
    /// Allows a first state where the remote's state was not fetched.
    pub first: bool,
    /// Skips the gate.
    pub removals: bool,
}

/// Makes the next step for publication. Fails if it must not be published.
pub fn step(repo: &Repo, start: StepInputs<'_>) -> Result<NextCommit, NextCommitError> {
    run(repo, start, &mut Err)
}

/// Makes the same step for display, with every refusal of [`step`].
pub fn rehearse(
    repo: &Repo,
    start: StepInputs<'_>,
) -> Result<(NextCommit, Vec<NextCommitError>), NextCommitError> {
    let mut refusals = Vec::new();
    let mut collect = |error: NextCommitError| {
        if !error.is_refusal() {
            return Err(error);
        }
        refusals.push(error);
        Ok(())
    };
    let since = Basis::in_force(start.limits, start.current, start.processed).since;
    let edited = since != Some(start.source);
    let mut next = run(repo, start, &mut collect)?;
    next.policy = next.inputs.policy_report(&next.built, edited);
    Ok((next, refusals))
}

type Refuse<'r> = dyn FnMut(NextCommitError) -> Result<(), NextCommitError> + 'r;

fn run(repo: &Repo, start: StepInputs<'_>, refuse: &mut Refuse<'_>) -> Result<NextCommit, NextCommitError> {
    let StepInputs {
        name,
        source,
        current,
        processed,
        refs,
        reports,
        identity,
        signs_anew,
        limits,
        exemptions,
        clock,
        at,
        cache,
    } = start;
    let basis = Basis::in_force(limits, current, processed);
    let seen = processed.map(|processed| processed.moment);
    match current {
        None => {
            current_state::refuse_second(repo, refs).map_err(NextCommitError::from).or_else(&mut *refuse)?;
            publish::refuse_gone(repo, refs).map_err(NextCommitError::from).or_else(&mut *refuse)?;
            if !exemptions.first {
                current_state::refuse_unfetched(repo, refs)?;
            }
        }
        Some(_) if exemptions.rewritten => {}
        Some(current) => {
            let last = processed.and_then(|processed| processed.rendered);
            let rewritten = publish::refuse_rewritten(repo, refs, current, last);
            rewritten.map_err(NextCommitError::from).or_else(&mut *refuse)?;
        }
    }
    if !exemptions.rewind {
        refuse_rewind(repo, name, source, basis.since).or_else(&mut *refuse)?;
    }
    let outside =
        Outside::Now { clock, seen, at, basis, gated: !exemptions.removals, reports, cache: cache.into() };
    let next = compute(repo, CommitInputs { source, current, identity, signs_anew, outside })?;
    if !exemptions.empty {
        let emptied = publish::refuse_empty(&next.inputs.current, &next.built.state);
        emptied.map_err(NextCommitError::from).or_else(&mut *refuse)?;
    }
    Ok(next)
}

/// Refuses a source that does not contain the commit processed last: somebody rewrote its history.
fn refuse_rewind(
    repo: &Repo,
    name: &str,
    source: CommitId,
    last: Option<CommitId>,
) -> Result<(), NextCommitError> {
    let Some(last) = last else { return Ok(()) };
    if repo.has_commit(last) && repo.is_same_or_after(source, last)? {
        return Ok(());
    }
    Err(NextCommitError::Rewound { name: name.to_owned(), source_commit: source, last })
}
