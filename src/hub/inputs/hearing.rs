//! The daemon's memory of its members' reports: when each arrived, and since when the daemon could fetch them.
//!
//! Times are those of the daemon's own clock, so that a member whose clock is wrong is judged like any other. A
//! daemon that starts knows nothing: every member gets a full grace before it counts as silent.

use std::collections::BTreeMap;
use std::time::Duration;

use berth_base::model::{ClusterStatus, Map, Shared, Timestamp};
use berth_engine::gate::Limits;
use berth_engine::gate::limits::Limit;

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
    pub(super) members: BTreeMap<String, Heard>,
}

/// The reports of one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
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
        self.members.get(cluster).map(Heard::late_from)
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
            let first =
                Heard { reported, interval, arrived: reported.min(clock), steady: clock, frozen: None };
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

impl Heard {
    /// Reports whether the next report is overdue by half an interval. Members that fall silent together are all
    /// late before the first of them is silent, wherever in their intervals they were.
    pub(super) fn is_late(&self, clock: Timestamp) -> bool {
        clock >= self.late_from()
    }

    fn late_from(&self) -> Timestamp {
        after(self.arrived, self.interval.saturating_add(self.interval / 2))
    }

    /// The moment three intervals after another: of silence, or of steady reports.
    pub(super) fn grace_after(&self, moment: Timestamp) -> Timestamp {
        after(moment, self.interval.saturating_mul(3))
    }
}

fn after(moment: Timestamp, seconds: i64) -> Timestamp {
    let second = moment.as_second().saturating_add(seconds);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}
