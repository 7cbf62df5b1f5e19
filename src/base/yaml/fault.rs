//! Faults of a file.

use std::ops::Range;

use super::node::Mark;
use crate::diag::Severity;

/// A fault in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line 0 means the whole file.
    pub at: Mark,
    pub severity: Severity,
    pub message: String,
    pub hint: Option<String>,
    /// The text of the document that this fault makes unreadable.
    pub unreadable: Option<Range<usize>>,
}

pub(super) fn too_many_values(at: Mark) -> Fault {
    let hint = "split the file, or repeat less with aliases";
    error(at, "the file holds more values than berth reads", Some(hint))
}

pub(super) fn too_many_repeats(at: Mark) -> Fault {
    let hint =
        "write the values out: berth limits what aliases repeat, in each file and in all files together";
    error(at, "aliases repeat more values than berth reads", Some(hint))
}

pub(super) fn error(at: Mark, message: &str, hint: Option<&str>) -> Fault {
    Fault {
        at,
        severity: Severity::Error,
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
        unreadable: None,
    }
}
