//! The reasons why placements get or lose clusters.

use std::collections::BTreeMap;

use berth_base::model::{ClusterStatus, Fleet, Key, Timestamp};
use berth_engine::plan::Plan;
use berth_engine::state::State;
use berth_engine::{decide, pipeline};
use berth_hub::next_commit::NextCommit;

/// The reasons by placement and cluster.
#[derive(Debug, Default)]
pub(crate) struct Reasons(BTreeMap<Key, BTreeMap<String, String>>);

impl Reasons {
    /// Looks the reasons up in the trace of each decision that changed.
    pub fn of(plan: &Plan, step: &NextCommit) -> Reasons {
        let inputs = &step.inputs;
        Reasons::traced(plan, &step.built.fleet, &inputs.current, &inputs.statuses, inputs.now)
    }

    /// Traces the decisions that follow a state.
    pub fn traced(
        plan: &Plan,
        fleet: &Fleet,
        before: &State,
        statuses: &BTreeMap<String, ClusterStatus>,
        now: Timestamp,
    ) -> Reasons {
        let statuses = pipeline::with_first_seen(before, statuses);
        let mut all = BTreeMap::new();
        for (key, change) in &plan.placements {
            let trace = decide::explain(fleet, &before.decisions, &statuses, now, key);
            let traced: BTreeMap<&str, &str> = trace
                .iter()
                .flat_map(|trace| &trace.clusters)
                .map(|one| (one.cluster.as_str(), one.reason.as_str()))
                .collect();
            let why = |cluster: &str| match (&trace, traced.get(cluster)) {
                (None, _) => "the source no longer has the placement",
                (Some(_), None) => "the cluster left the inventory",
                (Some(_), Some(reason)) => reason,
            };
            let reasons = change.lost.iter().chain(&change.gained);
            let reasons = reasons.map(|cluster| (cluster.clone(), why(cluster).to_owned()));
            all.insert(key.clone(), reasons.collect());
        }
        Reasons(all)
    }

    /// The reason for one placement and cluster.
    pub fn get(&self, key: &Key, cluster: &str) -> Option<&str> {
        Some(self.0.get(key)?.get(cluster)?)
    }

    /// The reasons of one placement, by cluster.
    pub fn of_placement(&self, key: &Key) -> Option<&BTreeMap<String, String>> {
        self.0.get(key)
    }
}
