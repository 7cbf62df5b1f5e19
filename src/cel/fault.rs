//! The fault of an expression, with the position of its character.

use std::fmt;

/// A fault in a text, or a fault that ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The character of the text, from 1.
    pub at: usize,
    pub message: String,
    pub hint: Option<String>,
}

impl Fault {
    /// `index` counts characters from 0.
    pub(super) fn new(index: usize, message: impl Into<String>) -> Fault {
        Fault { at: index + 1, message: message.into(), hint: None }
    }

    #[must_use]
    pub(super) fn maybe_hint(mut self, hint: Option<String>) -> Fault {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at, self.message)
    }
}
