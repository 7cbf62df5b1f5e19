//! Texts and other values that are stored only once.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The stored values, which are cheap to clone.
#[derive(Debug)]
pub struct SharedValues<T>(BTreeSet<T>);

pub type SharedTexts = SharedValues<Arc<str>>;

impl<T> Default for SharedValues<T> {
    fn default() -> SharedValues<T> {
        SharedValues(BTreeSet::new())
    }
}

impl<T: Ord + ?Sized> SharedValues<Arc<T>> {
    /// Returns the stored copy of a text or another value.
    pub fn of(&mut self, value: impl Borrow<T> + Into<Arc<T>>) -> Arc<T> {
        if let Some(known) = self.0.get(value.borrow()) {
            return known.clone();
        }
        let value: Arc<T> = value.into();
        self.0.insert(value.clone());
        value
    }
}

impl<T: Ord + Clone> SharedValues<T> {
    /// Replaces a value by its stored copy.
    pub fn share(&mut self, value: &mut T) {
        match self.0.get(value) {
            Some(known) => value.clone_from(known),
            None => drop(self.0.insert(value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_become_one() {
        let mut texts = SharedTexts::default();
        let first = texts.of("one");
        let mut other: Arc<str> = "one".into();
        assert!(!Arc::ptr_eq(&first, &other));
        texts.share(&mut other);
        assert!(Arc::ptr_eq(&first, &other) && Arc::ptr_eq(&first, &texts.of("one")));
        texts.share(&mut "two".into());
        assert_eq!(*texts.of("two"), *"two");
    }

    #[test]
    fn equal_values_become_one() {
        let mut values: SharedValues<Arc<(u8, u8)>> = SharedValues::default();
        let first = values.of((1, 2));
        assert!(Arc::ptr_eq(&first, &values.of((1, 2))));
        assert_eq!(*values.of((1, 3)), (1, 3));
    }
}
