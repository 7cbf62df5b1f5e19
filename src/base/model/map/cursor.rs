//! Asking a map about many keys, which costs little where they ascend.

use std::borrow::Borrow;

use super::{At, Map};

/// Questions to a map, which are fast if their keys ascend.
#[derive(Debug)]
pub struct Cursor<'m, K, V> {
    map: &'m Map<K, V>,
    /// The place of the last question's key.
    last: At,
}

impl<K: Ord, V> Map<K, V> {
    /// Begins to ask about many keys.
    pub fn cursor(&self) -> Cursor<'_, K, V> {
        Cursor { map: self, last: At { chunk: 0, place: 0 } }
    }
}

impl<'m, K: Ord, V> Cursor<'m, K, V> {
    /// Returns the value of a key: after few comparisons if the key is the next one or that of the last question.
    pub fn get<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&'m V>
    where
        K: Borrow<Q>,
    {
        self.entry(key).map(|(_, value)| value)
    }

    /// [`Cursor::get`] with the map's own key.
    pub fn entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(&'m K, &'m V)>
    where
        K: Borrow<Q>,
    {
        for at in [self.after_last(), self.last] {
            if let Some((known, value)) = self.at(at).filter(|(known, _)| (*known).borrow() == key) {
                self.last = at;
                return Some((known, value));
            }
        }
        let (Ok(at) | Err(at)) = self.map.find(key);
        self.last = at;
        self.at(at).filter(|(known, _)| (*known).borrow() == key)
    }

    fn at(&self, at: At) -> Option<(&'m K, &'m V)> {
        let (key, value) = self.map.chunks.get(at.chunk)?.get(at.place)?;
        Some((key, value))
    }

    /// Returns the place after the last key's.
    fn after_last(&self) -> At {
        let At { chunk, place } = self.last;
        let ends_chunk = self.map.chunks.get(chunk).is_some_and(|entries| entries.len() == place + 1);
        if ends_chunk { At { chunk: chunk + 1, place: 0 } } else { At { chunk, place: place + 1 } }
    }
}
