//! The time limits of objects: to become healthy, and to stop blocking a removal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::watching::cached_object::WantedObjects;
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
