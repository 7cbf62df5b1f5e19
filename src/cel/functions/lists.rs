//! Lists and maps: their size, and Kubernetes' functions for lists.

use std::cmp::Ordering;

use super::function::{Answer, Function, items};
use super::operators;
use crate::meter::Meter;
use crate::types::Type::{Any, Bool, Int, List, Map};
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

fn size(_: &mut Meter, values: &[Value]) -> Answer {
    let size = match &values[0] {
        Value::Map(entries) => entries.len(),
        list => items(list).len(),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn ordered(a: &Value, b: &Value) -> Result<Ordering, String> {
    a.compare(b).ok_or_else(|| "these items have no order".to_owned())
}

fn extreme(meter: &mut Meter, values: &[Value], wanted: Ordering) -> Answer {
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
