//! RFC 6902 patches: an object and operations → the patched object, all or nothing.
//!
//! json-patch applies add, remove, replace, move and copy. berth implements `test`, because for the RFC 1
//! equals 1.0; `replace` of an absent key, which some dialects allow; the messages, which name the missing
//! part of the path; and the limits on growth by copies. Messages never show values, which may be a Secret's.
//!
//! Equality in a `test`: numbers by value, mappings in any order.
//!
//! Limits on the size of a patch's result. `copy` can double a value in each step, so a short file could
//! require more memory than there is, or a nesting that no reader supports.

pub mod operations;
mod pointer;
pub mod sops;
pub mod variables;

#[cfg(test)]
mod tests;

use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation,
};
use serde_json::{Number, Value as Json};

use crate::diag::{Diagnostic, Pos};
use crate::model::{Operation, Pointer, Verb};
use pointer::OperationFault;

pub use operations::{PatchRules, operations};
pub use variables::Target;

/// A patched object.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    pub object: Json,
    /// Operations that succeeded but may be mistakes.
    pub warnings: Vec<Diagnostic>,
}

/// The failed operation, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatchError {
    /// The operation's index in the patch.
    pub index: usize,
    pub at: Pos,
    pub message: String,
    pub hint: Option<String>,
}

/// Applies the operations in order to a copy of the object. The first failure ends the patch.
pub fn apply(object: &Json, operations: &[Operation], target: Target<'_>) -> Result<Patched, PatchError> {
    let mut object = object.clone();
    let (mut warnings, mut budget) = (Vec::new(), Budget::default());
    for (index, operation) in operations.iter().enumerate() {
        let counted = operation.from_the_end.then(|| pointer::from_the_start(&object, operation)).flatten();
        let operation = counted.as_ref().unwrap_or(operation);
        let note = step(&mut object, operation, target, &mut budget).map_err(|fault| PatchError {
            index,
            at: operation.at.clone(),
            message: format!("`{}` of `{}` failed: {}", operation.verb.word(), operation.path, fault.message),
            hint: fault.hint,
        })?;
        warnings.extend(note.map(|note| Diagnostic::warning(operation.at.clone(), note)));
    }
    Ok(Patched { object, warnings })
}

/// Returns operations that make one object from the other, without places.
pub fn operations_between(before: &Json, after: &Json) -> Vec<Operation> {
    let operation = |one: PatchOperation| {
        let (verb, value) = match one.clone() {
            PatchOperation::Add(add) => (Verb::Add, Some(add.value)),
            PatchOperation::Replace(replace) => (Verb::Replace, Some(replace.value)),
            // A difference is made of these three.
            _ => (Verb::Remove, None),
        };
        let path = Pointer::parse(one.path().as_str()).ok()?;
        let at = Pos::default();
        let plain = (false, false, false);
        let (replace_may_add, from_the_end, variables) = plain;
        Some(Operation { verb, path, from: None, value, replace_may_add, from_the_end, variables, at })
    };
    json_patch::diff(before, after).0.into_iter().filter_map(operation).collect()
}

