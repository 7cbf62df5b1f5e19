//! The copies of the current state: last good forms, and the workloads that own them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::Previous;
use super::claims::Claim;
use berth_base::model::{ContentId, Decision, Key, ObjectId};

pub(super) struct CurrentCopies<'a> {
    previous: Previous<'a>,
    /// The workloads that place each object anywhere; filled on the first fault.
    owners: OnceCell<BTreeMap<&'a ObjectId, Vec<&'a Key>>>,
}

impl<'a> CurrentCopies<'a> {
    pub(super) fn new(previous: Previous<'a>) -> CurrentCopies<'a> {
        CurrentCopies { previous, owners: OnceCell::new() }
    }

    /// Reports whether the claim's workload has a copy of the object in the cluster already.
    pub(super) fn is_incumbent(&self, claim: &Claim<'_>, cluster: &str) -> bool {
        self.holds(&claim.workload.key, &claim.id, cluster) == Some(true)
    }

    /// Returns the content of the claim's current copy.
    pub(super) fn last_good(&self, claim: &Claim<'_>, cluster: &str) -> Option<ContentId> {
        let id = &*claim.id;
        let had_its_own = self.holds(&claim.workload.key, id, cluster)?;
        // A failed copy may have left its last good form there, unless the copy belonged to another workload.
        if !had_its_own && self.somebody_holds(id, cluster) {
            return None;
        }
        self.previous.folders.get(cluster)?.get(&claim.path).copied()
    }

    /// Returns `None` if the workload did not place the object there, false if its copy failed.
    fn holds(&self, key: &Key, id: &ObjectId, cluster: &str) -> Option<bool> {
        let decision = self.previous.decisions.get(key)?;
        let put = decision.serves(cluster) && decision.objects.contains(id);
        put.then(|| !has_failed(decision, id, cluster))
    }

    fn somebody_holds(&self, id: &ObjectId, cluster: &str) -> bool {
        let owners = self.owners.get_or_init(|| {
            let mut owners: BTreeMap<&ObjectId, Vec<&Key>> = BTreeMap::new();
            for (key, decision) in self.previous.decisions {
                for id in &decision.objects {
                    owners.entry(id).or_default().push(key);
                }
            }
            owners
        });
        let keys = owners.get(id).map(Vec::as_slice).unwrap_or_default();
        keys.iter().any(|key| self.holds(key, id, cluster) == Some(true))
    }
}

fn has_failed(decision: &Decision, id: &ObjectId, cluster: &str) -> bool {
    decision.failures.iter().any(|failure| failure.cluster == cluster && failure.object == *id)
}
