//! Who puts which object where: a claim a template, grouped by the path it would stand at.
//!
//! Paths that differ only by case are one group: on many file systems they are one file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Decision, Fleet, Key, Template, Workload, path};

/// One template of one workload, for the clusters that workload goes to.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    pub(super) workload: &'a Workload,
    pub(super) template: &'a Template,
    pub(super) path: Arc<str>,
    /// Ascending.
    pub(super) clusters: Arc<[String]>,
    /// The replicas that were decided, by cluster.
    pub(super) replicas: Arc<BTreeMap<String, i64>>,
}

/// All claims, those of one path together, each group in the order of the workloads' keys.
/// `frozen` stand in for the fleet's own that are.
pub(super) fn group<'a>(
    fleet: &'a Fleet,
    frozen: &'a [Workload],
    decisions: &BTreeMap<Key, Decision>,
) -> Vec<Vec<Claim<'a>>> {
    let mut groups: BTreeMap<String, Vec<Claim<'a>>> = BTreeMap::new();
    let mut frozen = frozen.iter().peekable();
    for workload in fleet.workloads.values() {
        let stand_in = frozen.next_if(|stand_in| stand_in.key == workload.key);
        let workload = stand_in.unwrap_or(workload);
        let Some(decision) = decisions.get(&workload.key) else { continue };
        let clusters: Arc<[String]> = decision.picks.iter().map(|pick| pick.cluster.clone()).collect();
        let replicas = decision.picks.iter().filter_map(|pick| Some((pick.cluster.clone(), pick.replicas?)));
        let replicas: Arc<BTreeMap<String, i64>> = Arc::new(replicas.collect());
        for template in &workload.templates {
            let path = path::of_object(&template.object.id);
            let group = groups.entry(path.to_lowercase()).or_default();
            let (clusters, replicas) = (clusters.clone(), replicas.clone());
            group.push(Claim { workload, template, path: path.into(), clusters, replicas });
        }
    }
    groups.into_values().collect()
}
