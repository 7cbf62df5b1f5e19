//! Reading a map: its entries one after the other; many keys, cheaply if they ascend; and the changes
//! between two versions, skipping their shared parts.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::iter::{FlatMap, Peekable};
use std::sync::Arc;
use std::{slice, vec};

use super::{At, Chunk, EntryMap, Map, MapEntry};

type Flat<'m, E> =
    FlatMap<slice::Iter<'m, Chunk<E>>, slice::Iter<'m, E>, fn(&'m Chunk<E>) -> slice::Iter<'m, E>>;

/// The owned entries of a map, by key.
pub type IntoIter<E> = FlatMap<vec::IntoIter<Chunk<E>>, Vec<E>, fn(Chunk<E>) -> Vec<E>>;

/// The entries of a map, by key.
#[derive(Debug)]
pub struct Iter<'m, E> {
    entries: Flat<'m, E>,
    left: usize,
}

impl<'m, E> Iter<'m, E> {
    pub(super) fn of(map: &'m EntryMap<E>) -> Iter<'m, E> {
        Iter { entries: map.chunks.iter().flat_map(|chunk| chunk.iter()), left: map.len }
    }
}

impl<'m, E: MapEntry> Iterator for Iter<'m, E> {
    type Item = (&'m E::Key, &'m E::Value);

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        self.left -= 1;
        Some((entry.key(), entry.value()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<E: MapEntry> DoubleEndedIterator for Iter<'_, E> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next_back()?;
        self.left -= 1;
        Some((entry.key(), entry.value()))
    }
}

impl<E: MapEntry> ExactSizeIterator for Iter<'_, E> {}

impl<E> Clone for Iter<'_, E> {
    fn clone(&self) -> Self {
        Iter { entries: self.entries.clone(), left: self.left }
    }
}

impl<'m, E: MapEntry> IntoIterator for &'m EntryMap<E> {
    type Item = (&'m E::Key, &'m E::Value);
    type IntoIter = Iter<'m, E>;

    fn into_iter(self) -> Iter<'m, E> {
        self.iter()
    }
}

impl<E: Clone> IntoIterator for EntryMap<E> {
    type Item = E;
    type IntoIter = IntoIter<E>;

    fn into_iter(self) -> IntoIter<E> {
        Arc::unwrap_or_clone(self.chunks).into_iter().flat_map(Arc::unwrap_or_clone)
    }
}

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

/// An entry that differs between two maps.
#[derive(Debug, PartialEq, Eq)]
pub struct Change<'m, K, V> {
    pub key: &'m K,
    pub before: Option<&'m V>,
    pub after: Option<&'m V>,
}

impl<E: MapEntry<Key: Ord, Value: PartialEq>> EntryMap<E> {
    /// Returns the entries that differ in a later map, by key.
    pub fn changes<'m>(
        &'m self,
        after: &'m EntryMap<E>,
    ) -> impl Iterator<Item = Change<'m, E::Key, E::Value>> {
        self.changes_by(after, E::Value::eq)
    }
}

impl<E: MapEntry<Key: Ord>> EntryMap<E> {
    /// Returns the entries that a later map lacks or whose value is not the same there.
    pub fn changes_by<'m>(
        &'m self,
        after: &'m EntryMap<E>,
        is_same: impl Fn(&E::Value, &E::Value) -> bool,
    ) -> impl Iterator<Item = Change<'m, E::Key, E::Value>> {
        let (mut old, mut new) = (Walk::of(self), Walk::of(after));
        let merged = std::iter::from_fn(move || {
            Walk::pass_shared(&mut old, &mut new);
            let order = match (old.peek(), new.peek()) {
                (Some(old), Some(new)) => old.key().cmp(new.key()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            let before = if order.is_gt() { None } else { old.next() };
            let after = if order.is_lt() { None } else { new.next() };
            let key = before.or(after)?.key();
            Some(Change { key, before: before.map(E::value), after: after.map(E::value) })
        });
        merged.filter(move |one| match (one.before, one.after) {
            (Some(before), Some(after)) => !is_same(before, after),
            _ => true,
        })
    }
}

/// A walk through a map's entries that can skip whole chunks.
struct Walk<'m, E> {
    chunks: Peekable<slice::Iter<'m, Chunk<E>>>,
    /// The rest of the current chunk.
    rest: &'m [E],
}

impl<'m, E> Walk<'m, E> {
    fn of(map: &'m EntryMap<E>) -> Walk<'m, E> {
        Walk { chunks: map.chunks.iter().peekable(), rest: &[] }
    }

    /// Skips equal chunks that both walks reach next.
    fn pass_shared(one: &mut Walk<'m, E>, other: &mut Walk<'m, E>) {
        while one.rest.is_empty()
            && other.rest.is_empty()
            && let (Some(a), Some(b)) = (one.chunks.peek(), other.chunks.peek())
            && Arc::ptr_eq(a, b)
        {
            one.chunks.next();
            other.chunks.next();
        }
    }

    fn peek(&mut self) -> Option<&'m E> {
        if self.rest.is_empty() {
            self.rest = self.chunks.next()?;
        }
        self.rest.first()
    }

    fn next(&mut self) -> Option<&'m E> {
        let next = self.peek()?;
        self.rest = &self.rest[1..];
        Some(next)
    }
}
