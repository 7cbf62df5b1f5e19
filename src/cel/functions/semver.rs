//! Semantic versions, as Kubernetes reads them: strictly, or with `v` and missing parts if asked to.

use std::cmp::Ordering;
use std::sync::Arc;

use super::function::{Function, text_of};
use crate::types::Type::{self, Bool, Int, Text};
use crate::value::Value;

/// A version. What was built makes no difference between versions and is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    parts: [u64; 3],
    before: Vec<Part>,
}

/// A part behind the `-`. Numbers come before texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("semver", &[Text], Type::Semver, |_, values| read(values)),
    Function::global("semver", &[Text, Bool], Type::Semver, |_, values| read(values)),
    Function::global("isSemver", &[Text], Bool, |_, values| Ok(Value::Bool(read(values).is_ok()))),
    Function::global("isSemver", &[Text, Bool], Bool, |_, values| Ok(Value::Bool(read(values).is_ok()))),
    Function::method("major", &[Type::Semver], Int, |_, values| part(values, 0)),
    Function::method("minor", &[Type::Semver], Int, |_, values| part(values, 1)),
    Function::method("patch", &[Type::Semver], Int, |_, values| part(values, 2)),
    Function::method("isLessThan", &[Type::Semver, Type::Semver], Bool, |_, values| {
        Ok(Value::Bool(values[0].compare(&values[1]) == Some(Ordering::Less)))
    }),
    Function::method("isGreaterThan", &[Type::Semver, Type::Semver], Bool, |_, values| {
        Ok(Value::Bool(values[0].compare(&values[1]) == Some(Ordering::Greater)))
    }),
    Function::method("compareTo", &[Type::Semver, Type::Semver], Int, |_, values| {
        Ok(Value::Int(values[0].compare(&values[1]).map_or(0, |order| order as i64)))
    }),
];

impl Semver {
    /// A version that has neither parts behind it comes after those that do.
    pub(crate) fn compare(&self, other: &Semver) -> Ordering {
        let by_before = match (self.before.is_empty(), other.before.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.before.cmp(&other.before),
        };
        self.parts.cmp(&other.parts).then(by_before)
    }
}

fn read(values: &[Value]) -> Result<Value, String> {
    let text = text_of(&values[0]);
    let lenient = matches!(values.get(1), Some(Value::Bool(true)));
    let version = if lenient { normalized(text).and_then(|text| parse(&text)) } else { parse(text) };
    version
        .map(|version| Value::Semver(Arc::new(version)))
        .ok_or_else(|| format!("`{text}` is no semantic version"))
}

fn part(values: &[Value], index: usize) -> Result<Value, String> {
    let Value::Semver(version) = &values[0] else { return Ok(Value::Int(0)) };
    i64::try_from(version.parts[index]).map(Value::Int).map_err(|_| "this number is too large".to_owned())
}

/// Without `v`, with three parts, and these without leading zeros. A short version has nothing behind it.
fn normalized(text: &str) -> Option<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts: Vec<&str> = numbers
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            part => part,
        })
        .collect();
    if parts.len() < 3 && !rest.is_empty() {
        return None;
    }
    while parts.len() < 3 {
        parts.push("0");
    }
    Some(format!("{}{rest}", parts.join(".")))
}

fn parse(text: &str) -> Option<Semver> {
    let (text, built) = text.split_once('+').map_or((text, None), |(text, built)| (text, Some(built)));
    let (numbers, before) = text.split_once('-').map_or((text, None), |(text, before)| (text, Some(before)));
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if built.is_some_and(|built| !built.split('.').all(is_word)) {
        return None;
    }
    let mut parts = [0; 3];
    let mut given = numbers.split('.');
    for part in &mut parts {
        *part = number(given.next()?)?;
    }
    if given.next().is_some() {
        return None;
    }
    let one = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
        _ if !is_word(part) => None,
        true => number(part).map(Part::Number),
        false => Some(Part::Text(part.to_owned())),
    };
    let before = before.map_or(Some(Vec::new()), |before| before.split('.').map(one).collect())?;
    Some(Semver { parts, before })
}

/// Digits without leading zeros.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}
