//! Writes values in brackets, on one line, for places that are already in brackets.

use serde_json::Value;

use super::emit::emit;
use super::quote::{is_plain, quoted};

/// Writes a value on one line: `{a: 1, b: [x, "y, z"]}`.
pub fn emit_flow(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(emit_flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}: {}", text(key), emit_flow(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::String(value) => text(value),
        _ => emit(value).trim_end().to_owned(),
    }
}

/// Quotes a text with a comma or colon: between brackets a comma ends a text.
fn text(value: &str) -> String {
    if is_plain(value) && !value.contains([',', ':']) {
        return value.to_owned();
    }
    let mut out = String::new();
    quoted(&mut out, value);
    out
}
