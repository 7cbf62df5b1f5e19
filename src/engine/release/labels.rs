//! The clusters' labels as decisions see them, by which stages, their order and pins choose.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::decide::overlay;
use berth_base::model::selector::Labels;
use berth_base::model::{ClusterStatus, Fleet, Map, Shared};

/// The labels of files, and those that members report and that are allowed to count.
#[derive(Clone, Debug)]
pub struct ClusterLabels<'a> {
    fleet: &'a Fleet,
    statuses: Map<String, Shared<ClusterStatus>>,
    /// Of clusters with a status, made when somebody asks for the first one.
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
