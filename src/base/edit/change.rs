//! Setting and inserting: the bytes to replace, and their replacement.
//!
//! Between brackets a value is written in brackets, as YAML, or as JSON in a document that is JSON, so
//! that other tools can still read it as JSON. Elsewhere it is written in its own lines, indented like its
//! neighbours.

use serde_json::{Map, Value as Json};

use super::EditError;
use super::place::{Place, Step, show};
use super::verify::{Cut, Original};
use crate::yaml::outline::Shape;
use crate::yaml::{emit, emit_flow};

pub(super) fn set(source: &Original<'_>, path: &[Step], value: &Json) -> Result<Cut, EditError> {
    let (place, depth) = source.descend(path)?;
    match path.get(depth) {
        None => Ok(replace(source, place, value)),
        Some(step) => add(source, place, step, &nested(&path[depth + 1..], value)),
    }
}

pub(super) fn insert(source: &Original<'_>, path: &[Step], value: &Json) -> Result<Cut, EditError> {
    let (_, depth) = source.descend(path)?;
    match path.split_last() {
        Some((Step::Index(index), above)) if depth == path.len() => {
            let (list, _) = source.descend(above)?;
            before_item(source, list, *index, value)
        }
        _ => set(source, path, value),
    }
}

/// Wraps a value in the mappings of a path.
fn nested(path: &[Step], value: &Json) -> Json {
    path.iter().rev().fold(value.clone(), |inner, step| match step {
        Step::Key(key) => Json::Object(Map::from_iter([(key.clone(), inner)])),
        Step::Index(_) => Json::Array(vec![inner]),
    })
}

/// Replaces the current value by another one.
fn replace(source: &Original<'_>, place: Place<'_>, value: &Json) -> Cut {
    let there = &place.value.bytes;
    if place.in_flow {
        let blank = if there.is_empty() && place.from == there.start { " " } else { "" };
        let start = there.start.max(place.from);
        return Cut {
            bytes: start..there.end.max(start),
            with: format!("{blank}{}", source.in_brackets(value)),
        };
    }
    let Some(column) = place.column else {
        let body = emit(value).trim_end().replace('\n', source.line_break());
        return Cut { bytes: there.clone(), with: body };
    };
    let written = below(place.in_list, value, column, source.line_break());
    let one_line = !written.contains('\n') && !written.contains('\r');
    let on_its_line =
        matches!(place.value.shape, Shape::Scalar | Shape::Alias) || is_flow(&place.value.shape);
    if one_line && on_its_line && !there.is_empty() {
        return Cut { bytes: there.clone(), with: written.trim_start().to_owned() };
    }
    // A comment on the key's line stays; a comment inside the old value is removed with it.
    let end = there.end.max(place.from);
    let comment_in = |bytes: std::ops::Range<usize>| {
        source.text.get(bytes).map(str::trim).filter(|text| text.starts_with('#'))
    };
    let behind = comment_in(end..source.line_end(end));
    let end = if behind.is_some() { source.line_end(end) } else { end };
    let comment = comment_in(place.from..source.line_end(place.from)).or(behind.filter(|_| on_its_line));
    let Some(comment) = comment else { return Cut { bytes: place.from..end, with: written } };
    let (first, rest) = written.split_at(written.find(['\n', '\r']).unwrap_or(written.len()));
    let end = end.max(source.line_end(place.from));
    Cut { bytes: place.from..end, with: format!("{first} {comment}{rest}") }
}

fn is_flow(shape: &Shape) -> bool {
    matches!(shape, Shape::List { flow: Some(_), .. } | Shape::Map { flow: Some(_), .. })
}

/// Returns the text after a key's colon or an item's dash.
fn below(in_list: bool, value: &Json, column: usize, line_break: &str) -> String {
    let (text, prefix) = if in_list {
        (emit(&Json::Array(vec![value.clone()])), 1)
    } else {
        (emit(&Json::Object(Map::from_iter([("k".to_owned(), value.clone())]))), 2)
    };
    let body = indented(&text, column, line_break);
    body.get(prefix..).unwrap_or_default().to_owned()
}

/// Writes lines one below the other; the first begins at the current position.
fn indented(text: &str, column: usize, line_break: &str) -> String {
    let padding = " ".repeat(column);
    let mut lines = text.trim_end_matches('\n').split('\n');
    let mut body = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        body.push_str(line_break);
        if !line.is_empty() {
            body.push_str(&padding);
            body.push_str(line);
        }
    }
    body
}

