//! A map from many entries, which costs little where their keys ascend.

use super::{At, Map};

impl<K: Ord + Clone, V: Clone> Extend<(K, V)> for Map<K, V> {
    fn extend<Entries: IntoIterator<Item = (K, V)>>(&mut self, entries: Entries) {
        // Most come in the order of their keys, so that the next one is near.
        let mut near = 0;
        for (key, value) in entries {
            match self.find_near(&key, near) {
                Ok(At { chunk, place }) => {
                    near = chunk;
                    if let Some((_, known)) = self.chunk_mut(chunk).and_then(|entries| entries.get_mut(place))
                    {
                        *known = value;
                    }
                }
                Err(at) => {
                    near = at.chunk;
                    self.insert_new(at, key, value);
                }
            }
        }
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<Entries: IntoIterator<Item = (K, V)>>(entries: Entries) -> Map<K, V> {
        let mut map = Map::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord + Clone, V: Clone, const N: usize> From<[(K, V); N]> for Map<K, V> {
    fn from(entries: [(K, V); N]) -> Map<K, V> {
        entries.into_iter().collect()
    }
}
