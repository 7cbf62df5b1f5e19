//! Semantic versions, read strictly as in Open Cluster Management.

use std::cmp::Ordering;
use std::sync::Arc;

use super::function::{Function, text_of};
use crate::types::Type::{self, Bool, Int, Text};
use crate::value::{Semver, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("semver", &[Text], Type::Semver, |_, values| read(values)),
    Function::global("isSemver", &[Text], Bool, |_, values| Ok(Value::Bool(read(values).is_ok()))),
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

fn read(values: &[Value]) -> Result<Value, String> {
    let text = text_of(&values[0]);
    Semver::read(text)
        .map(|version| Value::Semver(Arc::new(version)))
        .ok_or_else(|| format!("`{text}` is no semantic version"))
}

fn part(values: &[Value], index: usize) -> Result<Value, String> {
    let Value::Semver(version) = &values[0] else { return Ok(Value::Int(0)) };
    i64::try_from(version.parts[index]).map(Value::Int).map_err(|_| "this number is too large".to_owned())
}
