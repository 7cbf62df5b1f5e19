//! Faults of a file, and of a mapping's keys: repeated ones, and traces of text that was pasted from
//! elsewhere.

use std::ops::Range;

use super::node::{Entry, Mark};
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

/// Returns the faults of repeated keys, at their second places.
pub(super) fn duplicates(entries: &[Entry]) -> Vec<Fault> {
    let mut order: Vec<&Entry> = entries.iter().filter(|entry| odd_blank(&entry.key).is_none()).collect();
    order.sort_by(|a, b| (&a.key, a.at).cmp(&(&b.key, b.at)));
    let repeats = order.windows(2).filter(|pair| pair[0].key == pair[1].key);
    let lost = entries.iter().find(|entry| entry.value.is_null());
    let hint = match lost {
        Some(Entry { key, at, .. }) => format!(
            "indent the lines that belong below `{key}`, if their indentation is lost: nothing is below line {}; \
             or remove one of the two",
            at.line
        ),
        None => "remove one of the two".to_owned(),
    };
    let fault = |pair: &[&Entry]| {
        let message = format!("the key `{}` is given twice, first on line {}", pair[1].key, pair[0].at.line);
        error(pair[1].at, &message, Some(&hint))
    };
    // If one line has lost its indentation, all have: one fault is enough.
    repeats.map(fault).take(if lost.is_some() { 1 } else { usize::MAX }).collect()
}

/// Returns the fault of a key that begins or ends with a blank that YAML treats as a letter.
pub(super) fn blank_in_key(key: &str, at: Mark) -> Option<Fault> {
    let blank = odd_blank(key)?;
    if key.starts_with(blank) {
        return Some(odd_indentation(blank, at));
    }
    let message = format!("the key `{}` ends with {}", key.trim_end_matches(is_odd_blank), name(blank));
    Some(error(at, &message, Some("remove it: it looks like a space but is another character")))
}

/// Returns the fault of such a blank in the indentation at the end of a text, on its last line or the line
/// before.
pub(super) fn blank_in_indentation(text: &str, last_line: u32) -> Option<Fault> {
    text.lines().rev().take(2).zip([last_line, last_line.saturating_sub(1)]).find_map(|(content, line)| {
        let indentation = content.chars().take_while(|c| *c == ' ' || is_odd_blank(*c));
        let (column, blank) = (1_u32..).zip(indentation).find(|(_, c)| is_odd_blank(*c))?;
        Some(odd_indentation(blank, Mark { line, column }))
    })
}

fn odd_indentation(blank: char, at: Mark) -> Fault {
    let message = format!("the indentation has {}", name(blank));
    error(
        at,
        &message,
        Some("write spaces in its place, here and below: it looks like a space but is another character"),
    )
}

/// Returns the first blank at an end of a key that only looks like a space.
fn odd_blank(key: &str) -> Option<char> {
    let ends = [key.chars().next(), key.chars().next_back()];
    ends.into_iter().flatten().find(|c| is_odd_blank(*c))
}

/// Reports whether a character looks like a blank but is a letter in YAML.
fn is_odd_blank(c: char) -> bool {
    let is_unseen = matches!(c, '\u{200B}' | '\u{2060}' | '\u{FEFF}');
    !c.is_ascii() && (c.is_whitespace() || is_unseen)
}

fn name(blank: char) -> String {
    let code = u32::from(blank);
    match blank {
        '\u{A0}' => format!("a no-break space (U+{code:04X})"),
        _ => format!("the blank U+{code:04X}"),
    }
}
