//! The questions that a reader asks of a document: its known fields, and their forms.
//!
//! Reading a field is what makes it known. To find out the fields of a kind, let its reader read a sample and
//! collect the questions: they cannot differ from what the reader accepts.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A question about one path. `spec.taints[].key` is a field of a list's items, `spec.clusters.*` a field
/// whose name is data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The field is known.
    Known,
    /// The field may be null.
    Nullable,
    /// The field is required.
    Required,
    /// The mapping may only have known fields.
    Closed {
        /// Its known fields must not be null.
        refuses_nulls: bool,
    },
    /// The value must have this form.
    Is(Form),
}

/// The form that a value must have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    Mapping,
    List,
    Text,
    /// Text that must not be empty.
    SomeText,
    Bool,
    /// A whole number between two bounds.
    Whole(i64, i64),
    /// A count, or a share such as `25%`.
    CountOrShare,
    Word(Vec<&'static str>),
}

/// The questions of a reader, each with its path.
#[derive(Debug, Default)]
pub struct Questions(Mutex<BTreeSet<(String, Question)>>);

impl Questions {
    pub(super) fn note(&self, path: &str, question: Question) {
        // Samples have one item in each list.
        self.all().insert((path.replace("[0]", "[]"), question));
    }

    /// Returns the questions so far.
    pub fn take(&self) -> BTreeSet<(String, Question)> {
        std::mem::take(&mut *self.all())
    }

    fn all(&self) -> MutexGuard<'_, BTreeSet<(String, Question)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
