//! The cache of all owned objects, filled by watches and lists, and the changes that request a sync.
//!
//! Events may arrive late, twice, or in another order than answers. So an event older than its entry is ignored, and
//! a removal names its object by UID.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::cached_object::{CachedObject, VersionNumber, WantedObjects};
use crate::sync::strategy::Finding;
use berth_base::model::ObjectId;

/// Every object of some kinds.
#[derive(Debug, Default)]
pub struct ObjectCache {
    wanted: Arc<WantedObjects>,
    entries: BTreeMap<ObjectId, CachedObject>,
    /// Objects whose changes request no sync until the given moment.
    muted: BTreeMap<ObjectId, Instant>,
    /// The objects that berth is writing now.
    writing: BTreeSet<ObjectId>,
    /// The UIDs of objects removed while berth writes.
    gone: BTreeSet<Box<str>>,
}

impl ObjectCache {
    pub fn want(&mut self, wanted: Arc<WantedObjects>) {
        self.muted.retain(|id, _| wanted.contains_key(id));
        self.wanted = wanted;
    }

    pub fn wanted(&self) -> Arc<WantedObjects> {
        self.wanted.clone()
    }

    pub fn entries(&self) -> impl Iterator<Item = (&ObjectId, &CachedObject)> {
        self.entries.iter()
    }

    pub fn get(&self, id: &ObjectId) -> Option<&CachedObject> {
        self.entries.get(id)
    }

    /// Requests no sync for changes of this object until a moment.
    pub fn mute(&mut self, id: &ObjectId, until: Instant) {
        self.muted.insert(id.clone(), until);
    }

    pub(crate) fn unmute(&mut self, id: &ObjectId) {
        self.muted.remove(id);
    }

    fn is_muted(&self, id: &ObjectId) -> bool {
        self.muted.get(id).is_some_and(|until| Instant::now() < *until)
    }

    /// Stores an object's present entry; `None` if the object no longer concerns berth. Returns true if the change
    /// requests a sync.
    pub fn put(&mut self, id: ObjectId, entry: Option<CachedObject>, version: VersionNumber) -> bool {
        let before = self.entries.get(&id);
        if before.is_some_and(|before| is_older(version, before.version)) {
            return false;
        }
        let asks = match (before, &entry) {
            (None, None) => false,
            (Some(_), None) => true,
            (before, Some(entry)) => self.asks(&id, before, entry),
        };
        match entry {
            Some(entry) => drop(self.entries.insert(id.clone(), entry)),
            None => drop(self.entries.remove(&id)),
        }
        asks && !self.is_muted(&id)
    }

    fn asks(&self, id: &ObjectId, before: Option<&CachedObject>, entry: &CachedObject) -> bool {
        let Some(wanted) = self.wanted.get(id) else {
            return before.is_none_or(|before| before.leaving != entry.leaving);
        };
        if !entry.is_same(wanted) || entry.leaving.is_some() {
            return true;
        }
        match before {
            // Somebody's write made the object equal to its wanted form, which may change the report.
            Some(before) => {
                before.health != entry.health
                    || before.finding != entry.finding
                    || !(before.is_same(wanted) || self.writing.contains(id))
            }
            // Most likely the event of berth's own write.
            None => false,
        }
    }

    /// Removes the object with this UID. Returns true if that requests a sync.
    pub fn gone(&mut self, id: &ObjectId, uid: &str) -> bool {
        if self.entries.get(id).is_none_or(|entry| &*entry.uid != uid) {
            return false;
        }
        self.entries.remove(id);
        if self.writing.contains(id) {
            self.gone.insert(uid.into());
        }
        !self.is_muted(id)
    }

    /// Sets the objects that berth writes from now on.
    pub fn writing(&mut self, ids: BTreeSet<ObjectId>) {
        self.writing = ids;
        self.gone.clear();
    }

    /// Stores an object that berth wrote, so that its event from a watch requests no sync.
    pub fn wrote(&mut self, id: ObjectId, entry: CachedObject) {
        if self.gone.contains(&entry.uid) {
            return;
        }
        match self.entries.get_mut(&id) {
            Some(before) if is_older(entry.version, before.version) => {}
            // The watch already delivered this version, in more detail.
            Some(before)
                if before.version.is_some() && before.version == entry.version && before.uid == entry.uid =>
            {
                if !before.altered {
                    (before.intact, before.live) = (true, None);
                }
            }
            _ => drop(self.entries.insert(id, entry)),
        }
    }

