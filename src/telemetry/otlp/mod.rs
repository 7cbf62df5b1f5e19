//! Writes metrics and spans as OTLP, the JSON protocol of OpenTelemetry's collectors.
//!
//! [`numbers`] parses a page of OpenMetrics text, because the registry exposes its metrics in no other way. [`spans`]
//! writes work and its steps. [`Collector`] sends both.

mod collector;
mod numbers;
mod spans;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

pub use collector::{Collector, CollectorError, CollectorSettingError};
pub use numbers::numbers;
pub use spans::{Span, spans};

/// The attributes of the process, as names and values.
pub type Resource = [(String, String)];

/// The value of a span's attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i64),
}

fn attribute(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({"stringValue": text}),
        // In the JSON of protobuf, 64-bit numbers are texts.
        Value::Number(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": name, "value": value})
}

fn texts<'a>(named: impl Iterator<Item = (&'a str, &'a str)>) -> Json {
    named.map(|(name, value)| attribute(name, &Value::Text(value.to_owned()))).collect()
}

fn resource(resource: &Resource) -> Json {
    json!({"attributes": texts(resource.iter().map(|(name, value)| (name.as_str(), value.as_str())))})
}

fn scope() -> Json {
    json!({"name": "berth", "version": env!("CARGO_PKG_VERSION")})
}

fn nanoseconds(at: SystemTime) -> String {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
