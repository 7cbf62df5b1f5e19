//! Optional values: made, and asked for what they hold. `or` and `orValue` are not functions: they may
//! leave their argument alone.

use super::Function;
use crate::cel::types::Type::{Any, Bool, Optional};
use crate::cel::value::Value;

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
];
