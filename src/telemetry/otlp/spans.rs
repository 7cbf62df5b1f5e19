//! Converts work and its times to one request for `/v1/traces`.

use std::time::SystemTime;

use serde_json::{Value as Json, json};

use super::{Resource, Value, attribute, nanoseconds, resource, scope};

/// A piece of work, or a step of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The trace id, shared by a piece of work and its steps.
    pub trace: u128,
    pub id: u64,
    /// The piece of work that a step belongs to.
    pub parent: Option<u64>,
    pub name: &'static str,
    pub begun: SystemTime,
    pub ended: SystemTime,
    pub said: Vec<(&'static str, Value)>,
    /// The message of the failure, if it failed.
    pub failure: Option<String>,
}

/// Converts spans.
pub fn spans<'s>(spans: impl IntoIterator<Item = &'s Span>, of: &Resource) -> Json {
    let spans: Vec<Json> = spans.into_iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": resource(of),
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

fn span(span: &Span) -> Json {
    let said: Vec<Json> = span.said.iter().map(|(name, value)| attribute(name, value)).collect();
    let mut json = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        // The kind of work inside a process.
        "kind": 1,
        "startTimeUnixNano": nanoseconds(span.begun),
        "endTimeUnixNano": nanoseconds(span.ended.max(span.begun)),
        "attributes": said,
        "status": span.failure.as_ref().map_or(json!({}), |why| json!({"code": 2, "message": why})),
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    json
}
