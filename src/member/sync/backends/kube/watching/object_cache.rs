//! The cache of all owned objects, as watches and lists have shown them, and the changes that ask for a sync.
//!
//! Events may come late, twice, or in another order than answers: an event older than its entry does not count,
//! and a removal names the very object by its UID.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::cached_object::{CachedObject, Version, WantedObjects};
use crate::sync::strategy::Finding;
use berth_base::model::ObjectId;

/// Every object of some kinds.
#[derive(Debug, Default)]
pub struct ObjectCache {
    wanted: Arc<WantedObjects>,
    entries: BTreeMap<ObjectId, CachedObject>,
    /// Objects whose changes ask for no sync until then.
    muted: BTreeMap<ObjectId, Instant>,
    /// The objects that berth is writing now.
    writing: BTreeSet<ObjectId>,
    /// The UIDs of what went away meanwhile.
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

    /// Does not ask for a sync on account of this object for a while.
    pub fn mute(&mut self, id: &ObjectId, until: Instant) {
        self.muted.insert(id.clone(), until);
    }

    pub(crate) fn unmute(&mut self, id: &ObjectId) {
        self.muted.remove(id);
    }

    fn is_muted(&self, id: &ObjectId) -> bool {
        self.muted.get(id).is_some_and(|until| Instant::now() < *until)
    }

    /// Puts an object's present entry; `None` if the object no longer concerns berth. Returns true if that
    /// asks for a sync.
    pub fn put(&mut self, id: ObjectId, entry: Option<CachedObject>, version: Version) -> bool {
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
            // The object became as wanted by somebody's write: the report may say otherwise.
            Some(before) => {
                before.health != entry.health
                    || before.finding != entry.finding
                    || !(before.is_same(wanted) || self.writing.contains(id))
            }
            // Most likely the echo of berth's own write.
            None => false,
        }
    }

    /// Removes one very object. Returns true if that asks for a sync.
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

    /// Names what berth writes from now on.
    pub fn writing(&mut self, ids: BTreeSet<ObjectId>) {
        self.writing = ids;
        self.gone.clear();
    }

    /// Puts an object that berth has written, so that its echo from a watch is no news.
    pub fn wrote(&mut self, id: ObjectId, entry: CachedObject) {
        if self.gone.contains(&entry.uid) {
            return;
        }
        match self.entries.get_mut(&id) {
            Some(before) if is_older(entry.version, before.version) => {}
            // A watch has told of the same version, and knows more of the object than the write does.
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

    /// Marks an object in this version as wanted, although its managers or values do not show it, with the finding that
    /// syncs report from now on.
    pub fn trust(&mut self, id: &ObjectId, version: Version, finding: Option<Finding>) {
        if let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.version == version) {
            (entry.intact, entry.live) = (true, None);
            entry.finding = finding.or(entry.finding.take());
        }
    }

    /// Takes in a list, which is the truth for all up to its version. Objects missing from it are dropped; those
    /// written after it stay. An object that is older than its entry shows that the server went back.
    pub fn listed(
        &mut self,
        of: impl Fn(&ObjectId) -> bool,
        objects: Vec<(ObjectId, Option<CachedObject>, Version)>,
        version: Version,
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

    /// Puts entries back that were taken out, where there are no newer ones.
    pub(crate) fn restore(&mut self, entries: BTreeMap<ObjectId, CachedObject>) {
        for (id, entry) in entries {
            self.entries.entry(id).or_insert(entry);
        }
    }

    /// Keeps nothing of a kind that is looked at no longer.
    pub fn forget(&mut self, of: impl Fn(&ObjectId) -> bool) {
        self.entries.retain(|id, _| !of(id));
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

/// The news of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// True if it asks for a sync.
    pub asks: bool,
    /// True if the server has an object in an older version than it had before, as after a restore.
    pub went_back: bool,
}

/// Reports whether one version is known to be older than another.
fn is_older(one: Version, other: Version) -> bool {
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
