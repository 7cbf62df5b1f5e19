//! Texts: the standard's methods and those of its extension, `"%s of %d".format([a, b])` and
//! `strings.quote`. Positions count characters.

use std::sync::Arc;

use super::conversions::{signed_exponent, to_text};
use super::{CallResult, Function, items, text_of, whole_of};
use crate::run::Meter;
use crate::types::Type::{self, Bool, Bytes, Int, List, Text};
use crate::value::{MapKey, Value};
use berth_base::text::hex;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("size", &[Text], Int, size),
    Function::method("size", &[Text], Int, size),
    Function::global("size", &[Bytes], Int, size),
    Function::method("size", &[Bytes], Int, size),
    Function::method("contains", &[Text, Text], Bool, |meter, values| {
        test(meter, values, |text, part| text.contains(part))
    }),
    Function::method("startsWith", &[Text, Text], Bool, |meter, values| {
        test(meter, values, |text, part| text.starts_with(part))
    }),
    Function::method("endsWith", &[Text, Text], Bool, |meter, values| {
        test(meter, values, |text, part| text.ends_with(part))
    }),
    Function::method("charAt", &[Text, Int], Text, |meter, values| {
        let text = charged(meter, values)?;
        let index = whole_of(&values[1]);
        match usize::try_from(index).ok().filter(|index| *index <= text.chars().count()) {
            Some(index) => Ok(Value::text(&text.chars().skip(index).take(1).collect::<String>())),
            None => Err(format!("there is no character {index}")),
        }
    }),
    Function::method("indexOf", &[Text, Text], Int, |meter, values| index_of(meter, values, false)),
    Function::method("indexOf", &[Text, Text, Int], Int, |meter, values| index_of(meter, values, false)),
    Function::method("lastIndexOf", &[Text, Text], Int, |meter, values| index_of(meter, values, true)),
    Function::method("lastIndexOf", &[Text, Text, Int], Int, |meter, values| index_of(meter, values, true)),
    Function::method("lowerAscii", &[Text], Text, |meter, values| {
        Ok(Value::text(&charged(meter, values)?.to_ascii_lowercase()))
    }),
    Function::method("upperAscii", &[Text], Text, |meter, values| {
        Ok(Value::text(&charged(meter, values)?.to_ascii_uppercase()))
    }),
    Function::method("trim", &[Text], Text, |meter, values| Ok(Value::text(charged(meter, values)?.trim()))),
    Function::method("reverse", &[Text], Text, |meter, values| {
        Ok(Value::text(&charged(meter, values)?.chars().rev().collect::<String>()))
    }),
    Function::method("substring", &[Text, Int], Text, substring),
    Function::method("substring", &[Text, Int, Int], Text, substring),
    Function::method("replace", &[Text, Text, Text], Text, replace),
    Function::method("replace", &[Text, Text, Text, Int], Text, replace),
    Function::method("split", &[Text, Text], List, split),
    Function::method("split", &[Text, Text, Int], List, split),
    Function::method("join", &[List], Text, join),
    Function::method("join", &[List, Text], Text, join),
    Function::method("parseJSON", &[Text], Type::Any, |meter, values| {
        let text = charged(meter, values)?;
        meter.take(text.len())?;
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|_| "this text is no JSON".to_owned())?;
        Ok(Value::from(&json))
    }),
];

fn charged<'v>(meter: &mut Meter, values: &'v [Value]) -> Result<&'v str, String> {
    let text = text_of(&values[0]);
    meter.take_text(text.len())?;
    Ok(text)
}

fn test(meter: &mut Meter, values: &[Value], holds: fn(&str, &str) -> bool) -> CallResult {
    let part = text_of(&values[1]);
    meter.take_text(part.len())?;
    Ok(Value::Bool(holds(charged(meter, values)?, part)))
}

