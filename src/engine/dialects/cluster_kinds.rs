//! What people may mark clusters with, kind by kind: which effects a taint may have, and which of them
//! keeps new work away. Every kind has labels.

/// A kind that describes clusters.
#[derive(Debug)]
pub struct ClusterKind {
    pub group: &'static str,
    pub kind: &'static str,
    /// The effects its taints may have; none where it has no taints.
    pub effects: &'static [&'static str],
    /// The effect that keeps new work away and leaves what is there.
    pub cordon: Option<&'static str>,
    /// Whether a taint says since when it is there.
    pub dated: bool,
}

/// All of them.
pub const CLUSTER_KINDS: &[&ClusterKind] = &[
    &super::kubefed::make::CLUSTER_KIND,
    &super::kubefleet::make::CLUSTER_KIND,
    &super::ocm::make::CLUSTER_KIND,
];
