//! Texts and other values of which each is kept once.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The values so far, which are cheap to clone.
#[derive(Debug)]
pub struct SharedValues<T>(BTreeSet<T>);

pub type SharedTexts = SharedValues<Arc<str>>;

impl<T> Default for SharedValues<T> {
    fn default() -> SharedValues<T> {
        SharedValues(BTreeSet::new())
    }
}

impl SharedTexts {
    /// Returns the one copy of a text.
    pub fn of(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.0.insert(text.clone());
        text
    }
}

impl<T: Ord> SharedValues<Arc<T>> {
    /// Returns the one copy of a value.
    pub fn of(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.0.get(&value) {
            return known.clone();
        }
        let value = Arc::new(value);
        self.0.insert(value.clone());
        value
    }
}

impl<T: Ord + Clone> SharedValues<T> {
    /// Puts the one copy in place of another.
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
