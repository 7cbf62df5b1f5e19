//! JSON pointers (RFC 6901): the value they lead to, or the part that leads nowhere.

use serde_json::Value as Json;

use crate::diag::did_you_mean;
use crate::model::{Operation, Verb};

const KEYS_SHOWN: usize = 8;

/// The reason why an operation cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Fault {
    pub(super) fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), hint: None }
    }
}

/// Checks that the text is a pointer: empty, or parts that each begin with a slash.
pub(super) fn check_form(path: &str) -> Result<(), Fault> {
    if !path.is_empty() && !path.starts_with('/') {
        let hint = Some(format!("write `/{path}`"));
        return Err(Fault { message: format!("the path `{path}` does not begin with a slash"), hint });
    }
    let sound = path.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if !sound {
        let message = format!("in the path `{path}` a `~` is not followed by 0 or 1");
        return Err(Fault { message, hint: Some("`~0` stands for `~` and `~1` for `/`".to_owned()) });
    }
    Ok(())
}

/// The parts of a pointer, unescaped, each with the pointer up to it.
pub(super) fn parts(path: &str) -> impl Iterator<Item = (&str, String)> {
    let ends = path.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at);
    let part = |start: usize| {
        let rest = &path[start + 1..];
        let part = rest.split('/').next().unwrap_or_default();
        (&path[..start], part.replace("~1", "/").replace("~0", "~"))
    };
    ends.map(part)
}

/// The operation with list indexes from the start, where its path has negative ones that lead somewhere.
/// `add` counts from behind the last item, as the place to add at.
pub(super) fn from_the_start(object: &Json, operation: &Operation) -> Option<Operation> {
    if !operation.path.contains("/-") {
        return None;
    }
    let (mut value, mut path) = (object, String::new());
    let count = operation.path.split('/').skip(1).count();
    for (place, written) in operation.path.split('/').skip(1).enumerate() {
        let is_last = place + 1 == count;
        let mut part = written.to_owned();
        if let (Json::Array(items), Ok(number @ ..=-1)) = (value, written.parse::<i64>()) {
            let room = usize::from(is_last && operation.verb == Verb::Add);
            let back = usize::try_from(number.unsigned_abs()).ok()?;
            part = (items.len() + room).checked_sub(back)?.to_string();
        }
        path = format!("{path}/{part}");
        if !is_last {
            value = find(object, &path).ok()?;
        }
    }
    Some(Operation { path, ..operation.clone() })
}

/// The value a pointer leads to, or which of its parts is missing and what is there in its place.
pub(super) fn find<'a>(object: &'a Json, path: &str) -> Result<&'a Json, Fault> {
    parts(path).try_fold(object, |value, (before, part)| enter(value, before, &part))
}

/// Checks that a value can be added at a pointer: all parts but the last exist, and the last is a key, an index up to
/// the list's length, or `-`.
pub(super) fn check_place(object: &Json, path: &str) -> Result<(), Fault> {
    let Some((parent, _)) = path.rsplit_once('/') else { return Ok(()) };
    let value = find(object, parent)?;
    let (_, part) = parts(path).last().unwrap_or_default();
    match value {
        Json::Object(_) => Ok(()),
        Json::Array(_) if part == "-" => Ok(()),
        Json::Array(items) => match index(&part)? {
            index if index <= items.len() => Ok(()),
            index => Err(out_of_range(index, parent, items.len())),
        },
        other => Err(holds_nothing(other, parent, &part)),
    }
}

/// Reports whether only the last part is missing, and would be a key of a mapping.
pub(super) fn is_absent_key(object: &Json, path: &str) -> bool {
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    let (_, part) = parts(path).last().unwrap_or_default();
    matches!(find(object, parent), Ok(Json::Object(fields)) if !fields.contains_key(&part))
}

fn enter<'a>(value: &'a Json, before: &str, part: &str) -> Result<&'a Json, Fault> {
    match value {
        Json::Object(fields) => fields.get(part).ok_or_else(|| {
            let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
            let message = format!("there is no `{part}` in {}, {}", place(before), known(&keys));
            Fault { message, hint: did_you_mean(part, keys.iter().copied()) }
        }),
        Json::Array(_) if part == "-" => {
            Err(Fault::new("`-` stands for the place behind the last item, where nothing is"))
        }
        Json::Array(items) => {
            let index = index(part)?;
            items.get(index).ok_or_else(|| out_of_range(index, before, items.len()))
        }
        other => Err(holds_nothing(other, before, part)),
    }
}

fn index(part: &str) -> Result<usize, Fault> {
    let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if part.starts_with('-') && part[1..].bytes().all(|byte| byte.is_ascii_digit()) {
        let message = format!("`{part}` is a negative list index");
        return Err(Fault {
            message,
            hint: Some("items are counted from 0; `-` adds behind the last".to_owned()),
        });
    }
    if !digits {
        return Err(Fault::new(format!("`{part}` is not a list index, but a list is there")));
    }
    if part.len() > 1 && part.starts_with('0') {
        return Err(Fault::new(format!("the list index `{part}` has a leading zero")));
    }
    part.parse().map_err(|_| Fault::new(format!("the list index `{part}` is too large")))
}

fn out_of_range(index: usize, before: &str, length: usize) -> Fault {
    let items = if length == 1 { "item" } else { "items" };
    Fault::new(format!("there is no item {index} in {}, which has {length} {items}", place(before)))
}

fn holds_nothing(value: &Json, before: &str, part: &str) -> Fault {
    let what = match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        _ => "a string",
    };
    Fault::new(format!("{} is {what}, so there is no `{part}` in it", place(before)))
}

fn place(before: &str) -> String {
    if before.is_empty() { "the object".to_owned() } else { format!("`{before}`") }
}

fn known(keys: &[&str]) -> String {
    if keys.is_empty() {
        return "which is empty".to_owned();
    }
    let shown: Vec<String> = keys.iter().take(KEYS_SHOWN).map(|key| format!("`{key}`")).collect();
    let more = if keys.len() > KEYS_SHOWN { ", …" } else { "" };
    format!("which has {}{more}", shown.join(", "))
}
