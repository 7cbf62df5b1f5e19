//! The entries of a map, one after the other.

use std::iter::FlatMap;
use std::slice;
use std::sync::Arc;
use std::vec;

use super::{Chunk, Entry, EntryMap};

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

impl<'m, E: Entry> Iterator for Iter<'m, E> {
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

impl<E: Entry> DoubleEndedIterator for Iter<'_, E> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next_back()?;
        self.left -= 1;
        Some((entry.key(), entry.value()))
    }
}

impl<E: Entry> ExactSizeIterator for Iter<'_, E> {}

impl<E> Clone for Iter<'_, E> {
    fn clone(&self) -> Self {
        Iter { entries: self.entries.clone(), left: self.left }
    }
}

impl<'m, E: Entry> IntoIterator for &'m EntryMap<E> {
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
