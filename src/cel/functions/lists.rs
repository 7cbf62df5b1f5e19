//! Lists and maps: their size, and Kubernetes' functions for lists; and optional values: creating them,
//! and reading their contents.
//!
//! `or` and `orValue` are not functions, because they may skip their argument.

use std::cmp::Ordering;

use super::{CallResult, Function, items, operators};
use crate::run::Meter;
use crate::types::Type::{Any, Bool, Int, List, Map, Optional};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("size", &[List], Int, size),
    Function::method("size", &[List], Int, size),
    Function::global("size", &[Map], Int, size),
    Function::method("size", &[Map], Int, size),
    Function::method("isSorted", &[List], Bool, |meter, values| {
        let items = charged(meter, values)?;
        for pair in items.windows(2) {
            if ordered(&pair[0], &pair[1])? == Ordering::Greater {
                return Ok(Value::Bool(false));
            }
        }
        Ok(Value::Bool(true))
    }),
    Function::method("sum", &[List], Any, |meter, values| {
        let Some((first, rest)) = charged(meter, values)?.split_first() else { return Ok(Value::Int(0)) };
        rest.iter().try_fold(first.clone(), |sum, item| match (&sum, item) {
            (Value::Span(a), Value::Span(b)) => {
                a.checked_add(*b).map(Value::Span).ok_or_else(|| "the sum is too long".to_owned())
            }
            _ => operators::add(&sum, item),
        })
    }),
    Function::method("min", &[List], Any, |meter, values| extreme(meter, values, Ordering::Less)),
    Function::method("max", &[List], Any, |meter, values| extreme(meter, values, Ordering::Greater)),
    Function::method("indexOf", &[List, Any], Int, |meter, values| {
        let found = find(meter, &values[1], items(&values[0]).iter().enumerate())?;
        Ok(Value::Int(found))
    }),
    Function::method("lastIndexOf", &[List, Any], Int, |meter, values| {
        let found = find(meter, &values[1], items(&values[0]).iter().enumerate().rev())?;
        Ok(Value::Int(found))
    }),
];

fn charged<'v>(meter: &mut Meter, values: &'v [Value]) -> Result<&'v [Value], String> {
    let items = items(&values[0]);
    meter.take(items.len())?;
    Ok(items)
}

fn size(_: &mut Meter, values: &[Value]) -> CallResult {
    let size = match &values[0] {
        Value::Map(entries) => entries.len(),
        list => items(list).len(),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn ordered(a: &Value, b: &Value) -> Result<Ordering, String> {
    a.compare(b).ok_or_else(|| "these items have no order".to_owned())
}

fn extreme(meter: &mut Meter, values: &[Value], wanted: Ordering) -> CallResult {
    let items = charged(meter, values)?;
    let Some((first, rest)) = items.split_first() else {
        return Err("an empty list has neither a smallest nor a largest item".to_owned());
    };
    let mut best = first;
    for item in rest {
        if ordered(item, best)? == wanted {
            best = item;
        }
    }
    Ok(best.clone())
}

fn find<'v>(
    meter: &mut Meter,
    wanted: &Value,
    items: impl Iterator<Item = (usize, &'v Value)>,
) -> Result<i64, String> {
    for (index, item) in items {
        if item.equals(wanted, meter)? {
            return Ok(i64::try_from(index).unwrap_or(i64::MAX));
        }
    }
    Ok(-1)
}

pub(super) const OPTIONAL_FUNCTIONS: &[Function] = &[
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
