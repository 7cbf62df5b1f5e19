//! The gate's flags.

use berth_base::model::LabelKeys;
use berth_engine::gate::limits::Limit;
use berth_engine::gate::{Limits, Percent, Span};

/// The flags of the gate's limits.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Removals")]
pub(crate) struct GateArgs {
    /// Hold a workload that would lose more than this share of its clusters, or all; the first two are free
    #[arg(long, value_name = "SHARE", default_value = "50%", env = "BERTH_MAX_REMOVED_CLUSTERS")]
    max_removed_clusters: Percent,
    /// Hold removals of more than this share of one cluster's objects; the first ten are free
    #[arg(long, value_name = "SHARE", default_value = "50%", env = "BERTH_MAX_REMOVED_OBJECTS")]
    max_removed_objects: Percent,
    /// Hold all removals caused by statuses or time that reach more than this share of the clusters; the first two are free
    #[arg(long, value_name = "SHARE", default_value = "30%", env = "BERTH_MAX_EVICTED_CLUSTERS")]
    max_evicted_clusters: Percent,
    /// Treat namespaces, CRDs and volume claims like any other object
    #[arg(long, env = "BERTH_ALLOW_RISKY_REMOVALS")]
    allow_risky_removals: bool,
    /// Add up all removals within this time, over all causes, commits and passes
    #[arg(long, value_name = "TIME", default_value = "24h", env = "BERTH_REMOVAL_WINDOW")]
    removal_window: Span,
    /// Allow a state equal to one of this many earlier states, or to any within --rollback-window
    #[arg(long, value_name = "COUNT", default_value_t = 10, env = "BERTH_ROLLBACK_DEPTH")]
    rollback_depth: usize,
    /// Allow a state equal to one that was replaced within this time
    #[arg(long, value_name = "TIME", default_value = "24h", env = "BERTH_ROLLBACK_WINDOW")]
    rollback_window: Span,
    /// Let members report these labels where no file sets the key: KEY or PREFIX*, separated by commas
    #[arg(long, value_name = "KEYS", default_value = "none", env = "BERTH_MEMBER_LABELS")]
    member_labels: LabelKeys,
    /// Accept approvals only as files under approvals/, which access rules protect, and not in commit messages
    #[arg(long, env = "BERTH_NO_APPROVAL_TRAILERS")]
    no_approval_trailers: bool,
}

impl GateArgs {
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            clusters: Limit { share: self.max_removed_clusters, ..usual.clusters },
            objects: Limit { share: self.max_removed_objects, ..usual.objects },
            evictions: Limit { share: self.max_evicted_clusters, ..usual.evictions },
            allow_risky: self.allow_risky_removals,
            rollback: self.rollback_depth,
            window: self.removal_window,
            rollback_window: self.rollback_window,
            trailers: !self.no_approval_trailers,
            labels: self.member_labels.clone(),
            failover: true,
        }
    }
}