fn size(meter: &mut Meter, values: &[Value]) -> CallResult {
    let size = match &values[0] {
        Value::Bytes(bytes) => bytes.len(),
        _ => charged(meter, values)?.chars().count(),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

/// Returns the index of a part in a text, in characters; -1 if the text lacks it.
fn index_of(meter: &mut Meter, values: &[Value], last: bool) -> CallResult {
    let (text, part) = (charged(meter, values)?, text_of(&values[1]));
    meter.take_text(part.len())?;
    let ends: Vec<usize> = text.char_indices().map(|(index, _)| index).chain([text.len()]).collect();
    let given = values.get(2).map(whole_of);
    let outside = || format!("there is no character {}", given.unwrap_or_default());
    let start = match given {
        Some(index) => usize::try_from(index).ok().filter(|index| *index < ends.len()).ok_or_else(outside)?,
        None if last => ends.len() - 1,
        None => 0,
    };
    let found = if last {
        // The match must begin at the given character or before it.
        let end = ends[start].saturating_add(part.len()).min(text.len());
        text.get(..end).and_then(|head| head.rfind(part))
    } else {
        text[ends[start]..].find(part).map(|index| ends[start] + index)
    };
    let character = found.and_then(|found| ends.binary_search(&found).ok());
    Ok(Value::Int(character.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1)))
}

fn substring(meter: &mut Meter, values: &[Value]) -> CallResult {
    let text = charged(meter, values)?;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let (start, end) = (whole_of(&values[1]), values.get(2).map_or(length, whole_of));
    if start < 0 || end > length || start > end {
        return Err(format!("there are no characters from {start} to {end}"));
    }
    let count = |number: i64| usize::try_from(number).unwrap_or_default();
    let part: String = text.chars().skip(count(start)).take(count(end - start)).collect();
    Ok(Value::text(&part))
}

fn replace(meter: &mut Meter, values: &[Value]) -> CallResult {
    let (text, from, to) = (charged(meter, values)?, text_of(&values[1]), text_of(&values[2]));
    let limit =
        values.get(3).map(whole_of).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let found = text.matches(from).count().min(limit);
    meter.take_text(found.saturating_mul(to.len()).saturating_add(text.len()))?;
    Ok(Value::text(&text.replacen(from, to, limit)))
}

fn split(meter: &mut Meter, values: &[Value]) -> CallResult {
    let (text, by) = (charged(meter, values)?, text_of(&values[1]));
    let limit = values.get(2).map_or(-1, whole_of);
    meter.take(if by.is_empty() { text.len() } else { text.matches(by).count() })?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<Value> = if most == 0 {
        Vec::new()
    } else if by.is_empty() {
        let ends: Vec<usize> = text.char_indices().map(|(index, _)| index).collect();
        let last = most.min(ends.len()).saturating_sub(1);
        let end = |index: usize| if index == last { text.len() } else { ends[index + 1] };
        ends.iter()
            .take(last + 1)
            .enumerate()
            .map(|(index, start)| Value::text(&text[*start..end(index)]))
            .collect()
    } else {
        text.splitn(most, by).map(Value::text).collect()
    };
    Ok(Value::List(Arc::new(parts)))
}

fn join(meter: &mut Meter, values: &[Value]) -> CallResult {
    let between = values.get(1).map_or("", text_of);
    let mut joined = String::new();
    for (index, item) in items(&values[0]).iter().enumerate() {
        let Value::Text(item) = item else {
            return Err(format!("only texts can be joined, not a {}", Type::of(item).name()));
        };
        meter.take_text(item.len() + between.len())?;
        if index > 0 {
            joined.push_str(between);
        }
        joined.push_str(item);
    }
    Ok(Value::text(&joined))
}

pub(super) const FORMAT_FUNCTIONS: &[Function] = &[
    Function::method("format", &[Text, List], Text, |meter, values| {
        format(meter, text_of(&values[0]), items(&values[1])).map(|text| Value::text(&text))
    }),
    Function::global("strings.quote", &[Text], Text, |meter, values| {
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
