//! Optional values: creating them, and reading their contents. `or` and `orValue` are not functions, because
//! they may skip their argument.

use super::function::{Function, items};
use crate::meter::Meter;
use crate::types::Type::{Any, Bool, List, Optional};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("optional.of", &[Any], Optional, |_, values| Ok(Value::some(values[0].clone()))),
    Function::global("optional.none", &[], Optional, |_, _| Ok(Value::Optional(None))),
    Function::global("optional.ofNonZeroValue", &[Any], Optional, |_, values| {
        Ok(if values[0].is_zero() { Value::Optional(None) } else { Value::some(values[0].clone()) })
    }),
    Function::method("hasValue", &[Optional], Bool, |_, values| {
        Ok(Value::Bool(matches!(values[0], Value::Optional(Some(_)))))
    }),
    Function::method("value", &[Optional], Any, |_, values| match &values[0] {
        Value::Optional(Some(value)) => Ok(value.as_ref().clone()),
        _ => Err("there is no value".to_owned()),
    }),
    Function::method("first", &[List], Optional, |_, values| Ok(end(items(&values[0]).first()))),
    Function::method("last", &[List], Optional, |_, values| Ok(end(items(&values[0]).last()))),
    Function::global("optional.unwrap", &[List], List, unwrap),
    Function::method("unwrapOpt", &[List], List, unwrap),
];

fn end(item: Option<&Value>) -> Value {
    item.map_or(Value::Optional(None), |item| Value::some(item.clone()))
}

/// Returns the values of a list's optionals, without the empty ones.
fn unwrap(meter: &mut Meter, values: &[Value]) -> Result<Value, String> {
    meter.take(items(&values[0]).len())?;
    let mut held = Vec::new();
    for item in items(&values[0]) {
        match item {
            Value::Optional(value) => held.extend(value.as_ref().map(|value| value.as_ref().clone())),
            _ => return Err("only optionals can be unwrapped".to_owned()),
        }
    }
    Ok(Value::list(held))
}
