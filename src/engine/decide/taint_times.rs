//! The beginning of undated taints: the moment at which berth first saw them.
//!
//! That moment only matters if a toleration expires. The facts keep it while the taint exists, so that later
//! passes and proofs count from the same moment.

use std::borrow::Cow;

use super::filter::may_expire;
use super::policy_reads::{Read, Reads};
use berth_base::model::status::TaintName;
use berth_base::model::{Cluster, ClusterStatus, Map, Shared, Timestamp};

/// Reports whether any taint has no moment.
pub(super) fn any_undated(clusters: &[Cow<'_, Cluster>]) -> bool {
    clusters.iter().flat_map(|cluster| &cluster.taints).any(|taint| taint.since.is_none())
}

/// Gives each undated taint its moment; `statuses` contain the known moments. Reports whether a taint is new.
pub(super) fn date(
    clusters: &mut [Cow<'_, Cluster>],
    statuses: &Map<String, Shared<ClusterStatus>>,
    reads: &Reads<'_>,
    now: Timestamp,
) -> bool {
    let mut any_new = false;
    for cluster in clusters {
        if undated(cluster, reads).is_empty() {
            continue;
        }
        let seen = statuses.get(&*cluster.name);
        let when = |name: &TaintName| seen.and_then(|status| status.taints.get(name)).copied();
        for (index, name) in undated(cluster, reads) {
            let before = when(&name);
            any_new |= before.is_none();
            cluster.to_mut().taints[index].since = Some(before.unwrap_or(now).min(now));
        }
    }
    any_new
}

/// Adds the moments from [`date`] to the facts; `fleet` are the clusters as files describe them.
pub(super) fn note<'c>(
    facts: &mut Map<String, Shared<ClusterStatus>>,
    fleet: impl Iterator<Item = &'c Cluster>,
    dated: &[Cow<'_, Cluster>],
    reads: &Reads<'_>,
) {
    for (cluster, dated) in fleet.zip(dated) {
        for (index, name) in undated(cluster, reads) {
            if let Some(since) = dated.taints[index].since {
                let fact = facts.or_insert_with(&*cluster.name, || {
                    ClusterStatus { cluster: cluster.name.to_string(), ..ClusterStatus::default() }.into()
                });
                fact.taints.insert(name, since);
            }
        }
    }
}

/// Returns the undated taints that some toleration allows for a limited time, with their indexes.
fn undated(cluster: &Cluster, reads: &Reads<'_>) -> Vec<(usize, TaintName)> {
    let matters = |taint: &berth_base::model::Taint| {
        taint.since.is_none()
            && reads.iter().any(|read| matches!(read, Read::Tolerated(all) if may_expire(all, taint)))
    };
    let taints = cluster.taints.iter().enumerate().filter(|(_, taint)| matters(taint));
    taints.map(|(index, taint)| (index, TaintName::of(taint))).collect()
}
