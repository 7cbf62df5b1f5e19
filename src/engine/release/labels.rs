//! The clusters' labels as decisions see them, by which stages, their order and pins choose.

use std::collections::BTreeMap;

use berth_base::model::Cluster;
use berth_base::model::selector::Labels;

/// The labels by cluster: those of files, and those that members report and that are allowed to count.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterLabels<'a>(BTreeMap<&'a str, &'a Labels>);

impl<'a> ClusterLabels<'a> {
    /// Returns the labels of clusters as they are, overlaid or not.
    pub fn of(clusters: impl IntoIterator<Item = &'a Cluster>) -> ClusterLabels<'a> {
        ClusterLabels(clusters.into_iter().map(|one| (one.name.as_str(), &one.labels)).collect())
    }

    pub fn get(&self, cluster: &str) -> Option<&'a Labels> {
        self.0.get(cluster).copied()
    }
}
