//! Limits on the size of a patch's result. `copy` can double a value in each step, so a short file could
//! require more memory than there is, or a nesting that no reader supports.

use json_patch::PatchOperation;
use serde_json::Value as Json;

use super::pointer::Fault;
use crate::model::Verb;

/// Twice the size that etcd accepts for an object.
const MOST_COPIED: usize = 3 << 20;

/// Less than berth itself reads, so that no member gets an object that it cannot open.
const DEEPEST: usize = 90;

/// The amount that the copies of a patch have added so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    copied: usize,
}

impl Budget {
    pub(super) fn admit_copy(&mut self, source: &Json, verb: Verb) -> Result<(), Fault> {
        if verb == Verb::Copy {
            self.copied = self.copied.saturating_add(weight(source));
        }
        match self.copied <= MOST_COPIED {
            true => Ok(()),
            false => Err(Fault::new("the copies of this patch add more than 3 MiB")),
        }
    }
}

/// Refuses an operation that would put a value deeper than [`DEEPEST`].
pub(super) fn check_depth(object: &Json, operation: &PatchOperation) -> Result<(), Fault> {
    let depth = match operation {
        PatchOperation::Add(add) => depth(&add.value),
        PatchOperation::Replace(replace) => depth(&replace.value),
        PatchOperation::Move(it) => object.pointer(it.from.as_str()).map_or(0, depth),
        PatchOperation::Copy(it) => object.pointer(it.from.as_str()).map_or(0, depth),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    match operation.path().count().saturating_add(depth) <= DEEPEST {
        true => Ok(()),
        false => Err(Fault::new(format!("the result would be nested more than {DEEPEST} levels deep"))),
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