/// Applies an operation; returns the message of a warning, if any.
fn step(
    object: &mut Json,
    operation: &Operation,
    target: Target<'_>,
    budget: &mut Budget,
) -> Result<Option<String>, OperationFault> {
    sops::check(object, operation)?;
    let place = &operation.path;
    let path = pointer::written(place);
    let value = || value_of(operation, target);
    let mut warning = None;
    let todo = match operation.verb {
        Verb::Test => {
            let found = pointer::find(object, place.parts())?;
            return match equal(found, &value()?) {
                true => Ok(None),
                false => Err(OperationFault::new("the value there is another one")),
            };
        }
        Verb::Add => PatchOperation::Add(AddOperation { path, value: value()? }),
        Verb::Remove => {
            if place.parts().is_empty() {
                return Err(OperationFault::new("the whole object cannot be removed"));
            }
            pointer::find(object, place.parts())?;
            PatchOperation::Remove(RemoveOperation { path })
        }
        Verb::Replace => match pointer::find(object, place.parts()) {
            Ok(_) => PatchOperation::Replace(ReplaceOperation { path, value: value()? }),
            Err(_) if operation.replace_may_add && pointer::is_absent_key(object, place) => {
                warning = Some(format!("`replace` of `{place}` sets a key that was not there"));
                PatchOperation::Add(AddOperation { path, value: value()? })
            }
            Err(fault) => return Err(fault),
        },
        Verb::Move | Verb::Copy => {
            let from = operation.from.as_ref().ok_or_else(|| OperationFault::new("it has no `from`"))?;
            budget.admit_copy(pointer::find(object, from.parts())?, operation.verb)?;
            match operation.verb {
                Verb::Copy => PatchOperation::Copy(CopyOperation { from: pointer::written(from), path }),
                // A move to the same place changes nothing, and the whole object cannot be moved.
                _ if place == from => return Ok(None),
                _ if place.parts().starts_with(from.parts()) => {
                    return Err(OperationFault::new(format!(
                        "a value cannot be moved into itself: `{from}` holds it"
                    )));
                }
                _ => PatchOperation::Move(MoveOperation { from: pointer::written(from), path }),
            }
        }
    };
    check_depth(object, &todo)?;
    if let Err(error) = json_patch::patch_unsafe(object, &[todo]) {
        // The move has already removed its value, so the place is checked without it.
        let fault = pointer::check_place(object, place).err();
        return Err(fault.unwrap_or_else(|| OperationFault::new(error.kind.to_string())));
    }
    Ok(warning)
}

fn value_of(operation: &Operation, target: Target<'_>) -> Result<Json, OperationFault> {
    let value = operation.value.as_ref().ok_or_else(|| OperationFault::new("it has no `value`"))?;
    if operation.variables {
        return variables::fill(value, target).map_err(OperationFault::new);
    }
    Ok(value.clone())
}

fn equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => numbers_equal(a, b),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

fn numbers_equal(a: &Number, b: &Number) -> bool {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64() == b.as_f64(),
        _ => false,
    }
}

/// Returns the number as an integer, if it is one. As floats, large neighbours would be equal.
fn whole(number: &Number) -> Option<i128> {
    if let Some(value) = number.as_i64() {
        return Some(value.into());
    }
    if let Some(value) = number.as_u64() {
        return Some(value.into());
    }
    number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 1e30).map(|value| value as i128)
}

/// Twice the size that etcd accepts for an object.
const MOST_COPIED: usize = 3 << 20;

/// Less than berth itself reads, so that no member gets an object that it cannot open.
const DEEPEST: usize = 90;

/// The amount that the copies of a patch have added so far.
#[derive(Debug, Default)]
struct Budget {
    copied: usize,
}

impl Budget {
    fn admit_copy(&mut self, source: &Json, verb: Verb) -> Result<(), OperationFault> {
        if verb == Verb::Copy {
            self.copied = self.copied.saturating_add(weight(source));
        }
        match self.copied <= MOST_COPIED {
            true => Ok(()),
            false => Err(OperationFault::new("the copies of this patch add more than 3 MiB")),
        }
    }
}

/// Refuses an operation that would put a value deeper than [`DEEPEST`].
fn check_depth(object: &Json, operation: &PatchOperation) -> Result<(), OperationFault> {
    let depth = match operation {
        PatchOperation::Add(add) => depth(&add.value),
        PatchOperation::Replace(replace) => depth(&replace.value),
        PatchOperation::Move(it) => object.pointer(it.from.as_str()).map_or(0, depth),
        PatchOperation::Copy(it) => object.pointer(it.from.as_str()).map_or(0, depth),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    match operation.path().count().saturating_add(depth) <= DEEPEST {
        true => Ok(()),
        false => {
            Err(OperationFault::new(format!("the result would be nested more than {DEEPEST} levels deep")))
        }
    }
}

/// Returns the approximate number of bytes of a value.
fn weight(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len() + 2,
        Json::Array(items) => items.iter().map(weight).sum::<usize>() + 2,
        Json::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + 4 + weight(value)).sum::<usize>() + 2
        }
        _ => 8,
    }
}

fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
