//! The check that a pass may build on the rendered branch's tip.

use super::cache::Cache;
use super::error::PassError;
use super::pass::Attempt;
use crate::publish::trusted_commits::{IN_FORCE, remembered};
use crate::publish::{self, CurrentState};
use crate::verify::trust::{self, Question, Trust, Untrusted};
use berth_base::model::Timestamp;
use berth_git::CommitId;

/// The seconds for which a refusal is cached. A date ahead of the clock may pass, and objects may arrive.
const REFUSED_SECONDS: i64 = 600;

/// A refused tip, with the inputs of the decision.
#[derive(Debug)]
pub(super) struct Refusal {
    tip: CommitId,
    source: CommitId,
    /// The commits trusted on this machine.
    trusted: Vec<CommitId>,
    clock: Timestamp,
    why: Untrusted,
}

impl Refusal {
    fn holds(&self, tip: CommitId, source: CommitId, trusted: &[CommitId], clock: Timestamp) -> bool {
        let seconds = clock.as_second().saturating_sub(self.clock.as_second());
        (self.tip, self.source, &*self.trusted) == (tip, source, trusted)
            && (0..REFUSED_SECONDS).contains(&seconds)
    }
}

/// Checks that this machine made or proved the tip, or an allowed key signed it. A refused tip is not proven again
/// for a while, unless the source moves or another commit becomes trusted here.
pub(super) fn refuse_untrusted(
    Attempt { repo, settings, clock }: Attempt<'_>,
    current: &CurrentState,
    source: CommitId,
    cache: &mut Cache,
) -> Result<Trust, PassError> {
    let tip = current.commit;
    let trusted = remembered(repo, &settings.refs.rendered);
    if let Some(refusal) = cache.refused.as_ref().filter(|one| one.holds(tip, source, &trusted, clock)) {
        return Err(refusal.why.clone().into());
    }
    let question = Question {
        tip,
        refs: &settings.refs,
        anchors: &settings.anchors,
        clock,
        source: (!settings.allow_rewind).then_some(source),
        limits: &settings.limits,
        allow_rewritten: settings.allow_rewritten,
    };
    let answer = trust::judge(repo, &question)?;
    cache.refused = answer.as_ref().err().cloned().map(|why| Refusal { tip, source, trusted, clock, why });
    let trust = answer?;
    if !settings.allow_rewritten {
        // Somebody who may push the branch may also push `processed`, and restore old copies of both.
        let last = remembered(repo, IN_FORCE).first().copied();
        publish::refuse_rewritten(repo, &settings.refs, current, last)?;
    }
    Ok(trust)
}
