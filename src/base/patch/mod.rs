//! RFC 6902 patches: an object and operations → the patched object, all or nothing.
//!
//! In `test`, 1 and 1.0 are equal, as the RFC has it. Messages name the part of the path that is missing, and
//! never show values: they may be a Secret's.

mod equal;
mod limits;
pub mod operations;
mod pointer;
pub mod sops;
pub mod variables;

use serde_json::Value as Json;

use crate::diag::{Diagnostic, Pos};
use crate::model::{Operation, Pointer, Verb};
use limits::Budget;
use pointer::Fault;

pub use operations::{Style, operations};
pub use variables::Target;

/// A patched object.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    pub object: Json,
    /// Operations that succeeded but may be slips.
    pub warnings: Vec<Diagnostic>,
}

/// The operation that failed, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatchError {
    /// The operation's place in the patch, from 0.
    pub index: usize,
    pub at: Pos,
    pub message: String,
    pub hint: Option<String>,
}

/// Applies the operations in order to a copy of the object. The first failure ends it.
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

/// Applies an operation and returns a warning's message where one is due.
fn step(
    object: &mut Json,
    operation: &Operation,
    target: Target<'_>,
    budget: &mut Budget,
) -> Result<Option<String>, Fault> {
    sops::check(object, operation)?;
    let path = &operation.path;
    let value = || value_of(operation, target);
    match operation.verb {
        Verb::Test => {
            let found = pointer::find(object, path.parts())?;
            match equal::equal(found, &value()?) {
                true => Ok(None),
                false => Err(Fault::new("the value there is another one")),
            }
        }
        Verb::Add => add(object, path, value()?),
        Verb::Remove => {
            if path.parts().is_empty() {
                return Err(Fault::new("the whole object cannot be removed"));
            }
            pointer::take(object, path)?;
            Ok(None)
        }
        Verb::Replace => match pointer::find(object, path.parts()) {
            Ok(_) => {
                let value = value()?;
                limits::check_depth(path, &value)?;
                *pointer::find_mut(object, path.parts())? = value;
                Ok(None)
            }
            Err(_) if operation.replace_may_add && pointer::is_absent_key(object, path) => {
                add(object, path, value()?)?;
                Ok(Some(format!("`replace` of `{path}` sets a key that was not there")))
            }
            Err(fault) => Err(fault),
        },
        Verb::Move | Verb::Copy => {
            let from = operation.from.as_ref().ok_or_else(|| Fault::new("it has no `from`"))?;
            let source = pointer::find(object, from.parts())?;
            budget.admit_copy(source, operation.verb)?;
            if operation.verb == Verb::Copy {
                return add(object, path, source.clone());
            }
            if path == from {
                // To where it is already: nothing to do, and the whole object cannot be taken out.
                return Ok(None);
            }
            if path.parts().starts_with(from.parts()) {
                return Err(Fault::new(format!("a value cannot be moved into itself: `{from}` holds it")));
            }
            limits::check_depth(path, source)?;
            let taken = pointer::take(object, from)?;
            pointer::add(object, path, taken)?;
            Ok(None)
        }
    }
}

fn add(object: &mut Json, path: &Pointer, value: Json) -> Result<Option<String>, Fault> {
    limits::check_depth(path, &value)?;
    pointer::add(object, path, value).map(|()| None)
}

fn value_of(operation: &Operation, target: Target<'_>) -> Result<Json, Fault> {
    let value = operation.value.as_ref().ok_or_else(|| Fault::new("it has no `value`"))?;
    if operation.variables {
        return variables::fill(value, target).map_err(Fault::new);
    }
    Ok(value.clone())
}

#[cfg(test)]
mod tests;
