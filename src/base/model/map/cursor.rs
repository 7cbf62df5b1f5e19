//! Looks up many keys in a map, cheaply if they ascend.

use std::borrow::Borrow;

use super::{At, Map};

/// A place in a map from which to search for the next key.
#[derive(Debug)]
pub struct Cursor<'m, K, V> {
    map: &'m Map<K, V>,
    chunk: usize,
    place: usize,
}

impl<K: Ord, V> Map<K, V> {
    /// Returns a cursor for looking up many keys.
    pub fn cursor(&self) -> Cursor<'_, K, V> {
        Cursor { map: self, chunk: 0, place: 0 }
    }
}

impl<'m, K: Ord, V> Cursor<'m, K, V> {
    /// Returns the value of a key. One comparison suffices for the key right after the last one found, a few
    /// for the next ones.
    pub fn get<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&'m V>
    where
        K: Borrow<Q>,
    {
        self.entry(key).map(|(_, value)| value)
    }

    /// Returns the value like [`Cursor::get`], with the map's own key.
    pub fn entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(&'m K, &'m V)>
    where
        K: Borrow<Q>,
    {
        for _ in 0..2 {
            let entry = self.map.chunks.get(self.chunk).and_then(|entries| entries.get(self.place));
            let Some((known, value)) = entry else { break };
            let order = known.borrow().cmp(key);
            if order.is_gt() {
                break;
            }
            self.step();
            if order.is_eq() {
                return Some((known, value));
            }
        }
        let (Ok(at) | Err(at)) = self.map.find(key);
        let At { chunk, place } = at;
        (self.chunk, self.place) = (chunk, place);
        let (known, value) = self.map.chunks.get(chunk)?.get(place)?;
        if known.borrow() != key {
            return None;
        }
        self.step();
        Some((known, value))
    }

    fn step(&mut self) {
        self.place += 1;
        if self.map.chunks.get(self.chunk).is_some_and(|entries| entries.len() == self.place) {
            (self.chunk, self.place) = (self.chunk + 1, 0);
        }
    }
}
