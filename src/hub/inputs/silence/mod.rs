//! Members that are overdue → silences, which decisions read as facts.
//!
//! - A member falls silent after three of its intervals without a report, in which the daemon could fetch.
//! - Its silence ends after three intervals of reports in time. Until then nothing more is moved away for it, and
//!   nothing moves back.
//! - While many members are late, the network or the Git server is more likely at fault than all of them. Then no
//!   further member falls silent, and earlier silences are frozen: what has not moved stays. When most members are
//!   back, every other one has a full grace again.

use super::hearing::{Heard, Hearing};
use berth_base::diag::{Diagnostic, Severity};
use berth_base::model::cluster::Silence;
use berth_base::model::{ClusterStatus, Fleet, Map, Shared, Timestamp};

/// Seconds after which a silence is no part of an outage that begins now.
const SETTLED_SECONDS: i64 = 86_400;

/// The verdict on all members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silences {
    /// The last moment at which a silence began or ended.
    pub(super) last: Option<Timestamp>,
    /// The next moment at which one may begin or end.
    pub next: Option<Timestamp>,
    /// The late members and all members, where too many are late.
    pub outage: Option<(usize, usize)>,
}

impl Silences {
    /// Judges the members of the fleet, and writes their silences into the statuses, which hold those of the current
    /// state. `then` is the moment of the current state.
    pub(super) fn judge(
        hearing: &Hearing,
        fleet: &Fleet,
        statuses: &mut Map<String, Shared<ClusterStatus>>,
        then: Option<Timestamp>,
        clock: Timestamp,
    ) -> Silences {
        let mut silences =
            Silences { outage: outage(hearing, fleet, statuses, clock), ..Silences::default() };
        let Some(since) = hearing.since else { return silences };
        let since = if silences.outage.is_some() { clock } else { since };
        let mut moments = Moments { clock, last: None, next: None };
        statuses.update(|cluster, status| {
            if !fleet.clusters.contains_key(cluster) {
                return None;
            }
            let (silent, frozen) = match hearing.members.get(cluster) {
                Some(heard) => {
                    let stays = silences.outage.is_some();
                    let outside = Outside { since, then, stays };
                    let now = next_silence(status.silence(), heard, outside, &mut moments);
                    (now.map(|silence| silence.since), now.and_then(|silence| silence.frozen))
                }
                // A report that promises nothing ends a silence; one that cannot be read changes nothing.
                None if status.reported.is_some() => (None, None),
                None => return None,
            };
            let is_other = (status.silent, status.frozen) != (silent, frozen);
            is_other.then(|| ClusterStatus { silent, frozen, ..(**status).clone() }.into())
        });
        (silences.last, silences.next) = (moments.last, moments.next);
        silences
    }

    /// The warning for people, where too many members are late.
    pub(super) fn warning(&self) -> Option<Diagnostic> {
        let (late, all) = self.outage?;
        let message = format!(
            "{late} of {all} members are late: nothing is moved away from silent clusters until most report again"
        );
        let hint = "check the members' way to the Git server; `--max-silent-clusters` sets the share";
        Some(Diagnostic { severity: Severity::Warning, ..Diagnostic::note(message).hint(hint) })
    }
}

/// The late members and all members, where too many are late. Silences that are older than a day do not count.
fn outage(
    hearing: &Hearing,
    fleet: &Fleet,
    statuses: &Map<String, Shared<ClusterStatus>>,
    clock: Timestamp,
) -> Option<(usize, usize)> {
    let (mut late, mut all) = (0, 0);
    for (cluster, heard) in &hearing.members {
        let silence = statuses.get(cluster).and_then(|status| status.silence());
        let is_settled = heard.is_late(clock) && silence.is_some_and(|silence| is_settled(silence, clock));
        if fleet.clusters.contains_key(cluster) && !is_settled {
            all += 1;
            late += usize::from(heard.is_late(clock));
        }
    }
    hearing.limit.is_exceeded(late, all).then_some((late, all))
}

/// Reports whether a silence was old already when it was frozen, or is now.
fn is_settled(silence: Silence, clock: Timestamp) -> bool {
    let now = silence.frozen.unwrap_or(clock).min(clock);
    now.as_second().saturating_sub(silence.since.as_second()) > SETTLED_SECONDS
}

/// The moments at which silences begin and end, before and after the clock.
struct Moments {
    clock: Timestamp,
    last: Option<Timestamp>,
    next: Option<Timestamp>,
}

impl Moments {
    /// Reports whether a moment has come.
    fn has_come(&mut self, moment: Timestamp) -> bool {
        if moment <= self.clock {
            self.last = self.last.max(Some(moment));
            return true;
        }
        self.next = self.next.into_iter().chain([moment]).min();
        false
    }
}

/// The part of a verdict that is not about the member.
#[derive(Clone, Copy)]
struct Outside {
    /// Since when the daemon hears members without a break.
    since: Timestamp,
    then: Option<Timestamp>,
    /// Too many members are late.
    stays: bool,
}

fn next_silence(
    before: Option<Silence>,
    heard: &Heard,
    outside: Outside,
    moments: &mut Moments,
) -> Option<Silence> {
    let overdue = heard.grace_after(heard.arrived.max(outside.since));
    let Some(silence) = before else {
        return moments.has_come(overdue).then_some(Silence { since: overdue, frozen: None });
    };
    let clock = moments.clock;
    if !heard.is_late(clock) && moments.has_come(heard.grace_after(heard.steady)) {
        return None;
    }
    match silence.frozen {
        Some(_) => {
            let thaws = heard.frozen.map_or(overdue, |seen| overdue.max(heard.grace_after(seen)));
            let frozen = silence.frozen.filter(|_| outside.stays || !moments.has_come(thaws));
            Some(Silence { frozen, ..silence })
        }
        None if overdue <= clock || is_settled(silence, clock) && heard.is_late(clock) && !outside.stays => {
            Some(silence)
        }
        // Nothing that came after the current state counts: the daemon may have been away since.
        None => Some(Silence { frozen: Some(outside.then.unwrap_or(clock).max(silence.since)), ..silence }),
    }
}

#[cfg(test)]
mod tests;
