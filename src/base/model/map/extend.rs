//! Builds a map from many entries, cheaply if their keys ascend.

use super::{At, Entry, EntryMap};

impl<E: Entry<Key: Ord> + Clone> Extend<E> for EntryMap<E> {
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

impl<E: Entry<Key: Ord> + Clone> FromIterator<E> for EntryMap<E> {
    fn from_iter<Entries: IntoIterator<Item = E>>(entries: Entries) -> EntryMap<E> {
        let mut map = EntryMap::new();
        map.extend(entries);
        map
    }
}

impl<E: Entry<Key: Ord> + Clone, const N: usize> From<[E; N]> for EntryMap<E> {
    fn from(entries: [E; N]) -> EntryMap<E> {
        entries.into_iter().collect()
    }
}
