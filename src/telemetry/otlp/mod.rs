//! Writes metrics and spans as OTLP, the JSON protocol of OpenTelemetry's collectors.
//!
//! [`numbers`] parses a page of OpenMetrics text, because the registry exposes its metrics in no other way. This file
//! converts work and its times to one request for `/v1/traces`. [`Collector`] sends both.

mod numbers;

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use berth_http::Secret;
use berth_http::client::{
    Client, ClientError, HeaderName, HeaderValue, PATIENCE, Request, Roots, header, short_line,
};

pub use numbers::numbers;

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

/// The characters of a failure's reason that are shown.
const LONGEST_REASON: usize = 200;

/// A collector that accepts OTLP over HTTP, as JSON. It blocks its caller.
pub struct Collector {
    address: String,
    headers: Vec<(HeaderName, Secret)>,
    client: Client,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The reasons why an address or a header is invalid. No message contains a header's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectorSettingError {
    #[error(
        "the collector's address is not fit: write it as `https://otel.example.com:4318`, without name or password"
    )]
    Address,
    #[error("header {0} of the collector is not fit: write each as `name=value`")]
    Header(usize),
    #[error("the collector's headers may be secrets, and go over `https` or to this machine only")]
    PlainHeaders,
}

/// The reasons why a message did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    /// The collector would refuse the message again.
    #[error("the collector refuses it: {0}")]
    Refused(String),
    #[error("the collector cannot take it now: {0}")]
    Busy(String),
    #[error("the collector cannot be reached: {0}")]
    Unreachable(String),
}

impl Collector {
    /// Makes a collector at the address below which `/v1/traces` and `/v1/metrics` are. Each request carries the
    /// headers. Connects to nothing yet.
    pub fn new(address: &str, headers: &[(String, String)]) -> Result<Collector, CollectorSettingError> {
        let address = address.trim_end_matches('/');
        let plain = address.strip_prefix("http://");
        let rest = address.strip_prefix("https://").or(plain).unwrap_or_default();
        let is_fit = !rest.is_empty()
            && !rest.contains(['@', '#', '?'])
            && rest.chars().all(|character| character.is_ascii_graphic());
        if !is_fit {
            return Err(CollectorSettingError::Address);
        }
        let is_local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
            rest.strip_prefix(host).is_some_and(|after| after.is_empty() || after.starts_with([':', '/']))
        });
        if plain.is_some() && !is_local && !headers.is_empty() {
            return Err(CollectorSettingError::PlainHeaders);
        }
        let fit = |(index, (name, value)): (usize, &(String, String))| {
            let is_fit = HeaderValue::from_str(value).is_ok() && !value.is_empty();
            let name = HeaderName::from_bytes(name.as_bytes()).ok().filter(|_| is_fit);
            name.map(|name| (name, Secret::new(value.trim()))).ok_or(CollectorSettingError::Header(index + 1))
        };
        let headers = headers.iter().enumerate().map(fit).collect::<Result<Vec<_>, _>>()?;
        let client = Client::new(address, &Roots::default());
        Ok(Collector { address: address.to_owned(), headers, client })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a message to a path such as `v1/traces`.
    pub fn send(&self, path: &str, message: &Json) -> Result<(), CollectorError> {
        let unreachable = |error: ClientError| {
            let why = self.headers.iter().fold(error.to_string(), |why, (_, secret)| secret.hide_in(&why));
            CollectorError::Unreachable(short_line(&why, LONGEST_REASON))
        };
        let mut request = Request::post(format!("{}/{path}", self.address));
        for (name, value) in &self.headers {
            request = request.header(name, value.reveal());
        }
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let body = message.to_string();
        let answer = self.client.send(request, Some(body.as_bytes()), PATIENCE).map_err(unreachable)?;
        let status = answer.status();
        match status.as_u16() {
            200..=299 => Ok(()),
            429 | 502..=504 => Err(CollectorError::Busy(status.to_string())),
            _ => Err(CollectorError::Refused(status.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str, headers: &[(&str, &str)]) -> Option<CollectorSettingError> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Collector::new(address, &headers).err()
    }

    #[test]
    fn secrets_go_over_https_or_to_this_machine() {
        let secret = [("authorization", "Bearer x")];
        for fit in
            ["https://otel.example.com/base/", "http://127.0.0.1:4318", "http://localhost", "http://[::1]:1"]
        {
            assert_eq!(refused(fit, &secret), None, "{fit}");
        }
        for plain in
            ["http://otel.example.com", "http://127.0.0.1.example.com", "http://localhost.example.com:1"]
        {
            assert_eq!(refused(plain, &secret), Some(CollectorSettingError::PlainHeaders), "{plain}");
            assert_eq!(refused(plain, &[]), None, "{plain}");
        }
    }

    #[test]
    fn odd_addresses_and_headers_are_refused_and_not_repeated() {
        for odd in
            ["", "otel:4318", "grpc://otel:4317", "https://", "https://a@b", "https://a b", "https://a?b"]
        {
            assert_eq!(refused(odd, &[]), Some(CollectorSettingError::Address), "{odd}");
        }
        for odd in [("", "x"), ("a b", "x"), ("a", ""), ("a", "x\ny")] {
            let error = refused("https://a", &[("b", "c"), odd]).expect("a refusal");
            assert_eq!(error, CollectorSettingError::Header(2), "{odd:?}");
        }
    }
}
