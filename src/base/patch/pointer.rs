//! Finds the values of pointers, or the first missing part.

use json_patch::jsonptr::PointerBuf;
use serde_json::Value as Json;

use crate::diag::did_you_mean;
use crate::model::{Operation, Pointer, Verb};

const KEYS_SHOWN: usize = 8;

/// The reason why an operation cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OperationFault {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl OperationFault {
    pub(super) fn new(message: impl Into<String>) -> OperationFault {
        OperationFault { message: message.into(), hint: None }
    }
}

/// Returns the operation with negative list indexes counted from the start, if its path has valid ones. For
/// `add`, `-1` is the place after the last item.
pub(super) fn from_the_start(object: &Json, operation: &Operation) -> Option<Operation> {
    let parts = operation.path.parts();
    if !parts.iter().any(|part| part.starts_with('-')) {
        return None;
    }
    let (mut value, mut counted) = (object, Vec::new());
    for (place, written) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        let mut part = written.clone();
        if let (Json::Array(items), Ok(number @ ..=-1)) = (value, written.parse::<i64>()) {
            let room = usize::from(is_last && operation.verb == Verb::Add);
            let back = usize::try_from(number.unsigned_abs()).ok()?;
            part = (items.len() + room).checked_sub(back)?.to_string();
        }
        if !is_last {
            value = enter(value, &counted, &part).ok()?;
        }
        counted.push(part);
    }
    Some(Operation { path: Pointer::of(counted), ..operation.clone() })
}

/// Returns the value at this path; the error names the missing part and the value in its place.
pub(super) fn find<'a>(object: &'a Json, parts: &[String]) -> Result<&'a Json, OperationFault> {
    parts.iter().enumerate().try_fold(object, |value, (index, part)| enter(value, &parts[..index], part))
}

/// Checks that a value can be added at a pointer: all parts but the last exist, and the last is a key, an
/// index up to the list's length, or `-`.
pub(super) fn check_place(object: &Json, path: &Pointer) -> Result<(), OperationFault> {
    let Some((last, parents)) = path.parts().split_last() else { return Ok(()) };
    match find(object, parents)? {
        Json::Object(_) => Ok(()),
        Json::Array(_) if last == "-" => Ok(()),
        Json::Array(items) => match index(last)? {
            index if index <= items.len() => Ok(()),
            index => Err(out_of_range(index, parents, items.len())),
        },
        other => Err(holds_nothing(other, parents, last)),
    }
}

/// Returns the pointer in json-patch's form.
pub(super) fn written(path: &Pointer) -> PointerBuf {
    PointerBuf::from_tokens(path.parts())
}

/// Reports whether only the last part is missing, and would be a key of a mapping.
pub(super) fn is_absent_key(object: &Json, path: &Pointer) -> bool {
    let Some((last, parents)) = path.parts().split_last() else { return false };
    matches!(find(object, parents), Ok(Json::Object(fields)) if !fields.contains_key(last))
}

fn enter<'a>(value: &'a Json, before: &[String], part: &str) -> Result<&'a Json, OperationFault> {
    match value {
        Json::Object(fields) => fields.get(part).ok_or_else(|| {
            let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
            let message = format!("there is no `{part}` in {}, {}", place(before), known(&keys));
            OperationFault { message, hint: did_you_mean(part, keys.iter().copied()) }
        }),
        Json::Array(_) if part == "-" => {
            Err(OperationFault::new("`-` is the position after the last item, which holds no value"))
        }
        Json::Array(items) => {
            let index = index(part)?;
            items.get(index).ok_or_else(|| out_of_range(index, before, items.len()))
        }
        other => Err(holds_nothing(other, before, part)),
    }
}

fn index(part: &str) -> Result<usize, OperationFault> {
    let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if part.starts_with('-') && part[1..].bytes().all(|byte| byte.is_ascii_digit()) {
        let message = format!("`{part}` is a negative list index");
        return Err(OperationFault {
            message,
            hint: Some("items are counted from 0; `-` adds behind the last".to_owned()),
        });
    }
    if !digits {
        return Err(OperationFault::new(format!("`{part}` is not a list index, but a list is there")));
    }
    if part.len() > 1 && part.starts_with('0') {
        return Err(OperationFault::new(format!("the list index `{part}` has a leading zero")));
    }
    part.parse().map_err(|_| OperationFault::new(format!("the list index `{part}` is too large")))
}

fn out_of_range(index: usize, before: &[String], length: usize) -> OperationFault {
    let items = if length == 1 { "item" } else { "items" };
    OperationFault::new(format!("there is no item {index} in {}, which has {length} {items}", place(before)))
}

fn holds_nothing(value: &Json, before: &[String], part: &str) -> OperationFault {
    let what = match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        _ => "a string",
    };
    OperationFault::new(format!("{} is {what}, so there is no `{part}` in it", place(before)))
}

fn place(before: &[String]) -> String {
    if before.is_empty() { "the object".to_owned() } else { format!("`{}`", Pointer::of(before)) }
}

fn known(keys: &[&str]) -> String {
    if keys.is_empty() {
        return "which is empty".to_owned();
    }
    let shown: Vec<String> = keys.iter().take(KEYS_SHOWN).map(|key| format!("`{key}`")).collect();
    let more = if keys.len() > KEYS_SHOWN { ", …" } else { "" };
    format!("which has {}{more}", shown.join(", "))
}
