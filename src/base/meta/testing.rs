//! Nodes made from JSON, for tests: every value gets its own place.

use serde_json::Value as Json;

use crate::yaml::node::{Entry, Mark, Node, Value};

/// Returns the node tree of a file with this content. Lines count the values in document order.
pub fn node(json: &Json) -> Node {
    number(json, &mut 0)
}

fn number(json: &Json, line: &mut u32) -> Node {
    *line += 1;
    let at = Mark { line: *line, column: 1 };
    let value = match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(value) => Value::Number(value.clone()),
        Json::String(value) => Value::String(value.clone()),
        Json::Array(items) => Value::List(items.iter().map(|item| number(item, line)).collect()),
        Json::Object(fields) => Value::Map(
            fields
                .iter()
                .map(|(key, value)| {
                    let value = number(value, line);
                    Entry { key: key.clone(), at: value.at, value }
                })
                .collect(),
        ),
    };
    Node { at, value }
}