/// Adds a new key or item after the current ones.
fn add(source: &Original<'_>, place: Place<'_>, step: &Step, value: &Json) -> Result<Cut, EditError> {
    let refused = EditError::not_in_place;
    let one = |key: &String| Json::Object(Map::from_iter([(key.clone(), value.clone())]));
    match (&place.value.shape, step) {
        (Shape::Map { entries, flow: Some(flow) }, Step::Key(key)) => {
            let text = source.in_brackets(&one(key));
            let text =
                text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().to_owned();
            Ok(match entries.last() {
                Some(last) => {
                    at(last.end(), format!("{}{text}", source.next_in_brackets(last.key_bytes.start)))
                }
                None => at(flow.inside, text),
            })
        }
        (Shape::Map { entries, flow: None }, Step::Key(key)) => {
            let (first, last) = entries.first().zip(entries.last()).ok_or_else(refused)?;
            let column = source.column(first.key_bytes.start);
            Ok(line_after(source, last.end(), column, &emit(&one(key))))
        }
        (Shape::List { items, flow: Some(flow) }, Step::Index(_)) => Ok(match items.last() {
            Some(last) => {
                let separator = source.next_in_brackets(last.bytes.start);
                at(last.bytes.end, format!("{separator}{}", source.in_brackets(value)))
            }
            None => at(flow.inside, source.in_brackets(value)),
        }),
        (Shape::List { items, flow: None }, Step::Index(_)) => {
            let last = items.last().ok_or_else(refused)?;
            let dash = source.dash(place, items, items.len() - 1)?;
            let text = emit(&Json::Array(vec![value.clone()]));
            Ok(line_after(source, last.bytes.end.max(dash + 1), source.column(dash), &text))
        }
        // The current value is empty or null.
        (Shape::Scalar, Step::Key(key)) => Ok(replace(source, place, &one(key))),
        (Shape::Scalar, Step::Index(_)) => Ok(replace(source, place, &Json::Array(vec![value.clone()]))),
        _ => Err(refused()),
    }
}

fn before_item(source: &Original<'_>, list: Place<'_>, index: usize, value: &Json) -> Result<Cut, EditError> {
    let Shape::List { items, flow } = &list.value.shape else {
        return Err(EditError::not_in_place());
    };
    let Some(item) = items.get(index) else {
        return Err(EditError::Missing(show(&[Step::Index(index)])));
    };
    if flow.is_some() {
        return Ok(at(item.bytes.start, format!("{}, ", source.in_brackets(value))));
    }
    let dash = source.dash(list, items, index)?;
    let column = source.column(dash);
    let text = indented(&emit(&Json::Array(vec![value.clone()])), column, source.line_break());
    Ok(at(dash, format!("{text}{}{}", source.line_break(), " ".repeat(column))))
}

fn at(place: usize, with: String) -> Cut {
    Cut { bytes: place..place, with }
}

/// Adds new lines after the line on which a value ends.
fn line_after(source: &Original<'_>, end: usize, column: usize, text: &str) -> Cut {
    let ended = source.text.get(..end).is_some_and(|before| before.ends_with(['\n', '\r']));
    let line_break = source.line_break();
    let body = format!("{}{}", " ".repeat(column), indented(text, column, line_break));
    if ended {
        // After a block that keeps its line breaks, a line has already begun.
        return at(end, format!("{body}{line_break}"));
    }
    at(source.line_end(end), format!("{line_break}{body}"))
}

impl Original<'_> {
    /// Writes a value on one line.
    pub(super) fn in_brackets(&self, value: &Json) -> String {
        if self.is_json() { json(value) } else { emit_flow(value) }
    }

    /// Returns the separator between the next value and a neighbour that begins here. If JSON has one value
    /// per line, the separator includes the line break.
    fn next_in_brackets(&self, neighbour: usize) -> String {
        if !self.is_json() || !self.begins_its_line(neighbour) {
            return ", ".to_owned();
        }
        let indent = self.text.get(self.line_start(neighbour)..neighbour).unwrap_or_default();
        format!(",{}{indent}", self.line_break())
    }

    fn is_json(&self) -> bool {
        let document = self.text.get(self.document().bytes.clone()).unwrap_or_default();
        let document = document.trim_start_matches('\u{FEFF}').trim_start();
        let document = document.strip_prefix("---").unwrap_or(document);
        serde_json::from_str::<serde::de::IgnoredAny>(document).is_ok()
    }
}

/// Writes JSON on one line, with the usual spaces.
fn json(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", ")),
        Json::Object(fields) => {
            let field =
                |(key, value): (&String, &Json)| format!("{}: {}", Json::from(key.as_str()), json(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}
