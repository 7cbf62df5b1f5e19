//! Diagnostics of a fleet as data: the place, the fault and the remedy.
//!
//! Parsers and pure steps never print and never stop at the first fault; they add a [`Diagnostic`] and
//! continue. Commands print the whole list, sorted by place.
//!
//! Escapes untrusted text, so that it cannot forge a line of output or control a terminal.
//!
//! "Did you mean": the known name nearest to a misspelt one.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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

/// Reports whether printing a character only shows it: no control character, no line break, no change of the
/// writing direction.
pub fn is_harmless(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}') && !turns
}

/// Reports whether a character is visible in a name. Some characters take no space on the screen.
pub fn is_visible(c: char) -> bool {
    let hidden = matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    is_harmless(c) && !hidden
}

/// Escapes a text for a single line, including its line breaks.
pub fn harmless_line(text: &str) -> Cow<'_, str> {
    escape(text, is_harmless)
}

/// Escapes a text that may have several lines.
pub fn harmless_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_harmless(c) || c == '\n')
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if stays(c) { shown.push(c) } else { shown.extend(c.escape_default()) }
    }
    Cow::Owned(shown)
}

/// Returns the candidate nearest to `word`, if it is near enough to be a typing error.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(word, candidates, (word.chars().count() / 3).clamp(1, 3))
}

/// Returns the candidate nearest to `word`, if at most `most` edits separate them.
pub fn nearest_within<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let rank = |candidate: &'a str| {
        let lower = candidate.to_lowercase();
        // Of equally near candidates, the one with the longest common beginning: people cut words short.
        let alike = word.chars().zip(lower.chars()).take_while(|(a, b)| a == b).count();
        (distance(&word, &lower), Reverse(alike), candidate)
    };
    let ranked = candidates.into_iter().map(rank).filter(|(distance, ..)| *distance <= limit);
    ranked.min().map(|(.., candidate)| candidate)
}

/// Returns [`nearest`] as a sentence for a hint.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|name| format!("did you mean `{name}`?"))
}

/// Returns the number of edits (insert, remove, change, swap of neighbours) from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_or_forges_a_line_is_spelt_out() {
        assert_eq!(harmless_line("a\u{1b}[2Jb\nc\u{202e}"), "a\\u{1b}[2Jb\\nc\\u{202e}");
        assert_eq!(harmless_lines("a\nb\u{9b}"), "a\nb\\u{9b}");
        assert_eq!(harmless_line("größe ✓"), "größe ✓");
    }

    #[test]
    fn a_missing_letter_is_recognised() {
        assert_eq!(nearest("numberOfCluster", ["numberOfClusters", "clusterSets"]), Some("numberOfClusters"));
    }

    #[test]
    fn case_and_swapped_letters_count_little() {
        assert_eq!(nearest("clusterselector", ["clusters", "clusterSelector"]), Some("clusterSelector"));
        assert_eq!(nearest("lables", ["labels", "tables-of-contents"]), Some("labels"));
    }

    #[test]
    fn a_word_that_was_cut_short_is_the_longer_one() {
        let known = ["Balance", "ResourceAllocatableCPU", "ResourceAllocatableMemory"];
        assert_eq!(nearest("ResourceAllocatableMem", known), Some("ResourceAllocatableMemory"));
    }

    #[test]
    fn a_different_word_gets_no_suggestion() {
        assert_eq!(nearest("replicas", ["template", "placement"]), None);
    }
}
