//! A map by key whose clones share their common parts, so that comparing two versions costs only their
//! difference.
//!
//! Entries are stored in small chunks. A clone shares all chunks, and a change copies one of them.
//! [`Map::changes`] skips chunks that both sides share. Building a map from many entries is cheap if their
//! keys ascend.

mod iter;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

pub use iter::{Change, Cursor, IntoIter, Iter};

/// The maximal number of entries in a chunk. Small enough to copy for one change, large enough that a
/// thousand chunks hold a fleet.
const FULL: usize = 64;

/// The number of entries by which a full chunk grows. Doubling would waste memory.
const STEP: usize = 8;

type Chunk<E> = Arc<Vec<E>>;

/// A map of pairs, in the order of its keys.
pub type Map<K, V> = EntryMap<(K, V)>;

/// A map of entries: pairs, or pairs that several maps share.
pub struct EntryMap<E> {
    /// A map without chunks is empty.
    chunks: Arc<Vec<Chunk<E>>>,
    len: usize,
}

impl<E> EntryMap<E> {
    pub fn new() -> EntryMap<E> {
        EntryMap { chunks: Arc::default(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reports whether both are the same allocation, and so equal without a comparison.
    pub fn is_same(&self, other: &EntryMap<E>) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }
}

impl<E: MapEntry> EntryMap<E> {
    pub fn iter(&self) -> Iter<'_, E> {
        Iter::of(self)
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &E::Key> + ExactSizeIterator + Clone {
        self.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &E::Value> + ExactSizeIterator + Clone {
        self.iter().map(|(_, value)| value)
    }

    pub fn first_key_value(&self) -> Option<(&E::Key, &E::Value)> {
        self.iter().next()
    }
}

/// A place in a map: a chunk and an index in it, of an entry or for a new one.
#[derive(Clone, Copy)]
struct At {
    chunk: usize,
    place: usize,
}

impl<E: MapEntry<Key: Ord>> EntryMap<E> {
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<At, At>
    where
        E::Key: Borrow<Q>,
    {
        let ends_before = |chunk: &Chunk<E>| chunk.last().is_some_and(|last| last.key().borrow() < key);
        self.find_in(self.chunks.partition_point(ends_before), key)
    }

    /// Finds like [`Map::find`] a key that is likely in this chunk or the next one, or behind all.
    fn find_near<Q: Ord + ?Sized>(&self, key: &Q, near: usize) -> Result<At, At>
    where
        E::Key: Borrow<Q>,
    {
        let is_in = |chunk: &usize| match self.chunks.get(*chunk).map(|entries| entries.as_slice()) {
            Some([first, .., last]) => first.key().borrow() <= key && last.key().borrow() >= key,
            _ => false,
        };
        let ends_before = |chunk: &Chunk<E>| chunk.last().is_none_or(|last| last.key().borrow() < key);
        match [near, near + 1].into_iter().find(is_in) {
            Some(chunk) => self.find_in(chunk, key),
            None if self.chunks.last().is_none_or(ends_before) => {
                Err(At { chunk: self.chunks.len(), place: 0 })
            }
            None => self.find(key),
        }
    }

    fn find_in<Q: Ord + ?Sized>(&self, chunk: usize, key: &Q) -> Result<At, At>
    where
        E::Key: Borrow<Q>,
    {
        let Some(entries) = self.chunks.get(chunk) else { return Err(At { chunk, place: 0 }) };
        let at = |place| At { chunk, place };
        entries.binary_search_by(|one| one.key().borrow().cmp(key)).map(at).map_err(at)
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&E::Value>
    where
        E::Key: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&E::Key, &E::Value)>
    where
        E::Key: Borrow<Q>,
    {
        let At { chunk, place } = self.find(key).ok()?;
        let entry = self.chunks.get(chunk)?.get(place)?;
        Some((entry.key(), entry.value()))
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        E::Key: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Returns the entries from a key on.
    pub fn range_from<'m, Q: Ord + ?Sized>(
        &'m self,
        first: &Q,
    ) -> impl Iterator<Item = (&'m E::Key, &'m E::Value)> + use<'m, E, Q>
    where
        E::Key: Borrow<Q>,
    {
        let (Ok(At { chunk, place }) | Err(At { chunk, place })) = self.find(first);
        let rest = self.chunks.get(chunk..).unwrap_or_default();
        rest.iter().flat_map(|chunk| chunk.iter()).skip(place).map(|entry| (entry.key(), entry.value()))
    }
}

impl<E: MapEntry<Key: Ord> + Clone> EntryMap<E> {
    fn chunk_mut(&mut self, chunk: usize) -> Option<&mut Vec<E>> {
        Arc::make_mut(&mut self.chunks).get_mut(chunk).map(Arc::make_mut)
    }

    /// Puts an entry, and returns the earlier one with its key.
    pub fn put(&mut self, entry: E) -> Option<E> {
        // Most entries come in the order of their keys.
        match self.find_near(entry.key(), self.chunks.len()) {
            Ok(At { chunk, place }) => Some(std::mem::replace(self.chunk_mut(chunk)?.get_mut(place)?, entry)),
            Err(at) => {
                self.put_new(at, entry);
                None
            }
        }
    }

    /// Puts an entry at the place that was found for it, and returns its final place.
    fn put_new(&mut self, At { chunk, place }: At, entry: E) -> At {
        self.len += 1;
        let chunks = Arc::make_mut(&mut self.chunks);
        // After the last chunk, a chunk with room is filled first: most maps are built in the order of their
        // keys.
        let (chunk, place) = match chunks.last() {
            Some(last) if chunk == chunks.len() && last.len() < FULL => (chunk - 1, last.len()),
            _ => (chunk, place),
        };
        let Some(entries) = chunks.get_mut(chunk).map(Arc::make_mut) else {
            chunks.push(vec![entry].into());
            return At { chunk: chunks.len() - 1, place: 0 };
        };
        if entries.len() == entries.capacity() && entries.len() >= STEP {
            entries.reserve_exact(STEP);
        }
        entries.insert(place, entry);
        if entries.len() <= FULL {
            return At { chunk, place };
        }
        let upper = entries.split_off(FULL / 2);
        entries.shrink_to_fit();
        chunks.insert(chunk + 1, upper.into());
        match place.checked_sub(FULL / 2) {
            Some(place) => At { chunk: chunk + 1, place },
            None => At { chunk, place },
        }
    }

    /// Removes the entry of a key, and returns it.
    pub fn take<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<E>
    where
        E::Key: Borrow<Q>,
    {
        let At { chunk, place } = self.find(key).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let entries = Arc::make_mut(chunks.get_mut(chunk)?);
        let entry = entries.remove(place);
        let is_empty = entries.is_empty();
        self.len -= 1;
        if is_empty {
            chunks.remove(chunk);
        }
        Some(entry)
    }
}

impl<K: Ord + Clone, V: Clone> Map<K, V> {
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let At { chunk, place } = self.find(key).ok()?;
        self.chunk_mut(chunk)?.get_mut(place).map(|(_, value)| value)
    }

    /// Sets the value of a key, and returns the earlier one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.put((key, value)).map(|(_, value)| value)
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.take(key).map(|(_, value)| value)
    }

    /// Returns the value of a key; inserts the default if it is missing.
    pub fn or_default<Q: Ord + ToOwned<Owned = K> + ?Sized>(&mut self, key: &Q) -> &mut V
    where
        K: Borrow<Q>,
        V: Default,
    {
        self.or_insert_with(key, V::default)
    }

    /// Returns the value of a key; inserts this one if it is missing.
    pub fn or_insert(&mut self, key: K, value: V) -> &mut V {
        self.or_insert_with(&key, || value)
    }

    /// Returns the value of a key; inserts a new one if it is missing.
    pub fn or_insert_with<Q>(&mut self, key: &Q, value: impl FnOnce() -> V) -> &mut V
    where
        Q: Ord + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let At { chunk, place } = match self.find(key) {
            Ok(at) => at,
            Err(at) => self.put_new(at, (key.to_owned(), value())),
        };
        let entry = self.chunk_mut(chunk).and_then(|entries| entries.get_mut(place));
        &mut entry.expect("the key is there").1
    }

