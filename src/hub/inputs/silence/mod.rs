//! Members that are overdue → silences, which decisions read as facts.
//!
//! - A member falls silent after three of its intervals without a report, in which the daemon could fetch.
//! - Its silence ends after three intervals of reports in time. Until then nothing more is moved away for it, and
//!   nothing moves back.
//! - While many members are late, the network or the Git server is more likely at fault than all of them. Then no
//!   further member falls silent, and earlier silences are frozen: what has not moved stays. When most members are
//!   back, every other one has a full grace again.
//!
//! The daemon remembers its members' reports: when each arrived, and since when it could fetch them. Times are
//! those of the daemon's own clock, so that a member whose clock is wrong is judged like any other. A daemon that
//! starts knows nothing: every member gets a full grace before it counts as silent.

use std::collections::BTreeMap;
use std::time::Duration;

use berth_base::diag::{Diagnostic, Severity};
use berth_base::model::cluster::Silence;
use berth_base::model::{ClusterStatus, Fleet, Map, Shared, Timestamp};
use berth_engine::gate::Limits;
use berth_engine::gate::limits::Limit;

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
                    let outside = FleetVerdict { since, then, stays };
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
struct FleetVerdict {
    /// Since when the daemon hears members without a break.
    since: Timestamp,
    then: Option<Timestamp>,
    /// Too many members are late.
    stays: bool,
}

fn next_silence(
    before: Option<Silence>,
    heard: &MemberReports,
    outside: FleetVerdict,
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

/// The pause between two fetches from which on members get a full grace: they may have been cut off as well.
const SHORTEST_BREAK_SECONDS: i64 = 120;

/// The daemon's memory of its members' reports.
#[derive(Clone, Debug)]
pub struct Hearing {
    /// The start of the time in which the daemon could fetch without a break. `None` before the first fetch.
    pub(super) since: Option<Timestamp>,
    /// The last fetch.
    last: Timestamp,
    /// The usual pause between two fetches, in seconds.
    poll: i64,
    /// The share of members that may be late before nothing more is moved away from silent ones.
    pub(super) limit: Limit,
    pub(super) members: BTreeMap<String, MemberReports>,
}

/// The reports of one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberReports {
    /// The date of its last report by its own clock, to tell a new one.
    reported: Timestamp,
    /// The seconds in which it promised the next report.
    interval: i64,
    pub(super) arrived: Timestamp,
    /// Since when its reports arrive in time.
    pub(super) steady: Timestamp,
    /// When the daemon first saw that the facts freeze its silence.
    pub(super) frozen: Option<Timestamp>,
}

impl Default for Hearing {
    fn default() -> Hearing {
        Hearing {
            since: None,
            last: Timestamp::MIN,
            poll: 60,
            limit: Limits::SILENT,
            members: BTreeMap::new(),
        }
    }
}

impl Hearing {
    /// Sets the interval at which the daemon fetches.
    pub(crate) fn every(&mut self, poll: Duration) {
        self.poll = i64::try_from(poll.as_secs()).unwrap_or(i64::MAX).max(1);
    }

    /// Notes that the daemon could fetch. The time in which it could not counts for nobody.
    pub(crate) fn fetched(&mut self, clock: Timestamp) {
        let pause = clock.as_second().saturating_sub(self.last.as_second());
        let longest = self.poll.saturating_mul(3).max(SHORTEST_BREAK_SECONDS);
        if self.since.is_none() || !(0..longest).contains(&pause) {
            self.begin(clock);
            self.members.values_mut().for_each(|heard| heard.steady = clock);
        } else if pause > self.poll.saturating_add(self.poll / 2) {
            let lost = pause - self.poll;
            self.since = self.since.map(|since| after(since, lost));
            for heard in self.members.values_mut() {
                heard.arrived = after(heard.arrived, lost);
                heard.frozen = heard.frozen.map(|frozen| after(frozen, lost));
            }
        }
        self.last = clock;
    }

    /// Gives every member a full grace from now on.
    pub(crate) fn begin(&mut self, clock: Timestamp) {
        self.since = Some(clock);
    }

    /// Returns the moment from which a member is late, if it promised another report.
    pub(crate) fn late_from(&self, cluster: &str) -> Option<Timestamp> {
        self.members.get(cluster).map(MemberReports::late_from)
    }

    /// Notes the reports that arrived, and returns true if there may be something to judge.
    pub(crate) fn note(
        &mut self,
        statuses: &Map<String, Shared<ClusterStatus>>,
        clock: Timestamp,
        limit: Limit,
    ) -> bool {
        self.limit = limit;
        self.members
            .retain(|cluster, _| statuses.get(cluster).is_some_and(|status| promise(status).is_some()));
        for (cluster, status) in statuses {
            let Some((reported, interval)) = promise(status) else { continue };
            let first = MemberReports {
                reported,
                interval,
                arrived: reported.min(clock),
                steady: clock,
                frozen: None,
            };
            let heard = self.members.entry(cluster.clone()).or_insert(first);
            if heard.reported != reported {
                if heard.is_late(clock) {
                    heard.steady = clock;
                }
                (heard.reported, heard.interval, heard.arrived) = (reported, interval, clock);
            }
            heard.frozen = status.frozen.map(|_| heard.frozen.unwrap_or(clock));
        }
        self.since.is_some()
    }
}

/// The date of a report, and the seconds in which it promises the next one.
fn promise(status: &ClusterStatus) -> Option<(Timestamp, i64)> {
    let (reported, due) = (status.reported?, status.next_due?);
    let interval = due.as_second().saturating_sub(reported.as_second());
    (interval > 0).then_some((reported, interval))
}

impl MemberReports {
    /// Reports whether the next report is overdue by half an interval. Members that fall silent together are all
    /// late before the first of them is silent, wherever in their intervals they were.
    pub(super) fn is_late(&self, clock: Timestamp) -> bool {
        clock >= self.late_from()
    }

    fn late_from(&self) -> Timestamp {
        after(self.arrived, self.interval.saturating_add(self.interval / 2))
    }

    /// The moment three intervals after another: of silence, or of steady reports.
    fn grace_after(&self, moment: Timestamp) -> Timestamp {
        after(moment, self.interval.saturating_mul(3))
    }
}

fn after(moment: Timestamp, seconds: i64) -> Timestamp {
    let second = moment.as_second().saturating_add(seconds);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
