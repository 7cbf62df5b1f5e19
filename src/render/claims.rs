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
}

/// All claims, those of one path together, each group in the order of the workloads' keys.
pub(super) fn group<'a>(fleet: &'a Fleet, decisions: &BTreeMap<Key, Decision>) -> Vec<Vec<Claim<'a>>> {
    let mut groups: BTreeMap<String, Vec<Claim<'a>>> = BTreeMap::new();
    for (key, workload) in &fleet.workloads {
        let Some(decision) = decisions.get(key) else { continue };
        let clusters: Arc<[String]> = decision.picks.iter().map(|pick| pick.cluster.clone()).collect();
        for template in &workload.templates {
            let path = path::of_object(&template.object.id);
            let group = groups.entry(path.to_lowercase()).or_default();
            group.push(Claim { workload, template, path: path.into(), clusters: clusters.clone() });
        }
    }
    groups.into_values().collect()
}
