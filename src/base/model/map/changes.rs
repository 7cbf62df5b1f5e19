//! Compares two versions of a map, skipping their shared parts.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::slice;
use std::sync::Arc;

use super::{Chunk, Entry, EntryMap};

/// An entry that differs between two maps.
#[derive(Debug, PartialEq, Eq)]
pub struct Change<'m, K, V> {
    pub key: &'m K,
    pub before: Option<&'m V>,
    pub after: Option<&'m V>,
}

impl<E: Entry<Key: Ord, Value: PartialEq>> EntryMap<E> {
    /// Returns the entries that differ in a later map, by key.
    pub fn changes<'m>(
        &'m self,
        after: &'m EntryMap<E>,
    ) -> impl Iterator<Item = Change<'m, E::Key, E::Value>> {
        self.changes_by(after, E::Value::eq)
    }
}

impl<E: Entry<Key: Ord>> EntryMap<E> {
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
