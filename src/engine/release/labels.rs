//! The labels of clusters, with those that members report. Stages, their order and pins select by them.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::decide::overlay;
use berth_base::model::selector::Labels;
use berth_base::model::{ClusterStatus, Fleet, Map, Shared};

/// The labels of the files, with the allowed labels of the members' reports.
#[derive(Clone, Debug)]
pub struct ClusterLabels<'a> {
    fleet: &'a Fleet,
    statuses: Map<String, Shared<ClusterStatus>>,
    /// The labels of clusters with a status, computed at first use.
    overlaid: OnceCell<BTreeMap<String, Labels>>,
}

impl<'a> ClusterLabels<'a> {
    pub fn of(fleet: &'a Fleet, statuses: &Map<String, Shared<ClusterStatus>>) -> ClusterLabels<'a> {
        ClusterLabels { fleet, statuses: statuses.clone(), overlaid: OnceCell::new() }
    }

    pub fn get(&self, cluster: &str) -> Option<&Labels> {
        let overlaid = self.overlaid.get_or_init(|| {
            let changed =
                overlay(self.fleet, &self.statuses).into_iter().filter_map(|cluster| match cluster {
                    Cow::Owned(cluster) => Some((cluster.name.to_string(), cluster.labels)),
                    Cow::Borrowed(_) => None,
                });
            changed.collect()
        });
        overlaid.get(cluster).or_else(|| Some(&self.fleet.clusters.get(cluster)?.labels))
    }
}

impl PartialEq for ClusterLabels<'_> {
    fn eq(&self, other: &ClusterLabels<'_>) -> bool {
        std::ptr::eq(self.fleet, other.fleet) && self.statuses == other.statuses
    }
}