    /// Accepts this version of an object as wanted, although its managers or values differ. Sets the finding that
    /// syncs report from now on.
    pub fn trust(&mut self, id: &ObjectId, version: VersionNumber, finding: Option<Finding>) {
        if let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.version == version) {
            (entry.intact, entry.live) = (true, None);
            entry.finding = finding.or(entry.finding.take());
        }
    }

    /// Stores a list, which is complete up to its version. Drops objects missing from the list, except those written
    /// after it. An object older than its entry shows that the server went back.
    pub fn listed(
        &mut self,
        of: impl Fn(&ObjectId) -> bool,
        objects: Vec<(ObjectId, Option<CachedObject>, VersionNumber)>,
        version: VersionNumber,
    ) -> Listed {
        let mut listed = Listed::default();
        let mut seen = BTreeSet::new();
        for (id, entry, own_version) in objects {
            seen.insert(id.clone());
            let before = self.entries.get(&id).and_then(|entry| entry.version);
            if is_older(version, before) {
                continue;
            }
            if is_older(own_version, before) {
                listed.went_back = true;
                self.entries.remove(&id);
            }
            listed.asks |= self.put(id, entry, own_version);
        }
        let gone = |id: &ObjectId, entry: &CachedObject| {
            of(id) && !seen.contains(id) && !is_older(version, entry.version)
        };
        let before = self.entries.len();
        self.entries.retain(|id, entry| !gone(id, entry));
        listed.asks |= self.entries.len() != before;
        listed
    }

    /// Takes out the entries of some kinds.
    pub(crate) fn take(&mut self, of: impl Fn(&ObjectId) -> bool) -> BTreeMap<ObjectId, CachedObject> {
        self.entries.extract_if(.., |id, _| of(id)).collect()
    }

    /// Restores removed entries, unless newer ones exist.
    pub(crate) fn restore(&mut self, entries: BTreeMap<ObjectId, CachedObject>) {
        for (id, entry) in entries {
            self.entries.entry(id).or_insert(entry);
        }
    }

    /// Forgets kinds that are no longer followed.
    pub fn forget(&mut self, of: impl Fn(&ObjectId) -> bool) {
        self.entries.retain(|id, _| !of(id));
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

/// The changes found in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// True if the changes request a sync.
    pub asks: bool,
    /// True if the server has an object in an older version than it had before, as after a restore.
    pub went_back: bool,
}

/// Reports whether both versions are known and the first is older.
fn is_older(one: VersionNumber, other: VersionNumber) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one < other)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id(name: &str) -> ObjectId {
        ObjectId::new("", "ConfigMap", "shop", name)
    }

    fn entry(uid: &str, version: u64) -> CachedObject {
        CachedObject { uid: uid.into(), version: Some(version), owned: true, ..CachedObject::default() }
    }

    fn put(cache: &mut ObjectCache, uid: &str, version: u64) -> bool {
        cache.put(id("web"), Some(entry(uid, version)), Some(version))
    }

    #[test]
    fn what_is_older_than_what_is_known_counts_for_nothing() {
        let mut cache = ObjectCache::default();
        assert!(put(&mut cache, "a", 7));
        assert!(!put(&mut cache, "b", 5));
        assert_eq!(&*cache.get(&id("web")).unwrap().uid, "a");
    }

    #[test]
    fn a_removal_that_comes_late_takes_nothing_that_came_in_its_place() {
        let mut cache = ObjectCache::default();
        put(&mut cache, "old", 5);
        put(&mut cache, "new", 9);
        assert!(!cache.gone(&id("web"), "old"));
        assert!(cache.get(&id("web")).is_some());
        assert!(cache.gone(&id("web"), "new"));
        assert!(!cache.gone(&id("web"), "new"));
    }

    #[test]
    fn a_list_removes_what_is_not_on_it_and_not_what_came_after_it() {
        let mut cache = ObjectCache::default();
        put(&mut cache, "a", 5);
        cache.put(id("later"), Some(entry("b", 20)), Some(20));
        assert!(cache.listed(|_| true, Vec::new(), Some(10)).asks);
        assert_eq!(cache.entries().map(|(id, _)| &*id.name).collect::<Vec<_>>(), ["later"]);
        assert!(!cache.listed(|_| true, Vec::new(), Some(10)).asks);
    }

    #[test]
    fn a_list_is_the_truth_up_to_its_version() {
        let mut cache = ObjectCache::default();
        put(&mut cache, "seen before a restore", 50);
        cache.put(id("later"), Some(entry("written meanwhile", 90)), Some(90));
        let object = |name: &str, version: u64| (id(name), Some(entry("listed", version)), Some(version));
        let listed = cache.listed(|_| true, vec![object("web", 20), object("later", 30)], Some(60));
        assert!(listed.went_back);
        let uids: Vec<&str> = cache.entries().map(|(_, entry)| &*entry.uid).collect();
        assert_eq!(uids, ["written meanwhile", "listed"]);
    }

    #[test]
    fn a_muted_object_asks_for_nothing() {
        let mut cache = ObjectCache::default();
        cache.mute(&id("web"), Instant::now() + Duration::from_secs(60));
        assert!(!put(&mut cache, "a", 5));
        assert!(!cache.gone(&id("web"), "a"));
        cache.unmute(&id("web"));
        assert!(put(&mut cache, "a", 6));
    }
}
