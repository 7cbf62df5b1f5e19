//! Cached results, each under a key that names all of its inputs.
//!
//! Using a cache fills it, and at the end of a pass it drops the entries that the pass did not use. Losing a
//! cache costs only time. docs/caching.md lists all caches.

use std::collections::BTreeMap;

/// Results by key. Equal keys mean equal results.
#[derive(Clone, Debug)]
pub struct Cache<K, V> {
    entries: BTreeMap<K, CacheEntry<V>>,
    /// Some entry was requested since unused entries were last dropped.
    is_in_use: bool,
}

#[derive(Clone, Debug)]
struct CacheEntry<V> {
    result: V,
    /// The entry was requested since unused entries were last dropped.
    used: bool,
}

impl<K: Ord, V: Clone> Cache<K, V> {
    /// Returns the result under a key, and marks it as used.
    pub fn get(&mut self, key: &K) -> Option<V> {
        self.is_in_use = true;
        let entry = self.entries.get_mut(key)?;
        entry.used = true;
        Some(entry.result.clone())
    }

    /// Adds a new result, and marks it as used.
    pub fn insert(&mut self, key: K, result: V) {
        self.is_in_use = true;
        self.entries.insert(key, CacheEntry { result, used: true });
    }

    /// Returns the result under a key, without marking it as used.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.result)
    }

    /// Adds a result, without marking it as used.
    pub fn keep(&mut self, key: K, result: V) {
        self.entries.insert(key, CacheEntry { result, used: false });
    }

    /// Returns all results, to change their storage but not their values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.values_mut().map(|entry| &mut entry.result)
    }

    pub fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Drops the entries that were not used since the last call. A cache without any request since then keeps
    /// all entries, because the next pass may request them.
    pub fn forget_unused(&mut self) {
        if !std::mem::take(&mut self.is_in_use) {
            return;
        }
        self.entries.retain(|_, entry| std::mem::take(&mut entry.used));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.result))
    }
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Cache<K, V> {
        Cache { entries: BTreeMap::new(), is_in_use: false }
    }
}

/// Adds the entries of an earlier process, unused so far.
impl<K: Ord, V> FromIterator<(K, V)> for Cache<K, V> {
    fn from_iter<Entries: IntoIterator<Item = (K, V)>>(entries: Entries) -> Cache<K, V> {
        let unused = |(key, result)| (key, CacheEntry { result, used: false });
        Cache { entries: entries.into_iter().map(unused).collect(), is_in_use: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut cache: Cache<u8, &str> = [(1, "one"), (2, "two")].into_iter().collect();
        cache.insert(3, "three");
        assert_eq!(cache.get(&1), Some("one"));
        cache.forget_unused();
        assert_eq!(cache.iter().collect::<Vec<_>>(), [(&1, &"one"), (&3, &"three")]);
        cache.forget_unused();
        assert_eq!(cache.iter().count(), 2, "nobody asked");
        assert_eq!(cache.get(&2), None);
        cache.forget_unused();
        assert_eq!(cache.iter().count(), 0);
    }
}
