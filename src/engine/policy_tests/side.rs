//! The fleet with its decisions, before or after a change.

use std::borrow::Cow;

use berth_base::model::selector::Labels;
use berth_base::model::{Action, Cluster, Decision, Fleet, Key, Map, Pick, Verb, Workload};

/// A fleet and its decisions.
#[derive(Debug)]
pub struct Side<'a> {
    /// The clusters with their members' reported values, by name ascending.
    pub(super) clusters: Vec<Cow<'a, Cluster>>,
    pub(super) fleet: &'a Fleet,
    pub(super) decisions: &'a Map<Key, Decision>,
}

impl<'a> Side<'a> {
    pub fn new(
        clusters: Vec<Cow<'a, Cluster>>,
        fleet: &'a Fleet,
        decisions: &'a Map<Key, Decision>,
    ) -> Side<'a> {
        Side { clusters, fleet, decisions }
    }

    pub(super) fn cluster(&self, name: &str) -> Option<&Cluster> {
        let found = self.clusters.binary_search_by(|cluster| (*cluster.name).cmp(name)).ok()?;
        Some(&self.clusters[found])
    }

    pub(super) fn workload(&self, key: &Key) -> Option<&'a Workload> {
        self.fleet.workloads.get(key).map(|workload| &**workload)
    }

    /// Returns the labels of a workload's document.
    pub(super) fn labels(&self, key: &Key) -> Option<&'a Labels> {
        self.fleet.labels.get(key)
    }

    /// Returns the clusters that pick a workload, rolled out or not, each with its replicas.
    pub(super) fn places(&self, key: &Key) -> Vec<(&'a str, i64)> {
        let picked = self.decisions.get(key).into_iter().flat_map(Decision::picked);
        let own = self.workload(key).map(OwnReplicas::of);
        let replicas = |pick: &Pick| {
            let own =
                || own.as_ref().map_or(0, |own| own.in_cluster(&pick.cluster, self.cluster(&pick.cluster)));
            pick.replicas.unwrap_or_else(own)
        };
        picked.map(|pick| (&*pick.cluster, replicas(pick))).collect()
    }
}

/// The replicas in a workload's own objects, for workloads without divided replicas.
struct OwnReplicas<'a> {
    workload: &'a Workload,
    /// The number of each object with replicas, with its index.
    asked: Vec<(usize, i64)>,
}

impl<'a> OwnReplicas<'a> {
    fn of(workload: &'a Workload) -> OwnReplicas<'a> {
        let number = |(index, template): (usize, &berth_base::model::Template)| {
            Some((index, template.object.content.pointer("/spec/replicas")?.as_i64()?))
        };
        OwnReplicas { workload, asked: workload.templates.iter().enumerate().filter_map(number).collect() }
    }

    fn in_cluster(&self, name: &str, cluster: Option<&Cluster>) -> i64 {
        let all = self.asked.iter().map(|(index, own)| {
            let id = &self.workload.templates[*index].object.id;
            let overrides = self.workload.overrides.iter().rev();
            let mut mine = overrides.filter(|one| one.concerns(id) && one.clusters.include(name, cluster));
            mine.find_map(|one| replicas_in(&one.action)).unwrap_or(*own)
        });
        all.fold(0, i64::saturating_add)
    }
}

/// Returns the number of replicas that an override sets.
fn replicas_in(action: &Action) -> Option<i64> {
    let operations = match action {
        Action::Delete => return Some(0),
        Action::Patch(operations) => operations,
    };
    let set = operations.iter().rev().find(|operation| {
        operation.path.parts() == ["spec", "replicas"] && matches!(operation.verb, Verb::Add | Verb::Replace)
    })?;
    set.value.as_ref()?.as_i64()
}
