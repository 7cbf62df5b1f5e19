//! `"%s of %d".format([a, b])` and `strings.quote`.

use super::conversions::{signed_exponent, to_text};
use super::function::{Function, items, text_of};
use crate::meter::Meter;
use crate::types::Type;
use crate::value::{MapKey, Value};
use berth_base::text::hex;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::method("format", &[Type::Text, Type::List], Type::Text, |meter, values| {
        format(meter, text_of(&values[0]), items(&values[1])).map(|text| Value::text(&text))
    }),
    Function::global("strings.quote", &[Type::Text], Type::Text, |meter, values| {
        let text = text_of(&values[0]);
        meter.take_text(text.len())?;
        Ok(Value::text(&quote(text)))
    }),
];

/// The default number of digits after the point, and the maximal one.
const DIGITS: usize = 6;
const MOST_DIGITS: usize = 100;

fn format(meter: &mut Meter, pattern: &str, arguments: &[Value]) -> Result<String, String> {
    meter.take_text(pattern.len())?;
    let mut made = String::new();
    let mut rest = pattern.chars().peekable();
    let mut arguments = arguments.iter();
    while let Some(character) = rest.next() {
        if character != '%' {
            made.push(character);
            continue;
        }
        let mut digits = None;
        if rest.next_if_eq(&'.').is_some() {
            let mut number = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                number.push(digit);
            }
            let number: usize = number.parse().map_err(|_| "`%.` needs a number of digits".to_owned())?;
            if number > MOST_DIGITS {
                return Err(format!("more than {MOST_DIGITS} digits are too many"));
            }
            digits = Some(number);
        }
        let kind = rest.next().ok_or_else(|| "`%` at the end stands for nothing".to_owned())?;
        if kind == '%' {
            made.push('%');
            continue;
        }
        let argument =
            arguments.next().ok_or_else(|| "there are fewer values than places for them".to_owned())?;
        one(meter, &mut made, kind, digits.unwrap_or(DIGITS), argument)?;
    }
    Ok(made)
}

fn one(meter: &mut Meter, made: &mut String, kind: char, digits: usize, value: &Value) -> Result<(), String> {
    let text = match (kind, value) {
        ('s', value) => plain(meter, value)?,
        ('d', Value::Int(_) | Value::Uint(_)) => to_text(value)?,
        ('f', Value::Double(value)) => format!("{value:.digits$}"),
        ('f', Value::Int(value)) => format!("{:.digits$}", *value as f64),
        ('e', Value::Double(value)) => exponential(*value, digits),
        ('e', Value::Int(value)) => exponential(*value as f64, digits),
        ('b', Value::Int(value)) => signed(*value, |value| format!("{value:b}")),
        ('b', Value::Uint(value)) => format!("{value:b}"),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('o', Value::Int(value)) => signed(*value, |value| format!("{value:o}")),
        ('o', Value::Uint(value)) => format!("{value:o}"),
        ('x', Value::Int(value)) => signed(*value, |value| format!("{value:x}")),
        ('x', Value::Uint(value)) => format!("{value:x}"),
        ('x', Value::Text(text)) => hex(text.as_bytes()),
        ('x', Value::Bytes(bytes)) => hex(bytes),
        ('X', value) => {
            let start = made.len();
            one(meter, made, 'x', digits, value)?;
            made[start..].make_ascii_uppercase();
            return Ok(());
        }
        (kind, value) => return Err(format!("`%{kind}` is not for a {}", Type::of(value).name())),
    };
    meter.take_text(text.len())?;
    made.push_str(&text);
    Ok(())
}

fn signed(value: i64, unsigned: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", unsigned(value.unsigned_abs()))
}

/// Formats a number with a sign and at least two digits in the exponent.
fn exponential(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{mantissa}{}", signed_exponent(exponent)),
        None => text,
    }
}

/// Writes a value as text. It charges each value: one that a list contains many times only becomes large in
/// the text.
fn plain(meter: &mut Meter, value: &Value) -> Result<String, String> {
    meter.take(1)?;
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| plain(meter, item)).collect::<Result<_, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let mut entry = |(key, value): (&MapKey, &Value)| {
                let key = match key {
                    MapKey::Bool(key) => key.to_string(),
                    MapKey::Number(key) => key.to_string(),
                    MapKey::Text(key) => key.to_string(),
                };
                Ok(format!("{key}: {}", plain(meter, value)?))
            };
            let entries: Vec<String> = entries.iter().map(&mut entry).collect::<Result<_, String>>()?;
            format!("{{{}}}", entries.join(", "))
        }
        other => {
            let text = to_text(other)?;
            meter.take_text(text.len())?;
            text
        }
    })
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' | '"' => quoted.extend(['\\', character]),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
