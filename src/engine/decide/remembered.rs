//! Results that all placements share, computed once for each key, by the first processor that needs it.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

pub(super) struct Remembered<K, T>(RwLock<BTreeMap<K, T>>);

impl<K, T> Default for Remembered<K, T> {
    fn default() -> Remembered<K, T> {
        Remembered(RwLock::default())
    }
}

impl<K: Ord, T: Clone> Remembered<K, T> {
    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Stores a result, and returns the stored one: with equal keys the first wins.
    pub(super) fn keep(&self, key: K, made: T) -> T {
        self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(made).clone()
    }

    pub(super) fn get_or_make<Q>(&self, key: &Q, make: impl FnOnce() -> T) -> T
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + Ord + ?Sized,
    {
        self.get(key).unwrap_or_else(|| self.keep(key.to_owned(), make()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}
