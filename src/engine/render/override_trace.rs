//! The overrides that changed each path of each copy, or removed the copy, for `explain` and reports.
//!
//! Rendering does not use this trace. It runs the same functions as rendering, one object at a time.

use std::sync::Arc;

use super::copies::Copies;
use super::final_fields;
use super::inputs::RenderInputs;
use berth_base::model::{Action, Decision, Fleet, Key, Map, ObjectId, Pointer, Shared};

/// The overrides that changed one cluster's copy of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverriddenCopy {
    pub cluster: String,
    /// The path in the cluster's folder.
    pub path: Arc<str>,
    pub object: ObjectId,
    pub by: Vec<AppliedOverride>,
}

/// An operation of an override, or its deletion of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedOverride {
    pub by: Key,
    /// The place of the operation or rule.
    pub at: berth_base::diag::Pos,
    /// The verb and the path; `None` if the override deletes the copy.
    pub operation: Option<(&'static str, Pointer)>,
}

impl std::fmt::Display for AppliedOverride {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.operation {
            Some((verb, path)) => write!(f, "{verb} {path} by {} ({})", self.by, self.at),
            None => write!(f, "taken away by {} ({})", self.by, self.at),
        }
    }
}

/// Returns the copies that an override changes, by path and cluster.
pub fn touched(
    fleet: &Shared<Fleet>,
    decisions: &Map<Key, Decision>,
    previous: super::Previous<'_>,
) -> Vec<OverriddenCopy> {
    let inputs = RenderInputs::of(fleet, decisions, previous, None);
    let groups = inputs.groups();
    let mut found = Vec::new();
    for claim in groups.values().flatten().filter(|claim| !claim.workload.frozen) {
        let copies = Copies::new(fleet, claim);
        for pick in claim.picks() {
            let cluster = &*pick.cluster;
            let places = copies.places(cluster, fleet.clusters.get(cluster).map(|known| &**known));
            let overrides = places.into_iter().map(|index| &claim.workload.overrides[index]);
            let overrides = final_fields::with_replicas(claim.workload, overrides, pick.replicas);
            let mut by = Vec::new();
            for one in &overrides {
                let touch = |at: &berth_base::diag::Pos, operation| AppliedOverride {
                    by: (*one.by).clone(),
                    at: at.clone(),
                    operation,
                };
                match &one.action {
                    Action::Delete => {
                        by.push(touch(&one.origin, None));
                        break;
                    }
                    Action::Patch(operations) => by.extend(operations.iter().map(|operation| {
                        touch(&operation.at, Some((operation.verb.word(), operation.path.clone())))
                    })),
                }
            }
            if !by.is_empty() {
                let (path, object) = (claim.path.clone(), claim.id.clone().into_owned());
                found.push(OverriddenCopy { cluster: cluster.to_owned(), path, object, by });
            }
        }
    }
    found
}
