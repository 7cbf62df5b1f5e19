//! Asks the gate about a source commit: gathers new and used approvals, and returns the
//! verdict with the trailers from which anybody can repeat it.
//!
//! The verdict's inputs besides commits are its [`Basis`].

use std::collections::{BTreeMap, BTreeSet};

use super::approvals::Approvals;
use super::error::InputError;
use super::gate_inputs::{Basis, Step};
use super::{deadlines, past_removals};
use crate::publish::{ledger, rollback};
use berth_base::diag::Diagnostics;
use berth_base::model::{Digest, Timestamp};
use berth_engine::gate::{
    self, Deadline, EditAlone, Held, Outlook, PastPublication, Question, Removed, Span, Verdict,
};
use berth_git::protocol::trailers::{
    ALLOW_PRUNE, DEADLINE, GATE, HELD, PROCESSED, REMOVED, RETRIED, ROLLBACK, RULES, USED_APPROVAL,
};
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
    /// A commit is due even where the state stays the same: approvals were used, or deadlines let pass.
    pub must_record: bool,
    pub diagnostics: Diagnostics,
}

/// Returns the moment up to which a pass looks for the deadlines of a change.
pub(crate) fn looked_ahead(now: Timestamp) -> Timestamp {
    AHEAD.after(now)
}

/// Asks the gate.
pub fn ask(repo: &Repo, step: &Step<'_>, basis: &Basis) -> Result<Gated, InputError> {
    let approvals = Approvals::gather(repo, step, basis)?;
    let looked = look(repo, step, basis)?;
    let judge = |used: &BTreeSet<Digest>| {
        let Some(Looked { pasts, edit_alone, outlook, foreseen }) = &looked else {
            return Verdict::default();
        };
        gate::judge(&Question {
            states: step.states,
            failing: step.failing,
            limits: &basis.limits,
            source_changed: basis.since != Some(step.source),
            edit_alone,
            outlook,
            foreseen,
            pasts,
            retried: &basis.retried,
            approvals: &approvals.counting,
            used,
        })
    };
    let mut used = BTreeMap::new();
    let mut verdict = judge(&BTreeSet::new());
    if !verdict.held.is_empty() || !verdict.approved.is_empty() {
        // A look at the whole history, so only where it matters.
        if let Some(rendered) = step.rendered {
            used = ledger::used_approvals(repo, rendered.commit)?;
        }
        if !used.is_empty() {
            verdict = judge(&used.keys().copied().collect());
        }
    }
    let mut rollback = None;
    let by_policy = verdict.held.iter().any(Held::is_held_by_policy);
    let may_go_back = !verdict.held.is_empty() && !by_policy && !holds_risky(&verdict, basis);
    if let Some(rendered) = step.rendered.filter(|_| may_go_back) {
        let since = basis.limits.recall.as_ref().map(|recall| recall.rollback.before(step.now));
        rollback = rollback::in_force_before(repo, rendered, step.states.next, basis.limits.rollback, since)?;
    }
    if rollback.is_some() {
        let removed = gate::losing(step.states).into_keys();
        let removed = removed.map(|key| Removed { key, counts: None }).collect();
        let deadlines = std::mem::take(&mut verdict.deadlines);
        verdict = Verdict { removed, deadlines, ..Verdict::default() };
    }
    for held in &mut verdict.held {
        let expired = approvals.expired.get(&held.digest).or_else(|| approvals.expired.get(&held.all));
        held.expired = expired.copied();
    }
    let mut trailers = trailers_of(step.source, basis, &verdict, rollback);
    if let Some((rendered, recall)) = step.rendered.zip(basis.limits.recall.as_ref()) {
        let since = recall.window.before(step.now);
        let pointers = past_removals::carried(repo, rendered.commit, since)?.into_iter();
        let pointers = pointers.chain(deadlines::carried(rendered, step.now));
        trailers.extend(pointers.map(|(name, value)| (name.to_owned(), value)));
    }
    let mut diagnostics = approvals.diagnostics.clone();
    approvals.explain(&verdict, &used, rollback, &mut diagnostics);
    let recalls = basis.limits.recall.is_some();
    let must_record = recalls && !(verdict.deadlines.is_empty() && verdict.approved.is_empty());
    Ok(Gated { verdict, rollback, trailers, must_record, diagnostics })
}

/// Reports whether a held removal takes more along than an earlier state can say: by now there may be anything in
/// a namespace. Members keep such an object without an approval, so a rollback needs one for it, too.
fn holds_risky(verdict: &Verdict, basis: &Basis) -> bool {
    // Commits from before the gate had a memory let every rollback pass.
    if basis.limits.allow_risky || basis.limits.recall.is_none() {
        return false;
    }
    verdict.held.iter().flat_map(|held| &held.pairs).any(|(_, id)| id.takes_more_along())
}

/// The inputs of the gate beside the two states, where something is removed.
#[derive(Default)]
struct Looked {
    pasts: Vec<PastPublication>,
    edit_alone: EditAlone,
    outlook: Outlook,
    foreseen: Vec<Deadline>,
}

/// Looks; gives `None` where nothing is removed, now or later.
fn look(repo: &Repo, step: &Step<'_>, basis: &Basis) -> Result<Option<Looked>, InputError> {
    let Some((recall, rendered)) = basis.limits.recall.as_ref().zip(step.rendered) else {
        return Ok(Some(Looked::default()));
    };
    let losing = gate::losing(step.states);
    let mut looked = Looked::default();
    let edited = basis.since != Some(step.source);
    let held_until = basis.retried.iter().filter_map(|held| held.until).max();
    if let Some(outlook) = step.outlook.filter(|_| edited || held_until.is_some()) {
        let until = looked_ahead(step.now);
        looked.outlook = outlook(held_until.map_or(until, |held| held.max(until)))?;
        looked.outlook.until = Some(until);
    }
    if losing.is_empty() && looked.outlook.with_change.is_empty() && step.failing.is_empty() {
        return Ok(None);
    }
    let clusters = losing.values().flatten().map(|(cluster, _)| cluster);
    looked.pasts = past_removals::pasts(repo, rendered.commit, recall.window.before(step.now), clusters)?;
    if !losing.is_empty() {
        looked.edit_alone = step.edit_alone.map(|decide| decide()).unwrap_or_default();
        looked.foreseen = deadlines::passed(repo, rendered, step.now)?;
    }
    Ok(Some(looked))
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
    lines.extend(basis.retried.iter().map(|record| (RETRIED, record.to_string())));
    let used: BTreeSet<Digest> = verdict.approved.iter().flat_map(|one| one.digests.clone()).collect();
    lines.extend(used.into_iter().map(|digest| (USED_APPROVAL, digest.to_string())));
    let prunable = verdict.prunable();
    let prunable = prunable.iter().map(|(path, clusters)| ledger::allow_prune_line(path, clusters));
    lines.extend(prunable.map(|line| (ALLOW_PRUNE, line)));
    if basis.limits.recall.is_some() {
        lines.extend(verdict.removed.iter().map(|removed| (REMOVED, removed.to_string())));
    }
    let deadlines = verdict.deadlines.iter().map(|deadline| (DEADLINE, deadline.to_string()));
    lines.extend(deadlines);
    lines.extend(verdict.records().iter().map(|record| (HELD, record.to_string())));
    lines.extend(rollback.map(|commit| (ROLLBACK, commit.to_string())));
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
