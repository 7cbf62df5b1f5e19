//! The cache between two passes: what was decided, and what it was decided from. The next pass looks at the placements
//! that a change concerns.
//!
//! Losing it costs time only.

use std::collections::BTreeSet;

use super::status_overlay::speaks_alike;
use berth_base::diag::Diagnostic;
use berth_base::model::fleet::Doubt;
use berth_base::model::{
    Cluster, ClusterStatus, Decision, Fleet, Key, Map, Placement, Shared, Source, Timestamp,
};

/// The inputs of all decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct DecisionInputs {
    clusters: Map<String, Shared<Cluster>>,
    /// Those in files, and the members' own.
    statuses: [Map<String, Shared<ClusterStatus>>; 2],
    placements: Map<Key, Shared<Placement>>,
    previous: Map<Key, Decision>,
    now: Timestamp,
}

/// The results for each placement.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) decisions: Map<Key, Decision>,
    /// The diagnostics of placements that have any.
    pub(super) said: Map<Key, Vec<Diagnostic>>,
    /// The moments at which a verdict changes by itself.
    pub(super) flips: Map<Key, Timestamp>,
    /// Placements that the next pass decides again in any case.
    pub(super) unsettled: BTreeSet<Key>,
}

/// The inputs and results of one pass.
#[derive(Clone, Debug)]
pub struct DecisionCache {
    inputs: DecisionInputs,
    results: Results,
}

impl DecisionInputs {
    pub(super) fn of(
        fleet: &Fleet,
        previous: &Map<Key, Decision>,
        statuses: &Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
    ) -> DecisionInputs {
        DecisionInputs {
            clusters: fleet.clusters.clone(),
            statuses: [fleet.statuses.clone(), statuses.clone()],
            placements: fleet.placements.clone(),
            previous: previous.clone(),
            now,
        }
    }

    /// Reports whether clusters and what is heard of them are the same at a later moment.
    fn is_same_world(&self, later: &DecisionInputs) -> bool {
        let [files, members] = &self.statuses;
        self.now <= later.now
            && self.clusters == later.clusters
            && speaks_alike(files, &later.statuses[0])
            && speaks_alike(members, &later.statuses[1])
    }
}

impl Results {
    /// Forgets the result for a placement.
    pub(super) fn forget(&mut self, key: &Key) {
        let Results { decisions, said, flips, unsettled } = self;
        decisions.remove(key);
        said.remove(key);
        flips.remove(key);
        unsettled.remove(key);
    }
}

impl DecisionCache {
    pub(super) fn new(inputs: DecisionInputs, results: Results) -> DecisionCache {
        DecisionCache { inputs, results }
    }

    /// Returns the results that still hold, and the keys of the placements to decide again. `None` where all are.
    pub(super) fn go_on(&self, fleet: &Fleet, now: &DecisionInputs) -> Option<(Results, BTreeSet<Key>)> {
        let DecisionCache { inputs, results } = self;
        if fleet.doubt != Doubt::default() || !inputs.is_same_world(now) {
            return None;
        }
        // Limits may have fractions, so that a verdict may change within the second before it flips.
        let is_due = |flips: Timestamp| now.now != inputs.now && now.now.as_second() + 1 >= flips.as_second();
        let mut keys: BTreeSet<Key> = results.unsettled.clone();
        keys.extend(results.flips.iter().filter(|(_, flips)| is_due(**flips)).map(|(key, _)| key.clone()));
        keys.extend(inputs.previous.changes(&now.previous).map(|one| one.key.clone()));
        let placements = inputs.placements.changes_by(&now.placements, Shared::is_same);
        keys.extend(placements.map(|one| one.key.clone()));
        keys.extend(following(fleet, &keys));
        let mut results = results.clone();
        keys.iter().for_each(|key| results.forget(key));
        Some((results, keys))
    }
}

/// Returns the placements that follow one of these.
fn following(fleet: &Fleet, keys: &BTreeSet<Key>) -> Vec<Key> {
    if keys.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<(&str, &str, &str)> =
        keys.iter().map(|key| (&*key.kind, &*key.namespace, &*key.name)).collect();
    let follows = |placement: &Placement| match &placement.source {
        Source::Follows(follow) => {
            let mut followed = follow.placements.iter();
            followed
                .any(|one| names.contains(&(one.kind.as_str(), one.namespace.as_str(), one.name.as_str())))
        }
        Source::Own(_) => false,
    };
    fleet.placements.values().filter(|one| follows(one)).map(|one| one.key.clone()).collect()
}
