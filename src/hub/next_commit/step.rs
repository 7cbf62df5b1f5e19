//! The next step as of now, and everything that must not be published.

use super::{AdvanceError, Advanced, Given, Outside, advance};
use crate::inputs::gate::Basis;
use crate::inputs::{Known, Reports, current};
use crate::publish::{self, Previous, Processed};
use berth_base::model::Timestamp;
use berth_engine::gate::Limits;
use berth_git::protocol::Refs;
use berth_git::{CommitId, Identity, Repo};

/// Everything that the next step is a function of, as the repository has it now.
#[derive(Debug)]
pub struct Start<'a> {
    /// The source's name in messages, and its commit.
    pub name: &'a str,
    pub source: CommitId,
    /// The current state.
    pub previous: Option<&'a Previous>,
    pub processed: Option<&'a Processed>,
    /// The refs as the repository has them.
    pub refs: &'a Refs,
    pub reports: Reports,
    pub identity: &'a Identity,
    pub limits: &'a Limits,
    pub leave: Leave,
    pub clock: Timestamp,
    /// The moment to decide for, in place of the one that source, state and reports give.
    pub at: Option<Timestamp>,
    pub known: Known,
}

/// Refusals that are lifted for one step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leave {
    /// The source may go back, or be another branch.
    pub rewind: bool,
    /// The rendered branch may be another than the one processed last.
    pub rewritten: bool,
    /// A state without any object may follow one that had some.
    pub empty: bool,
    /// A first state may be made where a remote's was not fetched.
    pub first: bool,
    /// The gate is not asked.
    pub removals: bool,
}

/// Makes the next step, to be published. What must not be published is an error.
pub fn step(repo: &Repo, start: Start<'_>) -> Result<Advanced, AdvanceError> {
    run(repo, start, &mut Err)
}

/// Makes the same step to be looked at, together with everything that [`step`] would refuse.
pub fn rehearse(repo: &Repo, start: Start<'_>) -> Result<(Advanced, Vec<AdvanceError>), AdvanceError> {
    let mut refusals = Vec::new();
    let mut collect = |error: AdvanceError| {
        if !error.is_refusal() {
            return Err(error);
        }
        refusals.push(error);
        Ok(())
    };
    let advanced = run(repo, start, &mut collect)?;
    Ok((advanced, refusals))
}

type Refuse<'r> = dyn FnMut(AdvanceError) -> Result<(), AdvanceError> + 'r;

fn run(repo: &Repo, start: Start<'_>, refuse: &mut Refuse<'_>) -> Result<Advanced, AdvanceError> {
    let Start { name, source, previous, processed, refs, reports, identity, limits, leave, clock, at, known } =
        start;
    let basis = Basis::in_force(limits, previous, processed);
    match previous {
        None => {
            current::refuse_second(repo, refs).map_err(AdvanceError::from).or_else(&mut *refuse)?;
            publish::refuse_gone(repo, refs).map_err(AdvanceError::from).or_else(&mut *refuse)?;
            if !leave.first {
                current::refuse_unfetched(repo, refs)?;
            }
        }
        Some(_) if leave.rewritten => {}
        Some(previous) => {
            let last = processed.and_then(|processed| processed.rendered);
            let rewritten = publish::refuse_rewritten(repo, refs, previous, last);
            rewritten.map_err(AdvanceError::from).or_else(&mut *refuse)?;
        }
    }
    if !leave.rewind {
        refuse_rewind(repo, name, source, basis.since).or_else(&mut *refuse)?;
    }
    let (reports, known) = (Box::new(reports.into()), Box::new(known.into()));
    let outside = Outside::Now { clock, at, basis, gated: !leave.removals, reports, known };
    let advanced = advance(repo, &Given { source, previous, identity, outside })?;
    if !leave.empty {
        let emptied = publish::refuse_empty(&advanced.reading.previous, &advanced.built.state);
        emptied.map_err(AdvanceError::from).or_else(&mut *refuse)?;
    }
    Ok(advanced)
}

/// Refuses a source that does not contain the commit processed last: somebody rewrote history.
fn refuse_rewind(
    repo: &Repo,
    name: &str,
    source: CommitId,
    last: Option<CommitId>,
) -> Result<(), AdvanceError> {
    let Some(last) = last else { return Ok(()) };
    if repo.has_commit(last) && repo.is_same_or_after(source, last)? {
        return Ok(());
    }
    Err(AdvanceError::Rewound { name: name.to_owned(), source_commit: source, last })
}
