//! A collection that is cheap to clone: clones share one allocation until one of them is changed.
//!
//! States are carried from run to run, and most of each stays as it was. Comparing two that share
//! their allocation costs nothing.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Reads and changes like the collection in it.
#[derive(Clone, Debug, Default, PartialOrd, Ord)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Reports whether both are the same allocation, and so equal without a comparison.
    pub fn is_same(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Default> Shared<T> {
    pub fn new() -> Shared<T> {
        Shared::default()
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
        self.is_same(other) || *self.0 == *other.0
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T> From<T> for Shared<T> {
    fn from(inner: T) -> Shared<T> {
        Shared(Arc::new(inner))
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
        self.0.into_iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Shared<T>
where
    &'a mut T: IntoIterator,
{
    type Item = <&'a mut T as IntoIterator>::Item;
    type IntoIter = <&'a mut T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        Arc::make_mut(&mut self.0).into_iter()
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
