//! The cache between two passes: the decisions of placements whose inputs are all equal are taken from it.
//!
//! Losing it costs time only.

use super::status_overlay::{self, Spoken};
use berth_base::diag::Diagnostic;
use berth_base::model::{Cluster, ClusterStatus, Decision, Fleet, Key, Map, Placement, Shared, Timestamp};

/// The cached decisions of one pass, with the inputs that all of them share.
#[derive(Clone, Debug, Default)]
pub struct DecisionCache {
    clusters: Map<String, Shared<Cluster>>,
    /// The parts of statuses that a decision could read: of those in files, and of the members' own.
    spoken: [Spoken; 2],
    now: Timestamp,
    entries: Map<Key, Shared<CacheEntry>>,
}

/// A decision that depends on nothing but its placement and the world, until the moment given.
#[derive(Clone, Debug)]
pub(super) struct CacheEntry {
    pub(super) placement: Shared<Placement>,
    pub(super) decision: Decision,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) flips: Option<Timestamp>,
    /// The placements that it follows.
    pub(super) followed: Vec<Key>,
}

impl DecisionCache {
    /// Makes an empty cache for these clusters and statuses.
    pub(super) fn of(
        fleet: &Fleet,
        statuses: &Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
    ) -> DecisionCache {
        DecisionCache {
            clusters: fleet.clusters.clone(),
            spoken: [&fleet.statuses, statuses].map(status_overlay::spoken),
            now,
            entries: Map::new(),
        }
    }

    /// Reports whether clusters and statuses are the same now, and time went on.
    pub(super) fn has_equal_inputs(&self, now: &DecisionCache) -> bool {
        self.now <= now.now && self.clusters == now.clusters && self.spoken == now.spoken
    }

    pub(super) fn insert(&mut self, entry: Shared<CacheEntry>) {
        self.entries.insert(entry.placement.key.clone(), entry);
    }

    /// Returns the entry of a placement while it is valid.
    pub(super) fn get(&self, placement: &Shared<Placement>, now: Timestamp) -> Option<&Shared<CacheEntry>> {
        let entry = self.entries.get(&placement.key)?;
        // Limits may have fractions, so that a verdict may change within the second before it flips.
        let is_settled = |flips: Timestamp| now == self.now || now.as_second() + 1 < flips.as_second();
        let holds = entry.placement.is_same(placement) && entry.flips.is_none_or(is_settled);
        holds.then_some(entry)
    }
}

impl CacheEntry {
    /// Reports whether a current decision equals the cached one.
    pub(super) fn is(&self, previous: &Decision) -> bool {
        let decision = &self.decision;
        decision.digest.is_some()
            && previous.digest == decision.digest
            && previous.picks.is_same(&decision.picks)
            && previous.refused == decision.refused
            && previous.condition == decision.condition
    }
}
