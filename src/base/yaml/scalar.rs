//! Plain scalars and their types: `no` → false, `012` → 10, `12:30` → text.
//!
//! kubectl reads YAML with sigs.k8s.io/yaml, which resolves plain scalars by YAML 1.1 as go-yaml v2 does.
//! These are that reader's rules, except for the single letters `y` and `n`: they stay text, as in every
//! other reader, because `x` and `y` are common keys and values. [`read_differently`] names a reader that
//! disagrees.
//!
//! Scalars with an explicit tag: `!!str 12`, `!!int "12"`, `!!binary aGk=`.

use serde_json::Number;

use super::node::Value;
use crate::text::base64;

/// A resolved scalar, before it becomes a JSON value or a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Large(u64),
    Float(f64),
    Text,
}

/// Resolves a plain scalar as kubectl does.
pub fn resolve(text: &str) -> Scalar {
    let Some(first) = text.bytes().next() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' | b'+' | b'-' | b'0'..=b'9' => {
            special_float(text).map(Scalar::Float).unwrap_or_else(|| number(text, first))
        }
        _ => Scalar::Text,
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        _ => Scalar::Text,
    }
}

fn special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn number(text: &str, first: u8) -> Scalar {
    if first == b'.' {
        // Go allows underscores between digits here.
        let tidy =
            !text.contains("__") && !text.ends_with('_') && !text.contains("._") && !text.contains("e_");
        let plain = text.replace('_', "");
        return if tidy { float(&plain) } else { Scalar::Text };
    }
    let plain = text.replace('_', "");
    integer(&plain).unwrap_or_else(|| float(&plain))
}

/// Parses like Go's `ParseInt` with base 0, then `ParseUint`.
fn integer(plain: &str) -> Option<Scalar> {
    let (negative, signed, digits) = match plain.as_bytes().first()? {
        b'-' => (true, true, &plain[1..]),
        b'+' => (false, true, &plain[1..]),
        _ => (false, false, plain),
    };
    let bytes = digits.as_bytes();
    let (radix, digits) = match (bytes.first()?, bytes.get(1)) {
        (b'0', Some(b'x' | b'X')) => (16, &digits[2..]),
        (b'0', Some(b'o' | b'O')) => (8, &digits[2..]),
        (b'0', Some(b'b' | b'B')) => (2, &digits[2..]),
        (b'0', Some(_)) => (8, &digits[1..]),
        _ => (10, digits),
    };
    // Rust's parser would accept a second sign.
    if !digits.bytes().next()?.is_ascii_alphanumeric() {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match (negative, i64::try_from(value)) {
        (true, _) => 0i64.checked_sub_unsigned(value).map(Scalar::Int),
        (false, Ok(value)) => Some(Scalar::Int(value)),
        (false, Err(_)) => (!signed).then_some(Scalar::Large(value)),
    }
}

fn float(plain: &str) -> Scalar {
    // Beyond the range of a double, Go's reader keeps the text.
    match plain.parse::<f64>() {
        Ok(value) if looks_like_float(plain) && value.is_finite() => Scalar::Float(value),
        _ => Scalar::Text,
    }
}

/// Reports whether a text matches `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn looks_like_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_fits = exponent.is_none_or(|text| {
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        !text.is_empty() && digits(text)
    });
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    exponent_fits && mantissa_fits
}

