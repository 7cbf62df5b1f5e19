//! A value that is cheap to clone: clones share one allocation until one of them changes.
//!
//! Passes hand states on, and most parts stay equal. Comparing two values that share their allocation is
//! free.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A shared value, which reads and changes like the value itself.
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Reports whether both are the same allocation, and so equal without a comparison.
    pub fn is_same(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Compares by allocation only, without reading the value.
#[derive(Debug)]
pub struct ByAllocation<'s, T>(pub &'s Shared<T>);

impl<T> Ord for ByAllocation<'_, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        Arc::as_ptr(&self.0.0).cmp(&Arc::as_ptr(&other.0.0))
    }
}

impl<T> PartialOrd for ByAllocation<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for ByAllocation<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(other.0)
    }
}

impl<T> Eq for ByAllocation<'_, T> {}

/// Returns each value that occurs several times.
pub fn shared_by_several<'s, T>(all: impl Iterator<Item = &'s Shared<T>>) -> Vec<&'s Shared<T>> {
    let mut counts: BTreeMap<ByAllocation<'s, T>, usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(ByAllocation(one)).or_default() += 1);
    let several = counts.into_iter().filter(|(_, count)| *count > 1);
    several.map(|(ByAllocation(one), _)| one).collect()
}

impl<T: Default> Shared<T> {
    pub fn new() -> Shared<T> {
        Shared::default()
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(self.0.clone())
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Shared<T> {
        T::default().into()
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.is_same(other) || **self == **other
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: PartialOrd> PartialOrd for Shared<T> {
    fn partial_cmp(&self, other: &Shared<T>) -> Option<Ordering> {
        (**self).partial_cmp(other)
    }
}

impl<T: Ord> Ord for Shared<T> {
    fn cmp(&self, other: &Shared<T>) -> Ordering {
        if self.is_same(other) { Ordering::Equal } else { (**self).cmp(other) }
    }
}

impl<T> From<T> for Shared<T> {
    fn from(inner: T) -> Shared<T> {
        Shared(inner.into())
    }
}

impl<T: FromIterator<I>, I> FromIterator<I> for Shared<T> {
    fn from_iter<Items: IntoIterator<Item = I>>(items: Items) -> Shared<T> {
        Shared::from(items.into_iter().collect::<T>())
    }
}

impl<'a, T> IntoIterator for &'a Shared<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (**self).into_iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Shared<T>
where
    &'a mut T: IntoIterator,
{
    type Item = <&'a mut T as IntoIterator>::Item;
    type IntoIter = <&'a mut T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (**self).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_shares_until_it_is_changed() {
        let first: Shared<Vec<u8>> = [1, 2].into_iter().collect();
        let mut second = first.clone();
        assert!(first.is_same(&second));
        second.push(3);
        assert_eq!((&*first, &*second), (&vec![1, 2], &vec![1, 2, 3]));
        second.pop();
        assert!(first == second && !first.is_same(&second));
    }
}
