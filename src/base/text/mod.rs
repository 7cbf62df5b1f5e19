//! Bytes and counts as text: base64, hexadecimal digits, counted nouns and shortened lists.

use std::fmt::{Display, Write as _};

pub mod base64;
mod pattern;
pub mod shared_values;

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
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
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
}
