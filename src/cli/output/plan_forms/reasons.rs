//! The reasons why placements gain or lose clusters.

use std::collections::BTreeMap;

use berth_base::model::{ClusterStatus, Fleet, Key, Map, Shared, Timestamp};
use berth_engine::decide::Trace;
use berth_engine::plan::{ClusterChange, Plan};
use berth_engine::state::State;
use berth_engine::{decide, pipeline};
use berth_hub::next_commit::NextCommit;

/// The number of lines of traces in memory at a time.
const MOST_LINES: usize = 200_000;

/// The reasons by placement and cluster.
#[derive(Debug, Default)]
pub(crate) struct Reasons(BTreeMap<Key, BTreeMap<String, String>>);

impl Reasons {
    /// Finds the reasons in the trace of each changed decision.
    pub fn of(plan: &Plan, step: &NextCommit) -> Reasons {
        let inputs = &step.inputs;
        Reasons::traced(plan, &step.built.fleet, &inputs.current, &inputs.reports.statuses, inputs.now)
    }

    /// Traces the decisions that follow a state.
    pub fn traced(
        plan: &Plan,
        fleet: &Fleet,
        before: &State,
        statuses: &Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
    ) -> Reasons {
        let statuses = pipeline::with_first_seen(before, statuses);
        let mut all = BTreeMap::new();
        // A trace has a line for every cluster, so only some traces are in memory at a time.
        let at_once = (MOST_LINES / fleet.clusters.len().max(1)).max(1);
        let changes: Vec<(&Key, &ClusterChange)> = plan.placements.iter().collect();
        for changes in changes.chunks(at_once) {
            let keys = changes.iter().map(|(key, _)| *key);
            let traces = decide::explain_all(fleet, &before.decisions, &statuses, now, keys);
            let reasons =
                changes.iter().map(|(key, change)| ((*key).clone(), reasons(change, traces.get(*key))));
            all.extend(reasons);
        }
        Reasons(all)
    }

    /// Returns the reason for one placement and cluster.
    pub fn get(&self, key: &Key, cluster: &str) -> Option<&str> {
        Some(self.0.get(key)?.get(cluster)?)
    }

    /// Returns the reasons of one placement, by cluster.
    pub fn of_placement(&self, key: &Key) -> Option<&BTreeMap<String, String>> {
        self.0.get(key)
    }
}

/// Returns the reasons for the clusters that a placement gained and lost.
fn reasons(change: &ClusterChange, trace: Option<&Trace>) -> BTreeMap<String, String> {
    let lines = trace.into_iter().flat_map(|trace| &trace.clusters);
    let traced: BTreeMap<&str, &str> = lines.map(|one| (one.cluster.as_str(), one.reason.as_str())).collect();
    let why = |cluster: &str| match (trace, traced.get(cluster)) {
        (None, _) => "the source no longer has the placement",
        (Some(_), None) => "the cluster left the inventory",
        (Some(_), Some(reason)) => reason,
    };
    let clusters = change.lost.iter().chain(&change.gained);
    clusters.map(|cluster| (cluster.to_string(), why(cluster).to_owned())).collect()
}
