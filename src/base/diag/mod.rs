//! Diagnostics of a fleet as data: the place, the fault and the remedy.
//!
//! Parsers and pure steps never print and never stop at the first fault; they add a [`Diagnostic`] and
//! continue. Commands print the whole list, sorted by place.

mod harmless;
mod suggest;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use harmless::{harmless_line, harmless_lines, is_harmless, is_visible};
pub use suggest::{did_you_mean, nearest, nearest_within};

/// A place in a file of the fleet repository. Lines and columns count from 1; 0 means the file as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pos {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl Pos {
    pub fn new(file: impl Into<Arc<str>>, line: u32, column: u32) -> Pos {
        Pos { file: file.into(), line, column }
    }

    /// Returns the place of a whole file, for faults without a line.
    pub fn file(file: impl Into<Arc<str>>) -> Pos {
        Pos::new(file, 0, 0)
    }
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&harmless_line(&self.file))?;
        if self.line > 0 { write!(f, ":{}:{}", self.line, self.column) } else { Ok(()) }
    }
}

/// The severity of a diagnostic. Only errors change the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

impl Severity {
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A fault, warning or note. The message is a lower-case fragment without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub at: Option<Pos>,
    pub severity: Severity,
    pub message: String,
    pub hint: Option<String>,
}

impl Diagnostic {
    pub fn new(severity: Severity, at: Pos, message: impl Into<String>) -> Diagnostic {
        Diagnostic { at: Some(at), severity, message: message.into(), hint: None }
    }

    pub fn error(at: Pos, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, at, message)
    }

    pub fn warning(at: Pos, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, at, message)
    }

    pub fn note(message: impl Into<String>) -> Diagnostic {
        Diagnostic { at: None, severity: Severity::Note, message: message.into(), hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    /// Adds an optional hint.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Diagnostic {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        write!(f, "{}: {}", self.severity.word(), harmless_line(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {}", harmless_lines(hint)),
            None => Ok(()),
        }
    }
}

/// The maximal number of diagnostics of each severity to show. More would not help.
pub const MOST_SHOWN: usize = 100;

/// The list of diagnostics of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    pub fn extend(&mut self, others: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(others);
    }

    pub fn retain(&mut self, keep: impl FnMut(&Diagnostic) -> bool) {
        self.list.retain(keep);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter().filter(|d| d.severity == Severity::Error)
    }

    /// Returns the first diagnostics of each severity, for people.
    pub fn shown(&self) -> impl Iterator<Item = &Diagnostic> {
        let mut shown = [0; 3];
        self.list.iter().filter(move |one| {
            let count = &mut shown[one.severity as usize];
            *count += 1;
            *count <= MOST_SHOWN
        })
    }

    /// Returns the numbers of hidden diagnostics, by severity.
    pub fn not_shown(&self) -> impl Iterator<Item = (Severity, usize)> {
        let all = [Severity::Error, Severity::Warning, Severity::Note].into_iter();
        let count = |severity| self.list.iter().filter(|one| one.severity == severity).count();
        let more = move |severity| Some((severity, count(severity).checked_sub(MOST_SHOWN)?));
        all.filter_map(more).filter(|(_, more)| *more > 0)
    }

    /// Sorts by place, then severity, then message, and drops exact repeats.
    pub fn sort(&mut self) {
        self.list.sort_by(|a, b| {
            let no_place = |d: &Diagnostic| d.at.is_none();
            (no_place(a), &a.at, a.severity, &a.message).cmp(&(no_place(b), &b.at, b.severity, &b.message))
        });
        self.list.dedup();
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
