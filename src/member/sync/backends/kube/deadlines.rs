//! The times of single objects: the limits in which they become healthy and stop blocking a removal, and the
//! next tries of failed and obstructed ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::watching::cached_object::WantedObjects;
use crate::sync::plan::Live;
use berth_base::backoff::Backoff;
use berth_base::model::ObjectId;

/// The start of each object's time, with the hash of the form that it counts for.
type Since = BTreeMap<ObjectId, (Arc<str>, Instant)>;

/// The times of all objects.
#[derive(Debug)]
pub struct Deadlines {
    /// The time that an object may take.
    limit: Duration,
    unhealthy: Since,
    /// Refused objects that block a removal.
    refused: Since,
}

impl Deadlines {
    pub fn new(limit: Duration) -> Deadlines {
        Deadlines { limit, unhealthy: Since::new(), refused: Since::new() }
    }

    /// Returns the time that an object may take.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Records that an object is healthy.
    pub fn healthy(&mut self, id: &ObjectId) {
        self.unhealthy.remove(id);
    }

    /// Records that an object is unhealthy. Returns true if its time is up.
    pub(crate) fn is_overdue(&mut self, id: &ObjectId, hash: &Arc<str>) -> bool {
        let now = Instant::now();
        let entry = self.unhealthy.entry(id.clone()).or_insert_with(|| (hash.clone(), now));
        if entry.0 != *hash {
            *entry = (hash.clone(), now);
        }
        now.duration_since(entry.1) >= self.limit
    }

    /// Records which objects differ from their wanted form. Returns those whose time is up.
    pub(crate) fn given_up(
        &mut self,
        ids: &BTreeSet<ObjectId>,
        wanted: &WantedObjects,
    ) -> BTreeSet<ObjectId> {
        let now = Instant::now();
        let hash = |id: &ObjectId| wanted.get(id).map(|form| form.hash.clone()).unwrap_or_default();
        self.refused.retain(|id, (known, _)| ids.contains(id) && *known == hash(id));
        for id in ids {
            self.refused.entry(id.clone()).or_insert_with(|| (hash(id), now));
        }
        let over = |since: &Instant| now.duration_since(*since) >= self.limit;
        let given_up = self.refused.iter().filter(|(_, (_, since))| over(since));
        given_up.map(|(id, _)| id.clone()).collect()
    }

    /// Forgets unhealthy objects that are no longer wanted.
    pub fn retain(&mut self, is_wanted: impl Fn(&ObjectId) -> bool) {
        self.unhealthy.retain(|id, _| is_wanted(id));
    }

    /// Returns the ends of all times.
    pub fn ends(&self) -> impl Iterator<Item = Instant> + '_ {
        self.unhealthy.values().chain(self.refused.values()).map(|(_, since)| *since + self.limit)
    }
}

/// Pauses after an object failed.
const PAUSES: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));

/// The longest pause before berth checks whether an obstacle is still there.
const LONGEST_OBSTACLE_PAUSE: Duration = Duration::from_secs(60);

/// The failure of an object in one form.
#[derive(Debug)]
pub(crate) struct Setback {
    pub hash: Arc<str>,
    pub message: String,
    /// The live object that is the obstacle.
    pub found: Option<Live>,
    /// The pause that the server asks for.
    pause: Option<Duration>,
    longest_pause: Duration,
}

impl Setback {
    /// A failed request, with the live object that the failure showed.
    pub fn failed(hash: Arc<str>, message: &str, pause: Option<Duration>, found: Option<Live>) -> Setback {
        Setback { hash, message: message.to_owned(), found, pause, longest_pause: Duration::MAX }
    }

    /// An obstacle in the way of an object.
    pub(crate) fn obstacle(hash: Arc<str>, found: Live) -> Setback {
        let (found, longest_pause) = (Some(found), LONGEST_OBSTACLE_PAUSE);
        Setback { hash, message: String::new(), found, pause: None, longest_pause }
    }
}

/// The pending retry of one object.
#[derive(Debug)]
struct Retry {
    setback: Setback,
    failures: u32,
    at: Instant,
}

/// All pending retries.
#[derive(Debug, Default)]
pub(crate) struct Retries(BTreeMap<ObjectId, Retry>);

impl Retries {
    /// Records a failure and schedules the next try. Returns its moment.
    pub(crate) fn put_off(&mut self, id: &ObjectId, setback: Setback) -> Instant {
        let before = self.0.get(id).filter(|retry| retry.setback.hash == setback.hash);
        let failures = before.map_or(0, |retry| retry.failures.min(30)) + 1;
        let pause = setback.pause.unwrap_or_else(|| PAUSES.pause(failures)).min(setback.longest_pause);
        let at = Instant::now() + pause;
        self.0.insert(id.clone(), Retry { setback, failures, at });
        at
    }

    /// Returns the failure of an object whose pause is not over.
    pub fn pending(&self, id: &ObjectId, hash: &Arc<str>) -> Option<&Setback> {
        let retry = self.0.get(id).filter(|retry| retry.setback.hash == *hash && Instant::now() < retry.at);
        retry.map(|retry| &retry.setback)
    }

    pub fn remove(&mut self, id: &ObjectId) {
        self.0.remove(id);
    }

    pub fn retain(&mut self, is_wanted: impl Fn(&ObjectId) -> bool) {
        self.0.retain(|id, _| is_wanted(id));
    }

    pub fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.0.keys()
    }

    /// Returns the moments of all next tries.
    pub fn moments(&self) -> impl Iterator<Item = Instant> + '_ {
        self.0.values().map(|retry| retry.at)
    }
}