    /// Reuses the entries of an earlier map with the same values, so that both maps share them.
    pub fn adopt(&mut self, earlier: &Map<K, V>, is_same: impl Fn(&V, &V) -> bool) {
        let mut adopted = earlier.clone();
        for one in earlier.changes_by(self, is_same) {
            match one.after {
                Some(value) => drop(adopted.insert(one.key.clone(), value.clone())),
                None => drop(adopted.remove(one.key)),
            }
        }
        *self = adopted;
    }

    /// Keeps the entries for which `keeps` returns true.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &V) -> bool) {
        let gone: Vec<K> =
            self.iter().filter(|(key, value)| !keeps(key, value)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.remove(&key);
        }
    }

    /// Returns the entries with mutable values. Copies every shared chunk.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        let chunks = Arc::make_mut(&mut self.chunks).iter_mut();
        chunks.flat_map(Arc::make_mut).map(|(key, value)| (&*key, value))
    }

    /// Returns the mutable values. Copies every shared chunk.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Sets the values for which `change` returns a new one.
    pub fn update(&mut self, mut change: impl FnMut(&K, &V) -> Option<V>) {
        let changed: Vec<(K, V)> =
            self.iter().filter_map(|(key, value)| Some((key.clone(), change(key, value)?))).collect();
        self.extend(changed);
    }
}

