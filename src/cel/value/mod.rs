//! The values of expressions, with equality and order.

mod kubernetes;
use core::net::IpAddr;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use regex::Regex;
use serde_json::Value as Json;

use crate::run::Meter;
use berth_base::model::{Quantity, Timestamp};

pub(crate) use kubernetes::unescape;
pub use kubernetes::{Format, Semver, Url};

/// Any value that an expression can name or create. Parts are shared, so that cloning is cheap.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<Vec<Value>>),
    Map(Arc<BTreeMap<MapKey, Value>>),
    Optional(Option<Arc<Value>>),
    Moment(Timestamp),
    Span(SignedDuration),
    Type(&'static str),
    Quantity(Quantity),
    Semver(Arc<Semver>),
    Url(Arc<Url>),
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Format(Format),
    /// A regular expression that was a literal in the text and compiled in advance.
    Pattern(Arc<Regex>),
}

/// A key of a map. Whole numbers are equal whatever their type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapKey {
    Bool(bool),
    Number(i128),
    Text(Arc<str>),
}

impl Value {
    pub fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(items))
    }

    pub(crate) fn some(value: Value) -> Value {
        Value::Optional(Some(Arc::new(value)))
    }

    /// Returns the value as a key, if it can be one.
    pub(crate) fn key(&self) -> Option<MapKey> {
        match self {
            Value::Bool(value) => Some(MapKey::Bool(*value)),
            Value::Int(value) => Some(MapKey::Number(i128::from(*value))),
            Value::Uint(value) => Some(MapKey::Number(i128::from(*value))),
            // Beyond this limit, a double cannot distinguish neighbouring whole numbers.
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Some(MapKey::Number(*value as i128))
            }
            Value::Text(text) => Some(MapKey::Text(text.clone())),
            _ => None,
        }
    }

    /// Reports whether the value is its type's default.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Int(value) => *value == 0,
            Value::Uint(value) => *value == 0,
            Value::Double(value) => *value == 0.0,
            Value::Text(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::List(items) => items.is_empty(),
            Value::Map(entries) => entries.is_empty(),
            Value::Optional(value) => value.is_none(),
            Value::Span(span) => span.is_zero(),
            _ => false,
        }
    }

    /// Reports whether two values are equal. Values of different types differ, except for numbers.
    pub(crate) fn equals(&self, other: &Value, meter: &mut Meter) -> Result<bool, String> {
        meter.take(1)?;
        Ok(match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => {
                meter.take_text(a.len().min(b.len()))?;
                a == b
            }
            (Value::Bytes(a), Value::Bytes(b)) => {
                meter.take_text(a.len().min(b.len()))?;
                a == b
            }
            (Value::List(a), Value::List(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !a.equals(b, meter)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Map(a), Value::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for ((key, a), (other, b)) in a.iter().zip(b.iter()) {
                    if key != other || !a.equals(b, meter)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Optional(a), Value::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b, meter)?,
                (a, b) => a.is_none() && b.is_none(),
            },
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Url(a), Value::Url(b)) => a == b,
            (Value::Ip(a), Value::Ip(b)) => a == b,
            (Value::Cidr(a, m), Value::Cidr(b, n)) => (a, m) == (b, n),
            (Value::Format(a), Value::Format(b)) => a == b,
            _ => self.compare(other) == Some(Ordering::Equal),
        })
    }

    /// Compares two values whose types have an order.
    pub(crate) fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Moment(a), Value::Moment(b)) => Some(a.cmp(b)),
            (Value::Span(a), Value::Span(b)) => Some(a.cmp(b)),
            (Value::Quantity(a), Value::Quantity(b)) => Some(a.cmp(b)),
            (Value::Semver(a), Value::Semver(b)) => Some(a.compare(b)),
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
            (Value::Double(a), _) => compare_numbers(*a, other.whole()?),
            (_, Value::Double(b)) => compare_numbers(*b, self.whole()?).map(Ordering::reverse),
            _ => Some(self.whole()?.cmp(&other.whole()?)),
        }
    }

    fn whole(&self) -> Option<i128> {
        match self {
            Value::Int(value) => Some(i128::from(*value)),
            Value::Uint(value) => Some(i128::from(*value)),
            _ => None,
        }
    }
}

/// Compares exactly: converting the whole number into a double could round it.
fn compare_numbers(a: f64, b: i128) -> Option<Ordering> {
    if a.is_nan() {
        return None;
    }
    if a.abs() >= 1e30 {
        return Some(if a > 0.0 { Ordering::Greater } else { Ordering::Less });
    }
    let (whole, rest) = (a.floor(), a - a.floor());
    let by_rest = if rest > 0.0 { Ordering::Greater } else { Ordering::Equal };
    Some((whole as i128).cmp(&b).then(by_rest))
}

impl From<&Json> for Value {
    fn from(json: &Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Int(value),
                (None, Some(value)) => Value::Uint(value),
                (None, None) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::text(text),
            Json::Array(items) => Value::list(items.iter().map(Value::from).collect()),
            Json::Object(entries) => {
                let entry =
                    |(key, value): (&String, &Json)| (MapKey::Text(key.as_str().into()), value.into());
                Value::Map(Arc::new(entries.iter().map(entry).collect()))
            }
        }
    }
}
