//! Texts: the standard's methods and those of its extension. Positions count characters.

use std::sync::Arc;

use super::function::{Answer, Function, items, text_of, whole_of};
use crate::meter::Meter;
use crate::types::Type::{self, Bool, Bytes, Int, List, Text};
use crate::value::Value;

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

fn test(meter: &mut Meter, values: &[Value], holds: fn(&str, &str) -> bool) -> Answer {
    let part = text_of(&values[1]);
    meter.take_text(part.len())?;
    Ok(Value::Bool(holds(charged(meter, values)?, part)))
}

fn size(meter: &mut Meter, values: &[Value]) -> Answer {
    let size = match &values[0] {
        Value::Bytes(bytes) => bytes.len(),
        _ => charged(meter, values)?.chars().count(),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

/// Returns the index of a part in a text, in characters; -1 if the text lacks it.
fn index_of(meter: &mut Meter, values: &[Value], last: bool) -> Answer {
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

fn substring(meter: &mut Meter, values: &[Value]) -> Answer {
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

fn replace(meter: &mut Meter, values: &[Value]) -> Answer {
    let (text, from, to) = (charged(meter, values)?, text_of(&values[1]), text_of(&values[2]));
    let limit =
        values.get(3).map(whole_of).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let found = text.matches(from).count().min(limit);
    meter.take_text(found.saturating_mul(to.len()).saturating_add(text.len()))?;
    Ok(Value::text(&text.replacen(from, to, limit)))
}

fn split(meter: &mut Meter, values: &[Value]) -> Answer {
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

fn join(meter: &mut Meter, values: &[Value]) -> Answer {
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
