//! Remembered results: each under a key that names everything it was made from.
//!
//! A cache is filled by what is used, and forgets at the end of a pass what that pass did not use. Losing a
//! cache costs time only. docs/caching.md lists all caches.

use std::collections::BTreeMap;

/// Results by key. Equal keys mean equal results.
#[derive(Clone, Debug)]
pub struct Cache<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    /// Any entry was asked for since unused entries were forgotten last.
    is_in_use: bool,
}

#[derive(Clone, Debug)]
struct Entry<V> {
    result: V,
    /// Since unused entries were forgotten last.
    used: bool,
}

impl<K: Ord, V: Clone> Cache<K, V> {
    /// Returns the result under a key, which is used by that.
    pub fn get(&mut self, key: &K) -> Option<V> {
        self.is_in_use = true;
        let entry = self.entries.get_mut(key)?;
        entry.used = true;
        Some(entry.result.clone())
    }

    /// Remembers a result that was just made.
    pub fn insert(&mut self, key: K, result: V) {
        self.is_in_use = true;
        self.entries.insert(key, Entry { result, used: true });
    }

    /// Returns the result under a key, which stays as it is.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.result)
    }

    /// Keeps a result that nobody used so far.
    pub fn keep(&mut self, key: K, result: V) {
        self.entries.insert(key, Entry { result, used: false });
    }

    /// Returns all results, to change how they are kept. They stay what they are.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.values_mut().map(|entry| &mut entry.result)
    }

    pub fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Forgets the entries that were not used since the last call. A cache that nobody asked stays as it is: the
    /// next pass may ask it for the same again.
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

/// Entries of an earlier process, unused so far.
impl<K: Ord, V> FromIterator<(K, V)> for Cache<K, V> {
    fn from_iter<Entries: IntoIterator<Item = (K, V)>>(entries: Entries) -> Cache<K, V> {
        let unused = |(key, result)| (key, Entry { result, used: false });
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
