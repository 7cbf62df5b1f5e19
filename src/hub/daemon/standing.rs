//! The condition of the fleet after a pass, from the published state, the step and the members' statuses.

use std::collections::BTreeMap;

use super::cache::Cache;
use crate::inputs::PassInputs;
use crate::publish::CurrentState;
use berth_base::model::{ClusterStatus, Key, Shared, Timestamp};
use berth_engine::pipeline::Built;
use berth_engine::release::policy::Orders;
use berth_engine::release::workload_rollout::RolloutState;

/// The fleet after a pass.
#[derive(Debug, Default)]
pub struct FleetStanding {
    /// The number of the last publication.
    pub sequence: Option<u64>,
    /// The workloads with a rollout in steps.
    pub rollouts: BTreeMap<Key, RolloutState>,
    /// The number of clusters waiting for their turn, counted per workload.
    pub waiting: usize,
    /// The number of clusters, and of those whose members report everything applied.
    pub clusters: usize,
    pub in_sync: usize,
    /// The members that promised another status.
    pub members: Vec<MemberStanding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberStanding {
    /// The moment from which the member is late, unless it reports before.
    pub late_from: Timestamp,
    pub is_silent: bool,
}

impl FleetStanding {
    pub(super) fn of(
        rendered: Option<&CurrentState>,
        inputs: &PassInputs,
        built: &Built,
        cache: &Cache,
        clock: Timestamp,
    ) -> FleetStanding {
        let releases = rendered.into_iter().flat_map(|rendered| &rendered.state.releases);
        let state = |key: &Key, releases| {
            let standing = built.rollouts.get(key).and_then(|trace| trace.standing.as_ref());
            let orders = || Orders::of(&built.fleet, key);
            RolloutState::of(releases, orders, standing, clock).0
        };
        let member = |(cluster, status): (&String, &Shared<ClusterStatus>)| {
            let late_from = cache.late_from(cluster)?;
            Some(MemberStanding { late_from, is_silent: status.silence().is_some() })
        };
        let of_fleet = |(cluster, _): &(&String, _)| built.fleet.clusters.contains_key(*cluster);
        FleetStanding {
            sequence: rendered.map(|rendered| rendered.trailers.seq),
            rollouts: releases.map(|(key, releases)| (key.clone(), state(key, releases))).collect(),
            clusters: cache.summary.totals().values().sum(),
            in_sync: cache.summary.totals().get("in sync").copied().unwrap_or_default(),
            waiting: built.rollouts.values().map(|trace| trace.waits.len()).sum(),
            members: inputs.reports.statuses.iter().filter(of_fleet).filter_map(member).collect(),
        }
    }
}
