//! Bytes and counts as text: base64, hexadecimal digits, counted nouns and shortened lists; also texts and
//! other values that are stored only once.

pub mod base64;
mod pattern;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::sync::Arc;

pub use pattern::fits;

/// Writes two lower-case hexadecimal digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns a counted noun: `1 error`, `2 errors`.
pub fn counted(count: usize, noun: &str) -> String {
    match noun.strip_suffix('y').filter(|rest| !rest.ends_with(['a', 'e', 'o', 'u'])) {
        _ if count == 1 => format!("{count} {noun}"),
        Some(rest) => format!("{count} {rest}ies"),
        None => format!("{count} {noun}s"),
    }
}

/// Lists at most `most` names: `a, b and 3 more`.
pub fn some_of<T: Display>(names: impl IntoIterator<Item = T>, most: usize) -> String {
    let (mut text, mut left) = (String::new(), 0_usize);
    for (index, name) in names.into_iter().enumerate() {
        if index >= most {
            left += 1;
            continue;
        }
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{name}");
    }
    if left > 0 {
        let _ = write!(text, " and {left} more");
    }
    text
}

/// Lists names like [`some_of`], each in backquotes.
pub fn some_quoted<T: Display>(names: impl IntoIterator<Item = T>, most: usize) -> String {
    some_of(names.into_iter().map(|name| format!("`{name}`")), most)
}

/// Cuts a text after this many bytes, and marks the cut.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    format!("{}…", text.get(..end).unwrap_or_default())
}

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
    fn lists_end_after_the_most_names() {
        assert_eq!(some_of(["a", "b"], 2), "a, b");
        assert_eq!(some_of(["a", "b", "c", "d"], 2), "a, b and 2 more");
        assert_eq!(some_quoted(["a", "b"], 1), "`a` and 1 more");
        assert_eq!(some_of([""; 0], 2), "");
    }

    #[test]
    fn a_cut_is_between_letters() {
        assert_eq!(cut("öl", 3), "öl");
        assert_eq!(cut("öl", 2), "ö…");
        assert_eq!(cut("öl", 1), "…");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "error")), ["0 errors", "1 error", "2 errors"]);
    }

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hex(&[0, 9, 0xab, 0xff]), "0009abff");
    }

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
