//! Asks the gate about a source commit: gathers the approvals, looks up what it asks for, and returns the verdict with
//! the trailers from which anybody can repeat it.
//!
//! The verdict's inputs besides commits are its [`Basis`].

use std::collections::BTreeSet;

use super::PassInputs;
use super::approvals::Approvals;
use super::error::InputError;
use super::gate_inputs::{Basis, Step};
use super::past_states::PastStates;
use crate::publish::{prune_permits, rollback};
use berth_base::diag::Diagnostics;
use berth_base::model::{Decision, Digest, Key, Map};
use berth_engine::gate::{self, HeldRecord, Outlook, PastState, Question, Span, Verdict, Wanted};
use berth_git::protocol::trailers::{ALLOW_PRUNE, GATE, HELD, PROCESSED, ROLLBACK, RULES, USED_APPROVAL};
use berth_git::{CommitId, Repo};

/// The span ahead in which deadlines count as part of a change.
const AHEAD: Span = Span::hours(30 * 24);

/// A verdict, with what to write down and to say.
#[derive(Clone, Debug, Default)]
pub struct Gated {
    pub verdict: Verdict,
    /// The rendered commit that this goes back to.
    pub rollback: Option<CommitId>,
    pub trailers: Vec<(String, String)>,
    pub diagnostics: Diagnostics,
}

impl Gated {
    /// Reports whether another moment might have given another verdict: losses and approvals count for a time.
    pub fn reads_moment(&self, inputs: &PassInputs) -> bool {
        !self.verdict.held.is_empty() || self.verdict.state.ledger != inputs.current.ledger
    }
}

/// Asks the gate.
pub fn ask(repo: &Repo, step: &Step<'_>, basis: &Basis) -> Result<Gated, InputError> {
    let approvals = Approvals::gather(repo, step, basis)?;
    let rendered = step.rendered;
    let is_edited = basis.since != Some(step.source);
    let outlook = match step.outlook.filter(|_| is_edited) {
        Some(outlook) => outlook(AHEAD.after(step.now))?,
        None => Outlook::default(),
    };
    let past_states = PastStates::of(repo);
    let mut lookup = Lookups { repo, step, basis, past_states, rollback: None };
    let before = Basis::of_trailers(&rendered.trailers);
    let mut verdict = gate::judge(
        &Question {
            states: step.states,
            step: step.first,
            now: step.now,
            before: &rendered.commit.to_string(),
            seq: rendered.trailers.seq.saturating_add(1),
            source: &step.source.to_string(),
            is_edited,
            limits: &basis.limits,
            limits_stay: before.is_some_and(|before| before.limits == basis.limits),
            failing: step.failing,
            outlook: &outlook,
            in_files: &approvals.in_files(),
            in_messages: &approvals.in_messages,
            fleet: step.fleet,
        },
        &mut lookup,
    )?;
    let rollback = lookup.rollback.filter(|_| verdict.is_rollback);
    for held in &mut verdict.held {
        let expired = approvals.expired.get(&held.digest).or_else(|| approvals.expired.get(&held.all));
        held.expired = expired.copied();
    }
    let trailers = trailers_of(step.source, basis, &verdict, rollback);
    let mut diagnostics = approvals.diagnostics.clone();
    let used = &step.states.current.ledger.used;
    approvals.explain(&verdict, used, rollback, &mut diagnostics);
    Ok(Gated { verdict, rollback, trailers, diagnostics })
}

/// Looks up what the gate asks for.
struct Lookups<'a> {
    repo: &'a Repo,
    step: &'a Step<'a>,
    basis: &'a Basis,
    past_states: PastStates<'a>,
    /// The earlier publication of the desired state, once it was found.
    rollback: Option<CommitId>,
}

impl gate::Lookup for &mut Lookups<'_> {
    type Error = InputError;

    fn edit_alone(&mut self) -> Result<Vec<Map<Key, Decision>>, InputError> {
        Ok((self.step.edit_alone)())
    }

    fn state_before(&mut self, commit: &str, wanted: &Wanted<'_>) -> Result<Option<PastState>, InputError> {
        self.past_states.read(commit, wanted)
    }

    fn is_rollback(&mut self) -> Result<bool, InputError> {
        let (step, limits) = (self.step, &self.basis.limits);
        let since = limits.rollback_window.before(step.now);
        let found = rollback::in_force_before(
            self.repo,
            step.rendered,
            step.states.next,
            limits.rollback,
            Some(since),
        )?;
        self.rollback = found;
        Ok(found.is_some())
    }
}

fn trailers_of(
    source: CommitId,
    basis: &Basis,
    verdict: &Verdict,
    rollback: Option<CommitId>,
) -> Vec<(String, String)> {
    let mut lines = vec![(GATE, basis.limits.to_string())];
    lines.extend(basis.since.map(|since| (PROCESSED, since.to_string())));
    let same_source = basis.rules.filter(|_| basis.since == Some(source));
    lines.extend(same_source.map(|commit| (RULES, commit.to_string())));
    let used: BTreeSet<Digest> = verdict.approved.iter().flat_map(|one| one.digests.clone()).collect();
    lines.extend(used.into_iter().map(|digest| (USED_APPROVAL, digest.to_string())));
    let prunable = verdict.prunable();
    let prunable = prunable.iter().map(|(path, clusters)| prune_permits::line(path, clusters));
    lines.extend(prunable.map(|line| (ALLOW_PRUNE, line)));
    lines.extend(verdict.held.iter().map(|held| (HELD, HeldRecord::of(held).to_string())));
    lines.extend(rollback.map(|commit| (ROLLBACK, commit.to_string())));
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
