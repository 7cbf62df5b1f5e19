//! Texts of which each is kept once.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The texts so far.
#[derive(Debug, Default)]
pub struct SharedTexts(BTreeSet<Arc<str>>);

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

    /// Puts the one copy in place of another.
    pub fn share(&mut self, text: &mut Arc<str>) {
        match self.0.get(text) {
            Some(known) => text.clone_from(known),
            None => drop(self.0.insert(text.clone())),
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
}
