//! Paths of values in a document: keys and indexes from the root. Follows a path in an outline, and finds
//! the text position of a value, a line and a column.

use std::fmt::Write as _;

use super::EditError;
use super::verify::Original;
use crate::yaml::outline::{Outline, Shape};

/// A value on a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'o> {
    pub(super) value: &'o Outline,
    /// The position after the preceding colon or dash.
    pub(super) from: usize,
    /// The column of its key or dash; nested lines are indented from there. `None` for the root.
    pub(super) column: Option<usize>,
    /// Set for an item of a list.
    pub(super) in_list: bool,
    /// Set for a value between brackets.
    pub(super) in_flow: bool,
}

impl<'a> Original<'a> {
    pub(super) fn root(&self) -> Place<'_> {
        let start = self.document().bytes.start;
        let marker = self.text.get(start..).is_some_and(|text| text.starts_with("---"));
        let from = if marker { start + 3 } else { start };
        Place { value: &self.outline, from, column: None, in_list: false, in_flow: false }
    }

    /// Returns the deepest existing value on a path, and the number of steps to it.
    pub(super) fn descend(&self, path: &[Step]) -> Result<(Place<'_>, usize), EditError> {
        let mut place = self.root();
        for (depth, step) in path.iter().enumerate() {
            match self.below(place, step)? {
                Some(below) => place = below,
                None => return Ok((place, depth)),
            }
        }
        Ok((place, path.len()))
    }

    fn below<'s>(&'s self, place: Place<'s>, step: &Step) -> Result<Option<Place<'s>>, EditError> {
        let flow = |inner: &Option<_>| place.in_flow || inner.is_some();
        match (&place.value.shape, step) {
            (Shape::Map { entries, flow: inner }, Step::Key(key)) => {
                let Some(entry) = entries.iter().find(|entry| entry.key == *key) else { return Ok(None) };
                Ok(Some(Place {
                    value: &entry.value,
                    from: entry.colon,
                    column: Some(self.column(entry.key_bytes.start)),
                    in_list: false,
                    in_flow: flow(inner),
                }))
            }
            (Shape::List { items, flow: inner }, Step::Index(index)) => {
                let Some(item) = items.get(*index) else { return Ok(None) };
                let dash = match inner {
                    Some(_) => item.bytes.start,
                    None => self.dash(place, items, *index)?,
                };
                let from = if inner.is_some() { dash } else { dash + 1 };
                Ok(Some(Place {
                    value: item,
                    from,
                    column: Some(self.column(dash)),
                    in_list: true,
                    in_flow: flow(inner),
                }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the position of an item's dash: only blanks and comments separate it from the item before.
    pub(super) fn dash(&self, list: Place<'_>, items: &[Outline], index: usize) -> Result<usize, EditError> {
        let from = match index.checked_sub(1).and_then(|before| items.get(before)) {
            Some(before) => before.bytes.end,
            None => list.from,
        };
        let refused = EditError::not_in_place;
        let mut at = from;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at).ok_or_else(refused)? {
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                b'#' => at = self.line_end(at),
                b'-' => return Ok(at),
                // The anchor or tag of the list itself.
                b'&' | b'!' => {
                    let rest = self.text.get(at..).unwrap_or_default();
                    at += rest.find(char::is_whitespace).ok_or_else(refused)?;
                }
                _ => return Err(refused()),
            }
        }
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text.get(..at).and_then(|before| before.rfind(['\n', '\r'])).map_or(self.bom(), |end| end + 1)
    }

    fn bom(&self) -> usize {
        if self.text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 }
    }

    /// Returns the end of the line, before its break.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.find(['\n', '\r']).unwrap_or(rest.len())
    }

    /// Returns the start of the next line, or the end of the text.
    pub(super) fn next_line(&self, at: usize) -> usize {
        let end = self.line_end(at);
        let rest = self.text.get(end..).unwrap_or_default();
        end + if rest.starts_with("\r\n") { 2 } else { rest.len().min(1) }
    }

    /// Returns the number of characters before this index on its line.
    pub(super) fn column(&self, at: usize) -> usize {
        self.text.get(self.line_start(at)..at).unwrap_or_default().chars().count()
    }

    /// Reports whether only blanks precede this index on its line.
    pub(super) fn begins_its_line(&self, at: usize) -> bool {
        self.text.get(self.line_start(at)..at).unwrap_or_default().trim().is_empty()
    }

    /// Returns the line break that this file uses.
    pub(super) fn line_break(&self) -> &'static str {
        match (self.text.contains("\r\n"), self.text.contains('\n'), self.text.contains('\r')) {
            (true, ..) => "\r\n",
            (_, false, true) => "\r",
            _ => "\n",
        }
    }
}

/// A single step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Step {
        Step::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Step {
        Step::Index(index)
    }
}

/// Returns a path of keys only.
pub fn keys<const N: usize>(keys: [&str; N]) -> Vec<Step> {
    keys.map(Step::from).to_vec()
}

/// Writes a path for messages: `spec.taints[0].key`, `metadata.annotations["a.b/c"]`.
pub fn show(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        let _ = match step {
            Step::Index(index) => write!(shown, "[{index}]"),
            Step::Key(key) if key.contains(['.', '/', '[', ' ']) => write!(shown, "[\"{key}\"]"),
            Step::Key(key) if shown.is_empty() => write!(shown, "{key}"),
            Step::Key(key) => write!(shown, ".{key}"),
        };
    }
    shown
}
