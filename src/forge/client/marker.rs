//! The line that identifies berth's comment.

use std::fmt::Write as _;

/// A hidden first line of a comment. Its key distinguishes the comments of several fleets in one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// Makes a marker for a key, such as a fleet's path. The key may be any text, even an empty one.
    pub fn new(key: &str) -> Marker {
        let mut line = "<!-- berth review".to_owned();
        if !key.is_empty() {
            line.push(' ');
        }
        for byte in key.bytes() {
            // Escapes characters that could end the HTML comment or its line.
            if byte.is_ascii_alphanumeric() || b"-._/".contains(&byte) {
                line.push(char::from(byte));
            } else {
                let _ = write!(line, "%{byte:02X}");
            }
        }
        Marker(line + " -->")
    }

    /// Puts the marker's line before a text.
    pub(super) fn mark(&self, markdown: &str) -> String {
        format!("{}\n{}", self.0, markdown)
    }

    /// Reports whether a comment begins with the marker's line.
    pub(super) fn is_in(&self, body: &str) -> bool {
        body.lines().next().is_some_and(|line| line.trim_end() == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_comment_that_begins_with_the_same_key_is_found() {
        let marker = Marker::new("fleets/north");
        assert_eq!(marker.mark("text"), "<!-- berth review fleets/north -->\ntext");
        assert!(marker.is_in("<!-- berth review fleets/north -->\r\ntext"));
        assert!(!marker.is_in("> <!-- berth review fleets/north -->\ntext"));
        assert!(!marker.is_in("Look:\n<!-- berth review fleets/north -->"));
        assert!(!Marker::new("fleets/nort").is_in(&marker.mark("")));
        assert!(!Marker::new("").is_in(&marker.mark("")));
        assert!(Marker::new("").is_in("<!-- berth review -->"));
    }

    #[test]
    fn no_key_ends_the_line_or_the_comment_in_it() {
        let marker = Marker::new("a--> **b**\n<c>");
        assert_eq!(marker.0, "<!-- berth review a--%3E%20%2A%2Ab%2A%2A%0A%3Cc%3E -->");
    }
}
