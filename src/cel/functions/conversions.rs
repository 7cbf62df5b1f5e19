//! Conversions between types, and the type of a value. A lossy conversion is an error.

use super::{CallResult, Function, text_of};
use crate::run::Meter;
use crate::types::Type;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("int", &[Type::Int], Type::Int, same),
    Function::global("int", &[Type::Uint], Type::Int, to_int),
    Function::global("int", &[Type::Double], Type::Int, to_int),
    Function::global("int", &[Type::Text], Type::Int, to_int),
    Function::global("int", &[Type::Moment], Type::Int, to_int),
    Function::global("uint", &[Type::Uint], Type::Uint, same),
    Function::global("uint", &[Type::Int], Type::Uint, to_uint),
    Function::global("uint", &[Type::Double], Type::Uint, to_uint),
    Function::global("uint", &[Type::Text], Type::Uint, to_uint),
    Function::global("double", &[Type::Double], Type::Double, same),
    Function::global("double", &[Type::Int], Type::Double, to_double),
    Function::global("double", &[Type::Uint], Type::Double, to_double),
    Function::global("double", &[Type::Text], Type::Double, to_double),
    Function::global("bool", &[Type::Bool], Type::Bool, same),
    Function::global("bool", &[Type::Text], Type::Bool, |_, values| match text_of(&values[0]) {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
        text => Err(format!("`{text}` is no boolean")),
    }),
    Function::global("bytes", &[Type::Bytes], Type::Bytes, same),
    Function::global("bytes", &[Type::Text], Type::Bytes, |meter, values| {
        let text = text_of(&values[0]);
        meter.take_text(text.len())?;
        Ok(Value::Bytes(text.as_bytes().into()))
    }),
    Function::global("string", &[Type::Text], Type::Text, same),
    Function::global("string", &[Type::Bool], Type::Text, to_string),
    Function::global("string", &[Type::Bytes], Type::Text, to_string),
    Function::global("string", &[Type::Double], Type::Text, to_string),
    Function::global("string", &[Type::Span], Type::Text, to_string),
    Function::global("string", &[Type::Int], Type::Text, to_string),
    Function::global("string", &[Type::Moment], Type::Text, to_string),
    Function::global("string", &[Type::Uint], Type::Text, to_string),
    Function::global("string", &[Type::Ip], Type::Text, to_string),
    Function::global("string", &[Type::Cidr], Type::Text, to_string),
    Function::global("dyn", &[Type::Any], Type::Any, same),
    Function::global("type", &[Type::Any], Type::Kind, |_, values| {
        Ok(Value::Type(Type::of(&values[0]).name()))
    }),
];

fn same(_: &mut Meter, values: &[Value]) -> CallResult {
    Ok(values[0].clone())
}

fn to_string(meter: &mut Meter, values: &[Value]) -> CallResult {
    let text = to_text(&values[0])?;
    meter.take_text(text.len())?;
    Ok(Value::text(&text))
}

fn to_int(_: &mut Meter, values: &[Value]) -> CallResult {
    let int = match &values[0] {
        Value::Uint(value) => i64::try_from(*value).ok(),
        // Both limits are powers of two, which a double represents exactly; cel-go excludes both.
        Value::Double(value)
            if *value > -9_223_372_036_854_775_808.0 && *value < 9_223_372_036_854_775_808.0 =>
        {
            Some(*value as i64)
        }
        Value::Text(text) => text.parse().ok(),
        Value::Moment(moment) => Some(moment.as_second()),
        _ => None,
    };
    int.map(Value::Int).ok_or_else(|| format!("{} is no int", words(&values[0])))
}

fn to_uint(_: &mut Meter, values: &[Value]) -> CallResult {
    let uint = match &values[0] {
        Value::Int(value) => u64::try_from(*value).ok(),
        Value::Double(value) if *value >= 0.0 && *value < 18_446_744_073_709_551_616.0 => Some(*value as u64),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    uint.map(Value::Uint).ok_or_else(|| format!("{} is no uint", words(&values[0])))
}

fn to_double(_: &mut Meter, values: &[Value]) -> CallResult {
    let double = match &values[0] {
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        Value::Text(text) => double_of(text),
        _ => None,
    };
    double.map(Value::Double).ok_or_else(|| format!("{} is no double", words(&values[0])))
}

/// Parses a double. A written number that is too large is refused, but `inf` is valid.
fn double_of(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() || !text.contains(|character: char| character.is_ascii_digit())).then_some(number)
}

/// Formats a double like Go's `%g`: with an exponent below 1e-4 and from 1e6 on.
fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((mantissa, exponent)) => match exponent.parse::<i32>() {
            Ok(power) if (-4..6).contains(&power) => value.to_string(),
            _ => format!("{mantissa}{}", signed_exponent(exponent)),
        },
        None => scientific,
    }
}

/// Returns an exponent with a sign and at least two digits: `e+10`.
pub(super) fn signed_exponent(exponent: &str) -> String {
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("e{sign}{digits:0>2}")
}

/// Returns a value as text, for the types that have one.
pub(super) fn to_text(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => double_text(*value),
        Value::Text(text) => text.to_string(),
        Value::Bytes(bytes) => {
            String::from_utf8(bytes.to_vec()).map_err(|_| "these bytes are no text".to_owned())?
        }
        Value::Moment(moment) => moment.to_string(),
        Value::Span(span) => super::moments::span_text(*span),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(address, bits) => format!("{address}/{bits}"),
        Value::Type(name) => (*name).to_owned(),
        other => return Err(format!("a value of type {} has no text", Type::of(other).name())),
    })
}

fn words(value: &Value) -> String {
    to_text(value).map_or_else(|why| why, |text| format!("`{text}`"))
}
