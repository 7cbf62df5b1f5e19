//! The marks that people may give to clusters, by kind: the effects of its taints, and the one that keeps
//! new work away. Every kind has labels.

/// A kind that describes clusters.
#[derive(Debug)]
pub struct ClusterKind {
    pub group: &'static str,
    pub kind: &'static str,
    /// The effects its taints may have; none where it has no taints.
    pub effects: &'static [&'static str],
    /// The effect that keeps new work away and leaves what is there.
    pub cordon: Option<&'static str>,
    /// Taints of this kind record the moment since which they exist.
    pub dated: bool,
}

/// The cluster kinds of all dialects.
pub const CLUSTER_KINDS: &[&ClusterKind] = &[
    &super::kubefed::make::CLUSTER_KIND,
    &super::kubefleet::make::CLUSTER_KIND,
    &super::ocm::make::CLUSTER_KIND,
];
