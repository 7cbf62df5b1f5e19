//! Failed and obstructed objects, and the moments of their next tries; the next sync while nothing changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ClusterSession;
use crate::sync::desired::Desired;
use crate::sync::plan::Live;
use crate::sync::strategy::Strategy;
use berth_base::backoff::Backoff;
use berth_base::model::ObjectId;

/// A failed object.
#[derive(Debug)]
pub struct Retry {
    pub hash: Arc<str>,
    pub failures: u32,
    pub at: Instant,
    pub message: String,
    /// The live object in its way.
    pub found: Option<Live>,
}

/// Pauses after an object failed.
const PAUSES: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));

/// The longest pause before berth looks whether an obstacle is still in the way.
const LONGEST_OBSTACLE_PAUSE: Duration = Duration::from_secs(60);

/// The interval at which overrides kept in the cluster are read.
const OVERRIDES_INTERVAL: Duration = Duration::from_secs(10);

/// The interval at which objects are read that no watch covers: foreign ones, and those only compared.
const LOOKS_INTERVAL: Duration = Duration::from_secs(60);

impl ClusterSession {
    /// Notes a failure, so that the object is not tried again at once.
    pub fn put_off(
        &mut self,
        id: &ObjectId,
        hash: &Arc<str>,
        message: &str,
        pause: Option<Duration>,
        found: Option<Live>,
    ) {
        let doubled = self.next_pause(id, hash);
        let at = Instant::now() + pause.unwrap_or(doubled);
        self.put_off_to(id, hash, at, message.to_owned(), found);
    }

    /// Notes that an obstacle is in the way of an object.
    pub fn put_off_as_found(&mut self, id: &ObjectId, hash: &Arc<str>, found: Live) {
        let at = Instant::now() + self.next_pause(id, hash).min(LONGEST_OBSTACLE_PAUSE);
        self.put_off_to(id, hash, at, String::new(), Some(found));
    }

    fn put_off_to(
        &mut self,
        id: &ObjectId,
        hash: &Arc<str>,
        at: Instant,
        message: String,
        found: Option<Live>,
    ) {
        let failures = self.failures_of(id, hash) + 1;
        self.watching.shared.cache().mute(id, at);
        self.retries.insert(id.clone(), Retry { hash: hash.clone(), failures, at, message, found });
    }

    fn failures_of(&self, id: &ObjectId, hash: &Arc<str>) -> u32 {
        self.retries.get(id).filter(|retry| retry.hash == *hash).map_or(0, |retry| retry.failures.min(30))
    }

    fn next_pause(&self, id: &ObjectId, hash: &Arc<str>) -> Duration {
        PAUSES.pause(self.failures_of(id, hash) + 1)
    }

    /// Returns the pending retry of an object that must not be tried now.
    pub fn put_off_until(&self, id: &ObjectId, hash: &Arc<str>) -> Option<&Retry> {
        self.retries.get(id).filter(|retry| retry.hash == *hash && Instant::now() < retry.at)
    }

    /// Notes which objects are not as wanted. Returns those that had all the time they may take.
    pub fn given_up(&mut self, ids: &BTreeSet<ObjectId>) -> BTreeSet<ObjectId> {
        let (wanted, now) = (self.watching.shared.cache().wanted(), Instant::now());
        let hash = |id: &ObjectId| wanted.get(id).map(|form| form.hash.clone()).unwrap_or_default();
        self.refused.retain(|id, (known, _)| ids.contains(id) && *known == hash(id));
        for id in ids {
            self.refused.entry(id.clone()).or_insert_with(|| (hash(id), now));
        }
        let over = |since: &Instant| now.duration_since(*since) >= self.deadline;
        let given_up = self.refused.iter().filter(|(_, (_, since))| over(since));
        given_up.map(|(id, _)| id.clone()).collect()
    }

    /// Returns the next moment at which a sync is due although nothing changes. Earlier ones were served by
    /// the last sync.
    pub fn due(&self) -> Option<Instant> {
        let late = self.unhealthy.values().map(|(_, since)| *since + self.deadline);
        // No watch covers overrides kept in the cluster, and objects that are only looked at.
        let looks = |object: &Desired| {
            let strategy = Strategy::of(object);
            strategy.compares() || strategy.only_looks()
        };
        let pause = if !self.overrides_from.is_empty() {
            Some(OVERRIDES_INTERVAL)
        } else {
            let wanted = self.watching.shared.cache().wanted();
            wanted.values().any(|it| looks(&it.desired)).then_some(LOOKS_INTERVAL)
        };
        let look = self.surveyed.zip(pause).map(|(at, pause)| at + pause);
        let all = self
            .retries
            .values()
            .map(|retry| retry.at)
            .chain(late)
            .chain(self.refused.values().map(|(_, since)| *since + self.deadline))
            .chain(self.fights.ends())
            .chain(look)
            .chain(self.ignored.values().copied());
        all.filter(|at| self.surveyed.is_none_or(|surveyed| *at > surveyed)).min()
    }
}
