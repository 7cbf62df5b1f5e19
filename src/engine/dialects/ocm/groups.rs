//! Open Cluster Management's API groups.

pub(super) const CLUSTER: &str = "cluster.open-cluster-management.io";
pub(super) const WORK: &str = "work.open-cluster-management.io";
pub(super) const ADD_ON: &str = "addon.open-cluster-management.io";