/// Returns a reader that reads a plain scalar as another value, and the kind of that value.
pub(crate) fn read_differently(text: &str, here: &Scalar) -> Option<(&'static str, &'static str)> {
    if let "y" | "Y" | "n" | "N" = text {
        return Some(("kubectl", "a boolean"));
    }
    let there = core(text);
    let same = match (here, &there) {
        (Scalar::Float(a), Scalar::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
        (Scalar::Int(a), Scalar::Float(b)) | (Scalar::Float(b), Scalar::Int(a)) => *a as f64 == *b,
        (Scalar::Large(a), Scalar::Float(b)) | (Scalar::Float(b), Scalar::Large(a)) => *a as f64 == *b,
        (a, b) => a == b,
    };
    let what = match there {
        Scalar::Null => "null",
        Scalar::Bool(_) => "a boolean",
        Scalar::Int(_) | Scalar::Large(_) | Scalar::Float(_) => "another number",
        Scalar::Text => "text",
    };
    (!same).then_some(("readers of YAML 1.2", what))
}

fn core(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        _ => {}
    }
    if let Some(value) = special_float(text) {
        return Scalar::Float(value);
    }
    let based = |digits: &str, radix| match u64::from_str_radix(digits, radix) {
        Ok(value) if !digits.starts_with('+') => {
            i64::try_from(value).map_or(Scalar::Large(value), Scalar::Int)
        }
        _ => Scalar::Text,
    };
    if let Some(digits) = text.strip_prefix("0o") {
        return based(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return based(digits, 16);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(value) = text.parse::<i64>() {
            return Scalar::Int(value);
        }
        if let Ok(value) = text.parse::<u64>() {
            return Scalar::Large(value);
        }
    }
    float(text)
}

impl Scalar {
    /// Converts to the JSON value that kubectl would send: whole floats become integers. `None` for values that JSON
    /// lacks.
    pub(crate) fn into_value(self, text: String) -> Option<Value> {
        Some(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(value) => Value::Number(value.into()),
            Scalar::Large(value) => Value::Number(value.into()),
            Scalar::Float(value) => Value::Number(float_to_number(value)?),
            Scalar::Text => Value::String(text),
        })
    }

    /// Returns the text of a mapping's key, as kubectl makes it. `None` for null.
    pub(crate) fn into_key(self, text: String) -> Option<String> {
        Some(match self {
            Scalar::Null => return None,
            Scalar::Bool(value) => value.to_string(),
            Scalar::Int(value) => value.to_string(),
            Scalar::Large(value) => value.to_string(),
            Scalar::Float(value) if value.is_nan() => ".nan".to_owned(),
            Scalar::Float(value) if value.is_infinite() => {
                if value > 0.0 {
                    ".inf".to_owned()
                } else {
                    "-.inf".to_owned()
                }
            }
            Scalar::Float(value) => go_key(value),
            Scalar::Text => text,
        })
    }
}

/// Converts a float like kubectl: it sends the shortest digits of the float, and the API server reads a whole
/// number from them. Beyond 2^53 these digits can be another whole number than the float.
fn float_to_number(value: f64) -> Option<Number> {
    if value.fract() == 0.0
        && let Ok(whole) = format!("{value}").parse::<i64>()
    {
        return Some(whole.into());
    }
    Number::from_f64(value)
}

/// Formats like Go's `FormatFloat(value, 'g', -1, 32)`.
fn go_key(value: f64) -> String {
    let scientific = format!("{:e}", value as f32);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{}", value as f32);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Reads a scalar by a tag of YAML's own namespace. `None` for an unknown tag; an error for a value that does
/// not fit the tag.
pub(super) fn tagged_scalar(tag: &str, text: String) -> Option<Result<(Scalar, String), String>> {
    let misfit = |text: &str| Err(format!("`{text}` does not fit its tag `!!{tag}`"));
    Some(match tag {
        "str" | "timestamp" => Ok((Scalar::Text, text)),
        "null" | "bool" | "int" | "float" => match (tag, resolve(&text)) {
            ("null", scalar @ Scalar::Null)
            | ("bool", scalar @ Scalar::Bool(_))
            | ("int" | "float", scalar @ (Scalar::Int(_) | Scalar::Large(_)))
            | ("float", scalar @ Scalar::Float(_)) => Ok((scalar, text)),
            _ => misfit(&text),
        },
        "binary" => match base64::decode(&text).map(String::from_utf8) {
            Some(Ok(decoded)) => Ok((Scalar::Text, decoded)),
            Some(Err(_)) => {
                Err("the bytes of this `!!binary` are not text, and JSON cannot hold them".to_owned())
            }
            None => Err("this `!!binary` is not base64".to_owned()),
        },
        _ => return None,
    })
}
