//! The moment that a pass decides for, and decisions at later moments.
//!
//! The author of a commit chooses its date, so it decides nothing: where the outcome depends on the moment,
//! the moment is the one at which the daemon saw the commit first. Where it does not, the commit's date
//! stays, so that equal inputs give equal commits on every machine.
//!
//! Hypothetical decisions over the inputs of a pass: at later moments, and those of an edit alone.

use super::{InputError, PassInputs};
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::{ClusterStatus, ContentError, Contents, Decision, Key, Map, Shared, Timestamp};
use berth_engine::gate::losses::LaterDecisions;
use berth_engine::hypothetical;
use berth_engine::pipeline::{self, Built, Inputs};
use berth_git::{CommitId, Repo};

/// Seconds that the date of a commit may be ahead of this machine's clock.
pub(crate) const MOST_AHEAD_SECONDS: i64 = 600;

/// Moments a single step catches up with, where several passed since the last one.
const MOST_DEADLINES: usize = 64;

/// Refuses a commit from the future.
pub(super) fn check_date(repo: &Repo, commit: CommitId, clock: Timestamp) -> Result<(), InputError> {
    let seconds = repo.commit(commit)?.seconds;
    if seconds <= clock.as_second().saturating_add(MOST_AHEAD_SECONDS) {
        return Ok(());
    }
    let date =
        Timestamp::from_second(seconds).map_or_else(|_| format!("{seconds} s"), |date| date.to_string());
    Err(InputError::FutureCommit { commit, date })
}

/// Warns of a current state from the future: until its moment, waits and freezes stand still.
pub(super) fn ahead_of(clock: Timestamp, then: Timestamp) -> Option<Diagnostic> {
    let latest = clock.as_second().saturating_add(MOST_AHEAD_SECONDS);
    (then.as_second() > latest).then(|| {
        let message = format!(
            "the last publication was made for {then}, but this machine's clock says {clock:.0}: until {then:.0}, waits \
             and freezes do not advance"
        );
        Diagnostic::warning(Pos::file(""), message).hint("set the clock of the machine that is wrong")
    })
}

impl PassInputs {
    /// Reports whether a date that was read is from after a moment, and counts once that has come, though no ref moves.
    pub(crate) fn is_ahead_of(&self, clock: Timestamp) -> bool {
        let mut reported = self.reports.statuses.values().filter_map(|status| status.reported);
        self.now > clock || reported.any(|date| date > clock)
    }

    /// Builds a commit that was `seen` before, for the latest moment by `clock` at which something changed by itself.
    pub(crate) fn build_again(
        &mut self,
        seen: Option<Timestamp>,
        clock: Timestamp,
        contents: &mut dyn Contents,
    ) -> Result<Built, ContentError> {
        self.now = seen.map_or(self.now, |seen| seen.min(clock).max(self.now));
        let mut built = self.build_with_cache(contents)?;
        for _ in 0..MOST_DEADLINES {
            match built.next_change.filter(|at| *at <= clock && *at > self.now) {
                Some(at) => self.now = at,
                None => break,
            }
            self.remember_first_seen(&built);
            built = self.build_with_cache(contents)?;
        }
        Ok(built)
    }

    /// Builds a commit that nobody has processed before: for its own date, or where another moment might give another
    /// state, for the moment `seen`.
    pub(crate) fn build_first(
        &mut self,
        seen: Timestamp,
        contents: &mut dyn Contents,
    ) -> Result<Built, ContentError> {
        let built = self.build_with_cache(contents)?;
        if !built.reads_moment || seen <= self.now {
            return Ok(built);
        }
        self.now = seen;
        self.build_with_cache(contents)
    }

    /// Records the clusters and taints first seen at an earlier moment of this pass, so that a later moment does not
    /// see them first again.
    fn remember_first_seen(&mut self, built: &Built) {
        self.reports.statuses = pipeline::with_first_seen(&built.state, &self.reports.statuses).into_owned();
    }
}

impl PassInputs {
    /// The decisions at the moments from now `until` another one at which time alone changes some.
    pub fn ahead(
        &self,
        facts: &Map<String, Shared<ClusterStatus>>,
        first_seen: &Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
        until: Timestamp,
    ) -> Vec<LaterDecisions> {
        self.inputs(|inputs| {
            hypothetical::ahead(&self.source.loaded, Inputs { now, ..inputs }, facts, first_seen, until)
        })
    }

    /// The decisions that the edit alone would give, with the outside of the current state.
    pub fn edit_alone(
        &self,
        facts: &Map<String, Shared<ClusterStatus>>,
        then: Option<Timestamp>,
    ) -> Vec<Map<Key, Decision>> {
        self.inputs(|inputs| hypothetical::edit_alone(&self.source.loaded, inputs, facts, then))
    }
}
