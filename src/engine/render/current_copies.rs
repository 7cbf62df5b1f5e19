//! The copies of the current state: last good forms, and the workloads that own them.
//!
//! They stay where no new copy may be rendered: for frozen workloads; and, byte for byte, while the last
//! good form of an unreadable file is unknown, because no object is removed then.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::claims::TemplateClaim;
use super::{Previous, put};
use berth_base::model::{
    ContentId, Decision, Folders, Key, Map, Object, ObjectId, Shared, Template, Workload, path,
};
use berth_base::packed::Packed;

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
    pub(super) fn is_incumbent(&self, claim: &TemplateClaim<'_>, cluster: &str) -> bool {
        self.holds(&claim.workload.key, &claim.id, cluster) == Some(true)
    }

    /// Returns the content of the claim's current copy.
    pub(super) fn last_good(&self, claim: &TemplateClaim<'_>, cluster: &str) -> Option<ContentId> {
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

/// Returns a frozen workload with its current objects. Their contents are taken from the current state.
pub(super) fn with_frozen_objects(workload: &Workload, previous: Previous<'_>) -> Workload {
    let before = previous.decisions.get(&workload.key);
    let objects = before.map(|before| before.objects.as_slice()).unwrap_or_default();
    Workload {
        templates: objects.iter().map(|id| template(workload, id)).collect(),
        overrides: Shared::default(),
        ..workload.clone()
    }
}

fn template(workload: &Workload, id: &ObjectId) -> Template {
    let object = Object { id: id.clone(), origin: workload.origin.clone(), content: Packed::of(&Json::Null) };
    Template {
        object: Arc::new(object),
        final_labels: Arc::default(),
        sync_annotations: Arc::default(),
        retained: Vec::new(),
    }
}

/// Restores the objects of the current decision.
pub(super) fn note_frozen(previous: Previous<'_>, key: &Key, decision: &mut Decision) {
    let Some(before) = previous.decisions.get(key) else { return };
    decision.objects.clone_from(&before.objects);
    let stays = before.failures.iter().filter(|failure| decision.has(&failure.cluster));
    decision.failures = stays.cloned().collect();
}

/// Restores copies that the next state lost.
pub(super) fn carry_uncertain(
    decisions: &mut Map<Key, Decision>,
    previous: Previous<'_>,
    folders: &mut Folders,
) {
    for (key, earlier) in previous.decisions {
        for object in &earlier.objects {
            let path: Arc<str> = path::of_object(object).into();
            let mut stays = false;
            for pick in &earlier.picks {
                let there = folders.get(&*pick.cluster).is_some_and(|folder| folder.contains_key(&path));
                let before = previous.folders.get(&*pick.cluster).and_then(|folder| folder.get(&path));
                if let (false, Some(content)) = (there, before) {
                    put(folders, &pick.cluster, &path, *content);
                    stays = true;
                }
            }
            if let (true, Some(decision)) = (stays, decisions.get_mut(key))
                && let Err(place) = decision.objects.binary_search(object)
            {
                decision.objects.insert(place, object.clone());
            }
        }
    }
}
