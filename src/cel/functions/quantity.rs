//! Kubernetes' quantities: `quantity("1.5Gi")` and its methods.

use super::function::{Answer, Function, text_of, whole_of};
use crate::types::Type::{self, Bool, Double, Int, Text};
use crate::value::Value;
use berth_base::model;

const NANOS: i128 = 1_000_000_000;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("quantity", &[Text], Type::Quantity, |_, values| {
        let text = text_of(&values[0]);
        text.parse()
            .map(Value::Quantity)
            .map_err(|fault: model::quantity::NotAQuantity| format!("`{text}`: {fault}"))
    }),
    Function::global("isQuantity", &[Text], Bool, |_, values| {
        Ok(Value::Bool(text_of(&values[0]).parse::<model::Quantity>().is_ok()))
    }),
    // A function and not a method, as Kubernetes declares it.
    Function::global("sign", &[Type::Quantity], Int, |_, values| {
        Ok(Value::Int(i64::try_from(nanos(&values[0]).signum()).unwrap_or_default()))
    }),
    Function::method("isInteger", &[Type::Quantity], Bool, |_, values| {
        Ok(Value::Bool(integer(&values[0]).is_some()))
    }),
    Function::method("asInteger", &[Type::Quantity], Int, |_, values| {
        integer(&values[0]).map(Value::Int).ok_or_else(|| "this quantity is no whole number".to_owned())
    }),
    Function::method("asApproximateFloat", &[Type::Quantity], Double, |_, values| match &values[0] {
        Value::Quantity(quantity) => Ok(Value::Double(quantity.to_f64())),
        _ => Ok(Value::Double(0.0)),
    }),
    Function::method("add", &[Type::Quantity, Type::Quantity], Type::Quantity, |_, values| {
        sum(nanos(&values[0]), nanos(&values[1]), values)
    }),
    Function::method("add", &[Type::Quantity, Int], Type::Quantity, |_, values| {
        sum(nanos(&values[0]), i128::from(whole_of(&values[1])) * NANOS, values)
    }),
    Function::method("sub", &[Type::Quantity, Type::Quantity], Type::Quantity, |_, values| {
        sum(nanos(&values[0]), nanos(&values[1]).saturating_neg(), values)
    }),
    Function::method("sub", &[Type::Quantity, Int], Type::Quantity, |_, values| {
        sum(nanos(&values[0]), -i128::from(whole_of(&values[1])) * NANOS, values)
    }),
    Function::method("isLessThan", &[Type::Quantity, Type::Quantity], Bool, |_, values| {
        Ok(Value::Bool(nanos(&values[0]) < nanos(&values[1])))
    }),
    Function::method("isGreaterThan", &[Type::Quantity, Type::Quantity], Bool, |_, values| {
        Ok(Value::Bool(nanos(&values[0]) > nanos(&values[1])))
    }),
    Function::method("compareTo", &[Type::Quantity, Type::Quantity], Int, |_, values| {
        Ok(Value::Int(nanos(&values[0]).cmp(&nanos(&values[1])) as i64))
    }),
];

fn nanos(value: &Value) -> i128 {
    match value {
        Value::Quantity(quantity) => quantity.nanos(),
        _ => 0,
    }
}

fn is_decimal(value: &Value) -> bool {
    matches!(value, Value::Quantity(quantity) if quantity.is_decimal())
}

fn integer(value: &Value) -> Option<i64> {
    let nanos = nanos(value);
    (nanos % NANOS == 0 && !is_decimal(value)).then(|| i64::try_from(nanos / NANOS).ok()).flatten()
}

/// Adds two amounts. The sum is a decimal if one of them is.
fn sum(a: i128, b: i128, of: &[Value]) -> Answer {
    let sum = a.checked_add(b).ok_or_else(|| "the result is too large for a quantity".to_owned())?;
    let sum = model::Quantity::from_nanos(sum);
    Ok(Value::Quantity(if of.iter().any(is_decimal) { sum.decimal() } else { sum }))
}
