//! A workload's step → its releases: who was told what, what is proven, and why it does not go on.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::release::{Halt, Health, Releases, Told};
use berth_base::model::rollout::Strategy;
use berth_base::model::{Timestamp, Workload};

use super::advance::Fate;
use super::answer::Answer;
use super::changes::seconds_after;
use super::next_release::forget_old;
use super::sight::Sight;
use super::turn::Has;

/// A step, to be recorded.
pub(super) struct Rolled<'r> {
    pub(super) workload: &'r Workload,
    pub(super) sights: &'r BTreeMap<String, Sight<'r>>,
    pub(super) fates: &'r BTreeMap<String, Fate>,
    pub(super) answer: &'r Answer,
    pub(super) target: u64,
    pub(super) joins: &'r BTreeSet<String>,
}

impl Rolled<'_> {
    /// Writes down who was told what. Returns the moment at which the release may be proven by time alone.
    pub(super) fn record(&self, releases: &mut Releases, now: Timestamp) -> Option<Timestamp> {
        for (cluster, fate) in self.fates {
            let release = match fate {
                Fate::Desired | Fate::Gets(_) if self.joins.contains(cluster) => releases.good,
                Fate::Desired | Fate::Gets(_) => Some(self.target),
                Fate::Stays | Fate::Leaves | Fate::Waits => continue,
            };
            let is_new = self.sights.get(cluster).is_none_or(|sight| sight.has() != Has::New);
            if let Some(release) = release.filter(|_| is_new) {
                releases.told.insert(cluster.clone(), Told { release, at: now });
            }
        }
        releases.told.retain(|cluster, _| self.fates.contains_key(cluster));
        let settles = self.settles(releases);
        if settles.is_some_and(|at| at <= now) {
            releases.good = Some(releases.current.number);
            releases.told.clear();
        }
        releases.halted = self.halt(releases, now);
        let told: BTreeSet<u64> = releases.told.values().map(|told| told.release).collect();
        forget_old(releases, |number| told.contains(&number));
        settles
    }

    /// Returns the moment from which the current release counts as proven, if nothing changes until then.
    fn settles(&self, releases: &Releases) -> Option<Timestamp> {
        let is_settled = releases.is_proven() && releases.told.is_empty();
        if is_settled || self.target != releases.current.number {
            return None;
        }
        let mut picked = self.sights.values().filter(|sight| sight.picked).peekable();
        picked.peek()?;
        let quiet = quiet_seconds(&self.workload.strategy);
        let mut latest = releases.current.begun;
        for sight in picked {
            let succeeded = sight.has() == Has::New && sight.health() == Health::Succeeded;
            let since = sight.since().filter(|_| succeeded)?;
            latest = latest.max(seconds_after(since, quiet).unwrap_or(Timestamp::MAX));
        }
        Some(latest)
    }

    /// Returns the reason why the rollout does not go on although clusters wait.
    fn halt(&self, releases: &Releases, now: Timestamp) -> Option<Halt> {
        let waits = !self.joins.is_empty()
            || self.fates.values().any(|fate| matches!(fate, Fate::Stays | Fate::Waits));
        let failed = self.sights.iter().filter(|(cluster, sight)| {
            sight.has() == Has::New
                && (sight.health() == Health::Failed || self.answer.timed_out.contains(*cluster))
        });
        let failed: Vec<(&String, &Sight<'_>)> = failed.collect();
        let (first, sight) = failed.first()?;
        if !(releases.taken_back || waits || self.answer.halted.is_some()) {
            return None;
        }
        let said = sight.report.as_ref().map(|report| report.message.as_str()).unwrap_or_default();
        let said = if said.is_empty() { "it took too long" } else { said };
        let others = match failed.len() {
            1 => String::new(),
            more => format!(" (and {} more)", more - 1),
        };
        let reason = format!("{first} failed: {said}{others}");
        let since = releases.halted.as_ref().map_or(now, |halt| halt.since);
        Some(Halt { since, reason })
    }
}

/// How long a success must last before the release counts as proven.
fn quiet_seconds(strategy: &Strategy) -> i64 {
    match strategy {
        Strategy::Progressive(rollouts) => {
            rollouts.iter().map(|rollout| rollout.soak_seconds).max().unwrap_or_default()
        }
        _ => 0,
    }
}
