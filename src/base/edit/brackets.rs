//! The form of values between brackets: YAML, or JSON in a document that is JSON, so that other tools can
//! still read it as JSON.

use serde_json::Value as Json;

use super::verify::Original;
use crate::yaml::emit_flow;

impl Original<'_> {
    /// Writes a value on one line.
    pub(super) fn in_brackets(&self, value: &Json) -> String {
        if self.is_json() { json(value) } else { emit_flow(value) }
    }

    /// Returns the separator between the next value and a neighbour that begins here. If JSON has one value
    /// per line, the separator includes the line break.
    pub(super) fn next_in_brackets(&self, neighbour: usize) -> String {
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
