//! Numbers and spans → the JSON of OTLP, the protocol of OpenTelemetry's collectors.
//!
//! [`numbers`] reads a page of OpenMetrics text: the registry shows its numbers in no other way. [`spans`] writes what
//! happened, with its steps. [`Collector`] takes both.

mod collector;
mod numbers;
mod spans;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

pub use collector::{Collector, CollectorError, CollectorSettingError};
pub use numbers::numbers;
pub use spans::{Span, spans};

/// The process that everything is said of, as names and values.
pub type Resource = [(String, String)];

/// One value that is said of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i64),
}

fn attribute(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({"stringValue": text}),
        // 64-bit numbers are texts in the JSON of protobuf.
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
