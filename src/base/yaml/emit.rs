//! Writes values as YAML that YAML 1.1 and 1.2 readers read alike.
//!
//! Block style, two spaces, keys in a fixed order (so that a diff shows only real changes), and text in
//! double quotes wherever any known reader could misread it; or in brackets, on one line, for places that
//! are already in brackets.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::quote::{is_plain, literal_header, quoted};

/// Writes a value as a document, without a `---`.
pub fn emit(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, map, 0, Depth::Top),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0),
        _ => {
            inline(&mut out, value, 0);
            out.push('\n');
        }
    }
    out
}

/// Writes several documents, each after a `---`.
pub fn emit_documents<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    values.into_iter().fold(String::new(), |mut out, value| {
        out.push_str("---\n");
        out.push_str(&emit(value));
        out
    })
}

/// The place in the tree, which determines the first keys.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Top,
    Metadata,
    Elsewhere,
}

impl Depth {
    fn first_keys(self) -> &'static [&'static str] {
        match self {
            Depth::Top => &["apiVersion", "kind", "metadata"],
            Depth::Metadata => &["name", "namespace"],
            Depth::Elsewhere => &[],
        }
    }

    fn compare(self, a: &str, b: &str) -> Ordering {
        let first = self.first_keys();
        let rank = |key: &str| first.iter().position(|known| *known == key).unwrap_or(first.len());
        (rank(a), a).cmp(&(rank(b), b))
    }
}

fn mapping(out: &mut String, map: &Map<String, Value>, indent: usize, place: Depth) {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_by(|a, b| place.compare(a.0, b.0));
    for (index, (key, value)) in entries.into_iter().enumerate() {
        // The first key of a mapping may follow `- ` on the same line.
        if index > 0 || out.ends_with('\n') {
            pad(out, indent);
        }
        text(out, key);
        out.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                let inner_place =
                    if place == Depth::Top && key == "metadata" { Depth::Metadata } else { Depth::Elsewhere };
                out.push('\n');
                mapping(out, inner, indent + 2, inner_place);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                list(out, items, indent);
            }
            _ => {
                out.push(' ');
                inline(out, value, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn list(out: &mut String, items: &[Value], indent: usize) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 || out.is_empty() || out.ends_with('\n') {
            pad(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => mapping(out, inner, indent + 2, Depth::Elsewhere),
            Value::Array(inner) if !inner.is_empty() => list(out, inner, indent + 2),
            _ => {
                inline(out, item, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a value that begins on its key's line. A literal block continues below, at `indent`.
fn inline(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number_value) => number(out, number_value),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        Value::String(value) => match literal_header(value).filter(|_| indent > 0) {
            Some(header) => literal(out, value, header, indent),
            None => text(out, value),
        },
    }
}

fn text(out: &mut String, value: &str) {
    if is_plain(value) { out.push_str(value) } else { quoted(out, value) }
}

/// Writes a literal block without its final line break, which the caller writes.
fn literal(out: &mut String, value: &str, header: &str, indent: usize) {
    out.push_str(header);
    let body = value.strip_suffix('\n').unwrap_or(value);
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
}

/// Writes a number that all readers read alike: YAML 1.1 requires a point before an exponent, and a sign in
/// it.
fn number(out: &mut String, number: &Number) {
    if number.is_i64() || number.is_u64() {
        let _ = write!(out, "{number}");
        return;
    }
    let value = number.as_f64().unwrap_or(0.0);
    let magnitude = value.abs();
    if value == 0.0 || (1e-5..1e16).contains(&magnitude) {
        let _ = write!(out, "{value:?}");
        return;
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    let _ = write!(out, "{mantissa}{point}e{sign}{exponent}");
}

/// Writes a value on one line: `{a: 1, b: [x, "y, z"]}`.
pub fn emit_flow(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(emit_flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}: {}", flow_text(key), emit_flow(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::String(value) => flow_text(value),
        _ => emit(value).trim_end().to_owned(),
    }
}

/// Quotes a text with a comma or colon: between brackets a comma ends a text.
fn flow_text(value: &str) -> String {
    if is_plain(value) && !value.contains([',', ':']) {
        return value.to_owned();
    }
    let mut out = String::new();
    quoted(&mut out, value);
    out
}
