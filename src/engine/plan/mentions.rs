//! Objects that name a cluster: in a placement, an override, a share of replicas or a list of clusters that
//! retain a field. Such a name outlives its cluster, and takes effect again when a cluster of that name
//! joins.

use std::collections::BTreeSet;

use berth_base::diag::Pos;
use berth_base::model::placement::{Filter, Rule, Selection, Source};
use berth_base::model::{Applies, Fleet, Key};

/// A place that names a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    pub by: Key,
    pub at: Pos,
    pub how: &'static str,
}

/// Returns every object that names a cluster, by key.
pub fn mentions(fleet: &Fleet, cluster: &str) -> Vec<Mention> {
    let mut found = BTreeSet::new();
    let mut add = |by: &Key, at: &Pos, how| {
        found.insert(Mention { by: by.clone(), at: at.clone(), how });
    };
    // A filter from another object belongs to that object.
    let named = |filter: &Filter| {
        filter.by.is_none() && matches!(&filter.rule, Rule::Named(names) if names.contains(cluster))
    };
    for placement in fleet.placements.values() {
        let (key, origin) = (&placement.key, &placement.origin);
        match &placement.source {
            Source::Follows(follow) if follow.filters.iter().any(named) => {
                add(key, origin, "placement");
            }
            Source::Follows(_) => {}
            Source::Own(policy) => {
                let exact = matches!(&policy.selection, Selection::Exactly(names) if names.contains(cluster));
                if exact || policy.candidates.iter().chain(&policy.filters).any(named) {
                    add(key, origin, "placement");
                }
                if let Some(division) = &policy.division
                    && let Some((_, at)) = division.shares.get(cluster)
                {
                    add(&division.by, at, "share of replicas");
                }
            }
        }
    }
    for workload in fleet.workloads.values() {
        for one in &workload.overrides {
            if one.clusters == Applies::To(cluster.to_owned()) {
                add(&one.by, &one.origin, "override");
            }
        }
        let retained = workload.templates.iter().flat_map(|template| &template.retained);
        if retained.filter_map(|one| one.clusters.as_ref()).any(|clusters| clusters.contains(cluster)) {
            add(&workload.key, &workload.origin, "retainReplicas");
        }
    }
    found.into_iter().collect()
}
