//! Comparisons and arithmetic. A result that exceeds its type is an error, never another number.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Call, CallResult, Function, items, text_of};
use crate::types::Type;
use crate::value::Value;

pub(super) const EQUALITY: &[Function] = &[
    Function::global("_==_", &[Type::Any, Type::Any], Type::Bool, |meter, values| {
        Ok(Value::Bool(values[0].equals(&values[1], meter)?))
    }),
    Function::global("_!=_", &[Type::Any, Type::Any], Type::Bool, |meter, values| {
        Ok(Value::Bool(!values[0].equals(&values[1], meter)?))
    }),
    Function::global("@in", &[Type::Any, Type::List], Type::Bool, |meter, values| {
        for item in items(&values[1]) {
            if values[0].equals(item, meter)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
    Function::global("@in", &[Type::Any, Type::Map], Type::Bool, |_, values| {
        let Value::Map(entries) = &values[1] else { return Ok(Value::Bool(false)) };
        Ok(Value::Bool(values[0].key().is_some_and(|key| entries.contains_key(&key))))
    }),
    Function::global("!_", &[Type::Bool], Type::Bool, |_, values| match &values[0] {
        Value::Bool(value) => Ok(Value::Bool(!value)),
        _ => Err("a boolean is expected".to_owned()),
    }),
];

/// The overloads of an ordering operator: for each type with an order, and between number types.
macro_rules! ordered {
    ($($name:literal $call:expr;)*) => {
        &[$(
            Function::global($name, &[Type::Bool, Type::Bool], Type::Bool, $call),
            Function::global($name, &[Type::Int, Type::Int], Type::Bool, $call),
            Function::global($name, &[Type::Int, Type::Uint], Type::Bool, $call),
            Function::global($name, &[Type::Int, Type::Double], Type::Bool, $call),
            Function::global($name, &[Type::Uint, Type::Int], Type::Bool, $call),
            Function::global($name, &[Type::Uint, Type::Uint], Type::Bool, $call),
            Function::global($name, &[Type::Uint, Type::Double], Type::Bool, $call),
            Function::global($name, &[Type::Double, Type::Int], Type::Bool, $call),
            Function::global($name, &[Type::Double, Type::Uint], Type::Bool, $call),
            Function::global($name, &[Type::Double, Type::Double], Type::Bool, $call),
            Function::global($name, &[Type::Text, Type::Text], Type::Bool, $call),
            Function::global($name, &[Type::Bytes, Type::Bytes], Type::Bool, $call),
            Function::global($name, &[Type::Moment, Type::Moment], Type::Bool, $call),
            Function::global($name, &[Type::Span, Type::Span], Type::Bool, $call),
        )*]
    };
}

const LESS: Call = |_, values| ordered(values, |order| order == Ordering::Less);
const LESS_OR_EQUAL: Call = |_, values| ordered(values, |order| order != Ordering::Greater);
const GREATER: Call = |_, values| ordered(values, |order| order == Ordering::Greater);
const GREATER_OR_EQUAL: Call = |_, values| ordered(values, |order| order != Ordering::Less);

pub(super) const ORDER: &[Function] = ordered! {
    "_<_" LESS;
    "_<=_" LESS_OR_EQUAL;
    "_>_" GREATER;
    "_>=_" GREATER_OR_EQUAL;
};

/// NaN has no order with any number.
fn ordered(values: &[Value], holds: fn(Ordering) -> bool) -> CallResult {
    Ok(Value::Bool(values[0].compare(&values[1]).is_some_and(holds)))
}

pub(super) const ARITHMETIC: &[Function] = &[
    Function::global("_+_", &[Type::Int, Type::Int], Type::Int, ADD),
    Function::global("_+_", &[Type::Uint, Type::Uint], Type::Uint, ADD),
    Function::global("_+_", &[Type::Double, Type::Double], Type::Double, ADD),
    Function::global("_-_", &[Type::Int, Type::Int], Type::Int, SUBTRACT),
    Function::global("_-_", &[Type::Uint, Type::Uint], Type::Uint, SUBTRACT),
    Function::global("_-_", &[Type::Double, Type::Double], Type::Double, SUBTRACT),
    Function::global("_*_", &[Type::Int, Type::Int], Type::Int, MULTIPLY),
    Function::global("_*_", &[Type::Uint, Type::Uint], Type::Uint, MULTIPLY),
    Function::global("_*_", &[Type::Double, Type::Double], Type::Double, MULTIPLY),
    Function::global("_/_", &[Type::Int, Type::Int], Type::Int, DIVIDE),
    Function::global("_/_", &[Type::Uint, Type::Uint], Type::Uint, DIVIDE),
    Function::global("_/_", &[Type::Double, Type::Double], Type::Double, DIVIDE),
    Function::global("_%_", &[Type::Int, Type::Int], Type::Int, REMAINDER),
    Function::global("_%_", &[Type::Uint, Type::Uint], Type::Uint, REMAINDER),
    Function::global("-_", &[Type::Int], Type::Int, NEGATE),
    Function::global("-_", &[Type::Double], Type::Double, NEGATE),
    Function::global("_+_", &[Type::Text, Type::Text], Type::Text, |meter, values| {
        let (a, b) = (text_of(&values[0]), text_of(&values[1]));
        meter.take_text(a.len() + b.len())?;
        Ok(Value::text(&format!("{a}{b}")))
    }),
    Function::global("_+_", &[Type::Bytes, Type::Bytes], Type::Bytes, |meter, values| {
        let (Value::Bytes(a), Value::Bytes(b)) = (&values[0], &values[1]) else { return Err(misfit()) };
        meter.take_text(a.len() + b.len())?;
        Ok(Value::Bytes([a.as_ref(), b.as_ref()].concat().into()))
    }),
    Function::global("_+_", &[Type::List, Type::List], Type::List, |meter, values| {
        let (Value::List(a), Value::List(b)) = (&values[0], &values[1]) else { return Err(misfit()) };
        meter.take(a.len() + b.len())?;
        Ok(Value::List(Arc::new(a.iter().chain(b.iter()).cloned().collect())))
    }),
];

const ADD: Call = |_, values| add(&values[0], &values[1]);
const SUBTRACT: Call = |_, values| of_numbers(values, i64::checked_sub, u64::checked_sub, |a, b| a - b);
const MULTIPLY: Call = |_, values| of_numbers(values, i64::checked_mul, u64::checked_mul, |a, b| a * b);
const DIVIDE: Call = |_, values| of_numbers(values, i64::checked_div, u64::checked_div, |a, b| a / b);
const REMAINDER: Call = |_, values| of_numbers(values, i64::checked_rem, u64::checked_rem, |a, b| a % b);

const NEGATE: Call = |_, values| match &values[0] {
    Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(misfit),
    Value::Double(value) => Ok(Value::Double(-value)),
    _ => Err(misfit()),
};

/// Returns the sum of two numbers of one type.
pub(super) fn add(a: &Value, b: &Value) -> CallResult {
    of_numbers(&[a.clone(), b.clone()], i64::checked_add, u64::checked_add, |a, b| a + b)
}

fn of_numbers(
    values: &[Value],
    int: fn(i64, i64) -> Option<i64>,
    uint: fn(u64, u64) -> Option<u64>,
    double: fn(f64, f64) -> f64,
) -> CallResult {
    let given = match values {
        [Value::Int(a), Value::Int(b)] => int(*a, *b).map(Value::Int),
        [Value::Uint(a), Value::Uint(b)] => uint(*a, *b).map(Value::Uint),
        [Value::Double(a), Value::Double(b)] => Some(Value::Double(double(*a, *b))),
        _ => None,
    };
    given.ok_or_else(misfit)
}

fn misfit() -> String {
    "the result is no number of this type".to_owned()
}
