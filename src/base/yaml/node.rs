//! A YAML value with its place in its file.
//!
//! All files of people are read into this tree: it has positions for messages, and JSON values for manifests.
//! Mapping keys are strings (kubectl turns other scalars into their text) and keep the order of the file.

use serde_json::{Map, Number, Value as Json};

pub use crate::packed::Mark;
use crate::packed::{Content, Packed, View, Writer};

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub at: Mark,
    pub value: Value,
}

/// The content of a node, as kubectl would read it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a mapping, and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub at: Mark,
    pub value: Node,
}

impl Node {
    /// Returns the value under a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// Returns the kind of the value, for error messages.
    pub fn what(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// Packs the value with its places.
    pub fn pack(&self) -> Packed {
        let mut writer = Writer::with_places();
        self.put(&mut writer);
        writer.finish()
    }

    fn put(&self, writer: &mut Writer) {
        match &self.value {
            Value::Null => writer.null(self.at),
            Value::Bool(value) => writer.bool(self.at, *value),
            Value::Number(number) => writer.number(self.at, number),
            Value::String(text) => writer.text(self.at, text),
            Value::List(items) => writer.list(self.at, items.iter(), |writer, item| item.put(writer)),
            Value::Map(entries) => writer.map(self.at, entries.iter(), |writer, entry| {
                writer.key(entry.at, &entry.key);
                entry.value.put(writer);
            }),
        }
    }

    /// Unpacks a value with its places.
    pub fn unpack(view: View<'_>) -> Node {
        let value = match view.content() {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(value),
            Content::Number(number) => Value::Number(number),
            Content::Text(text) => Value::String(text.into()),
            Content::List(items) => Value::List(items.map(Node::unpack).collect()),
            Content::Map(entries) => Value::Map(
                entries
                    .map(|(key, at, value)| Entry { key: key.into(), at, value: Node::unpack(value) })
                    .collect(),
            ),
        };
        Node { at: view.at(), value }
    }

    /// Returns the same value without places.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(value) => Json::Number(value.clone()),
            Value::String(value) => Json::String(value.clone()),
            Value::List(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(entries) => Json::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect::<Map<_, _>>(),
            ),
        }
    }
}
