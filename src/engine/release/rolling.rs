//! Budgets of unavailable and surplus copies, as KubeFleet's RollingUpdate has them.
//!
//! The rules are those of KubeFleet's rollout controller, with clusters in the order of their names. A copy
//! may be removed or updated while more than the smallest number are available, removals first. A failed copy
//! is updated at once, because nothing can be lost. A newcomer gets its copy while fewer than the largest
//! number may become available.

use std::sync::Arc;

use super::strategies::{MOST_NAMES, Step, Turn, Version, seconds_after};
use berth_base::model::Timestamp;
use berth_base::model::release::Health;
use berth_base::model::rollout::Rolling;
use berth_base::text::{counted, some_of};

/// Returns the clusters that may get the release now. `turns` ascend by name.
pub fn step<'a>(rolling: &Rolling, turns: &[Turn<'a>], now: Timestamp) -> Step<'a> {
    let returning: Vec<&str> =
        turns.iter().filter(|turn| turn.picked && turn.removing).map(|turn| turn.cluster).collect();
    if !returning.is_empty() {
        let names = some_of(returning, MOST_NAMES);
        return Step::all_wait(turns, &format!("waiting for the removal of earlier copies in: {names}"));
    }
    let counts = BudgetCounts::of(rolling, turns, now);
    let mut step = Step::default();
    let leaving = turns.iter().filter(|turn| turn.is_left_over());
    let has_old = |turn: &&Turn<'_>| turn.picked && turn.has == Version::Old;
    let (failed, updates): (Vec<_>, Vec<_>) =
        turns.iter().filter(has_old).partition(|turn| turn.health == Health::Failed);
    step.give.extend(failed.iter().map(|turn| turn.cluster));
    let losable: Vec<&Turn<'_>> = leaving.chain(updates).collect();
    let (now_lost, rest) = losable.split_at(counts.losable().min(losable.len()));
    for turn in now_lost {
        if turn.picked {
            step.give.insert(turn.cluster)
        } else {
            step.remove.insert(turn.cluster)
        };
    }
    if !rest.is_empty() {
        let reason: Arc<str> = counts.why_not_lost(now_lost).into();
        step.waits.extend(rest.iter().map(|turn| (turn.cluster, reason.clone())));
        step.next = counts.next();
    }
    let joins: Vec<&Turn<'_>> =
        turns.iter().filter(|turn| turn.picked && turn.has == Version::Nothing).collect();
    let (now_joining, rest) = joins.split_at(counts.room().min(joins.len()));
    step.give.extend(now_joining.iter().map(|turn| turn.cluster));
    if !rest.is_empty() {
        let reason: Arc<str> = counts.why_no_room(now_joining).into();
        step.waits.extend(rest.iter().map(|turn| (turn.cluster, reason.clone())));
    }
    step
}

/// The availability of a cluster's copy.
enum Availability {
    Available,
    /// Counts as available from this moment on.
    From(Timestamp),
    Missing,
}

impl Availability {
    fn of(turn: &Turn<'_>, period_seconds: i64, now: Timestamp) -> Availability {
        if turn.has == Version::Nothing || turn.health != Health::Succeeded {
            return Availability::Missing;
        }
        if turn.measured {
            return Availability::Available;
        }
        match turn.since.and_then(|since| settled(since, period_seconds)) {
            Some(from) if from <= now => Availability::Available,
            Some(from) => Availability::From(from),
            None => Availability::Missing,
        }
    }
}

/// Returns the first full second after a period: a copy applied exactly that long ago does not count yet.
fn settled(since: Timestamp, period_seconds: i64) -> Option<Timestamp> {
    let end = seconds_after(since, period_seconds)?;
    Timestamp::from_second(end.as_second().checked_add(1)?).ok()
}

/// The counts behind the budgets.
struct BudgetCounts {
    /// The clusters that should have a copy.
    wanted: i64,
    /// The fewest copies that must stay available. Below zero, even copies that are not available may be
    /// removed.
    fewest: i64,
    /// The most copies that may exist.
    most: i64,
    /// The copies that are available and not being removed.
    available: i64,
    /// The copies that exist and have not failed.
    existing: i64,
    /// The picked clusters without an available copy, each with a word on its state.
    missing: Vec<String>,
    /// The moments at which copies count as available, ascending.
    settling: Vec<Timestamp>,
}

impl BudgetCounts {
    fn of(rolling: &Rolling, turns: &[Turn<'_>], now: Timestamp) -> BudgetCounts {
        let wanted = rolling.wanted.unwrap_or_else(|| turns.iter().filter(|turn| turn.picked).count());
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX / 4);
        let mut counts = BudgetCounts {
            wanted: count(wanted),
            fewest: count(wanted) - count(rolling.max_unavailable.rounded_up(wanted)),
            most: count(wanted) + count(rolling.max_surge.rounded_up(wanted)),
            available: 0,
            existing: 0,
            missing: Vec::new(),
            settling: Vec::new(),
        };
        for turn in turns {
            if turn.has != Version::Nothing && turn.health != Health::Failed {
                counts.existing += 1;
            }
            // A copy that is being removed may disappear at any time.
            match Availability::of(turn, rolling.period_seconds, now) {
                _ if turn.removing => {}
                Availability::Available => counts.available += 1,
                Availability::From(moment) => {
                    counts.settling.push(moment);
                    counts.miss(turn, &format!("counts from {moment}"));
                }
                Availability::Missing if turn.has == Version::Nothing => counts.miss(turn, "has no copy yet"),
                Availability::Missing => counts.miss(turn, turn.health.word()),
            }
        }
        counts.settling.sort_unstable();
        counts
    }

    fn miss(&mut self, turn: &Turn<'_>, word: &str) {
        if turn.picked {
            self.missing.push(format!("{} ({word})", turn.cluster));
        }
    }

    /// Returns the number of copies that may become unavailable now.
    fn losable(&self) -> usize {
        usize::try_from(self.available - self.fewest).unwrap_or(0)
    }

    /// Returns the number of clusters that may join now.
    fn room(&self) -> usize {
        usize::try_from(self.most - self.existing).unwrap_or(0)
    }

    /// Returns the moment at which one more copy may become unavailable.
    fn next(&self) -> Option<Timestamp> {
        self.settling.get(usize::try_from(self.fewest - self.available).unwrap_or(0)).copied()
    }

    fn why_not_lost(&self, first: &[&Turn<'_>]) -> String {
        if !first.is_empty() {
            let names = some_of(first.iter().map(|turn| turn.cluster), MOST_NAMES);
            return format!("{} may be unavailable now: {names}", counted(first.len(), "more cluster"));
        }
        let (fewest, wanted, available) = (self.fewest.max(0), self.wanted, self.available);
        let without = some_of(&self.missing, MOST_NAMES);
        let without = if without.is_empty() { without } else { format!(", without {without}") };
        format!("{fewest} of {wanted} copies must stay available, and {available} are{without}")
    }

    fn why_no_room(&self, first: &[&Turn<'_>]) -> String {
        let names = some_of(first.iter().map(|turn| turn.cluster), MOST_NAMES);
        let first = if names.is_empty() { names } else { format!("; first {names}") };
        format!("{} of at most {} copies exist already{first}", self.existing, self.most)
    }
}
