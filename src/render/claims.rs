//! Who puts which object where: a claim a template, grouped by the path it would stand at.
//!
//! Paths that differ only by case are one group: on many file systems they are one file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Fleet, Key, Pick, Shared, Template, Workload, path};

/// One template of one workload, for the clusters that workload goes to.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    pub(super) workload: &'a Workload,
    pub(super) template: &'a Template,
    pub(super) path: Arc<str>,
    picks: Shared<Vec<Pick>>,
}

impl<'a> Claim<'a> {
    /// Ascending.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &String> {
        self.picks.iter().map(|pick| &pick.cluster)
    }

    pub(super) fn goes_to(&self, cluster: &str) -> bool {
        self.pick(cluster).is_some()
    }

    /// The replicas that were decided for a cluster.
    pub(super) fn replicas(&self, cluster: &str) -> Option<i64> {
        self.pick(cluster)?.replicas
    }

    fn pick(&self, cluster: &str) -> Option<&Pick> {
        let index = self.picks.binary_search_by(|pick| pick.cluster.as_str().cmp(cluster)).ok()?;
        self.picks.get(index)
    }

    /// Whether both give the same copies to the same clusters, if the clusters themselves are the same.
    /// What is frozen depends on more than this.
    pub(super) fn is_as(&self, other: &Claim<'_>) -> bool {
        !self.workload.frozen
            && !other.workload.frozen
            && self.path == other.path
            && self.workload.key == other.workload.key
            && self.picks.len() == other.picks.len()
            && (self.picks.is_same(&other.picks) || self.numbers().eq(other.numbers()))
            && (std::ptr::eq(self.workload, other.workload) && std::ptr::eq(self.template, other.template)
                || self.makes_as(other))
    }

    fn makes_as(&self, other: &Claim<'_>) -> bool {
        self.workload.replicas == other.workload.replicas
            && self.workload.overrides == other.workload.overrides
            && self.template == other.template
    }

    /// Where the copies go, and with how many replicas.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&String, Option<i64>)> {
        self.picks.iter().map(|pick| (&pick.cluster, pick.replicas))
    }
}

/// What each workload's decision picked.
pub(super) type Picks = BTreeMap<Key, Shared<Vec<Pick>>>;

/// All claims by path in lower case, each group in the order of the workloads' keys.
/// `frozen` stand in for the fleet's own that are.
pub(super) fn group<'a>(
    fleet: &'a Fleet,
    frozen: &'a [Workload],
    picks: &Picks,
) -> BTreeMap<String, Vec<Claim<'a>>> {
    let mut groups: BTreeMap<String, Vec<Claim<'a>>> = BTreeMap::new();
    let mut frozen = frozen.iter().peekable();
    for workload in fleet.workloads.values() {
        let stand_in = frozen.next_if(|stand_in| stand_in.key == workload.key);
        let workload = stand_in.unwrap_or(workload);
        let Some(picks) = picks.get(&workload.key) else { continue };
        for template in &workload.templates {
            let path = path::of_object(&template.object.id);
            let group = groups.entry(path.to_lowercase()).or_default();
            group.push(Claim { workload, template, path: path.into(), picks: picks.clone() });
        }
    }
    groups
}