impl<E> Default for EntryMap<E> {
    fn default() -> EntryMap<E> {
        EntryMap::new()
    }
}

impl<E> Clone for EntryMap<E> {
    fn clone(&self) -> EntryMap<E> {
        EntryMap { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<E: MapEntry<Key: fmt::Debug, Value: fmt::Debug>> fmt::Debug for EntryMap<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<E: MapEntry<Key: Ord, Value: PartialEq>> PartialEq for EntryMap<E> {
    fn eq(&self, other: &EntryMap<E>) -> bool {
        self.is_same(other) || self.len == other.len && self.changes(other).next().is_none()
    }
}

impl<E: MapEntry<Key: Ord, Value: Eq>> Eq for EntryMap<E> {}

impl<E: MapEntry<Key: Ord + Borrow<Q>>, Q: Ord + ?Sized> Index<&Q> for EntryMap<E> {
    type Output = E::Value;

    fn index(&self, key: &Q) -> &E::Value {
        self.get(key).expect("the key is in the map")
    }
}

/// A key with its value.
pub trait MapEntry {
    type Key;
    type Value;

    fn key(&self) -> &Self::Key;

    fn value(&self) -> &Self::Value;
}

impl<K, V> MapEntry for (K, V) {
    type Key = K;
    type Value = V;

    fn key(&self) -> &K {
        &self.0
    }

    fn value(&self) -> &V {
        &self.1
    }
}

/// An entry that maps share, to save memory for equal entries.
impl<E: MapEntry> MapEntry for Arc<E> {
    type Key = E::Key;
    type Value = E::Value;

    fn key(&self) -> &E::Key {
        (**self).key()
    }

    fn value(&self) -> &E::Value {
        (**self).value()
    }
}

impl<E: MapEntry<Key: Ord> + Clone> Extend<E> for EntryMap<E> {
    fn extend<Entries: IntoIterator<Item = E>>(&mut self, entries: Entries) {
        // Most entries come in the order of their keys, so the next place is near.
        let mut near = 0;
        for entry in entries {
            match self.find_near(entry.key(), near) {
                Ok(At { chunk, place }) => {
                    near = chunk;
                    if let Some(known) = self.chunk_mut(chunk).and_then(|entries| entries.get_mut(place)) {
                        *known = entry;
                    }
                }
                Err(at) => {
                    near = at.chunk;
                    self.put_new(at, entry);
                }
            }
        }
    }
}

impl<E: MapEntry<Key: Ord> + Clone> FromIterator<E> for EntryMap<E> {
    fn from_iter<Entries: IntoIterator<Item = E>>(entries: Entries) -> EntryMap<E> {
        let mut map = EntryMap::new();
        map.extend(entries);
        map
    }
}

impl<E: MapEntry<Key: Ord> + Clone, const N: usize> From<[E; N]> for EntryMap<E> {
    fn from(entries: [E; N]) -> EntryMap<E> {
        entries.into_iter().collect()
    }
}
