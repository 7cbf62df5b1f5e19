//! The places that the decisions of several workloads name, where only one of them has its copy: an object moves between
//! workloads that both go step by step.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::{Key, ObjectId, path};

use super::advance::{Advance, Outcome};
use super::places::Places;
use crate::state::ledger::{CopyOwner, Place};

/// Returns these places, each with the workload whose copy is there. `desired` has the decisions without any marks.
pub(super) fn find(
    advances: &[Advance],
    current: &Places<'_>,
    desired: &Places<'_>,
) -> BTreeMap<Place, CopyOwner> {
    let outcomes = advances.iter().map(|advance| (&advance.key, &advance.outcomes)).collect();
    let copies = Copies { current, desired, outcomes };
    let mut found = BTreeMap::new();
    for advance in advances.iter().filter(|advance| advance.keeps_objects()) {
        for object in copies.objects(advance) {
            let path = path::of_object(object);
            let others = copies.others(&advance.key, &path);
            if others.is_empty() {
                continue;
            }
            let serves = advance.outcomes.iter().filter(|(_, outcome)| **outcome != Outcome::Waits);
            for (cluster, _) in serves.filter(|(cluster, _)| !copies.is_there(&advance.key, cluster, &path)) {
                let mut owners = others.iter().filter(|other| copies.is_there(other, cluster, &path));
                if let (Some(owner), None) = (owners.next(), owners.next()) {
                    let owner = CopyOwner::by_release((*owner).clone());
                    found.insert((cluster.clone(), object.clone()), owner);
                }
            }
        }
    }
    found
}

/// The copies that workloads have after their steps.
struct Copies<'c> {
    current: &'c Places<'c>,
    desired: &'c Places<'c>,
    outcomes: BTreeMap<&'c Key, &'c BTreeMap<String, Outcome>>,
}

impl<'c> Copies<'c> {
    /// The objects of a workload that its decision names while it rolls out.
    fn objects(&self, advance: &'c Advance) -> BTreeSet<&'c ObjectId> {
        let decisions = [self.current, self.desired].map(|places| places.state.decisions.get(&advance.key));
        let named = decisions.into_iter().flatten().flat_map(|decision| &decision.objects);
        named.chain(&advance.earlier_objects).collect()
    }

    fn others(&self, key: &Key, path: &str) -> BTreeSet<&'c Key> {
        let claims = [self.current, self.desired].into_iter().flat_map(|places| places.owners.claims(path));
        claims.map(|claim| &claim.decision.key).filter(|other| *other != key).collect()
    }

    /// Reports whether a workload's own copy is at a place: the desired one, or one that stays where no other workload
    /// has the desired one.
    fn is_there(&self, key: &Key, cluster: &str, path: &str) -> bool {
        let is_desired = |key: &Key| self.desired.owners.owns(key, cluster, path);
        let stays = match self.outcomes.get(key).map(|outcomes| outcomes.get(cluster)) {
            None | Some(Some(Outcome::Desired)) => return is_desired(key),
            Some(None | Some(Outcome::Waits)) => false,
            Some(Some(Outcome::Stays | Outcome::Leaves)) => self.current.owners.uses(key, cluster, path),
            Some(Some(Outcome::Gets(copies))) => copies.iter().any(|(gets, _)| **gets == *path),
        };
        let has_it = |other: &&Key| is_desired(other) && self.is_there(other, cluster, path);
        stays && (is_desired(key) || !self.others(key, path).iter().any(has_it))
    }
}
