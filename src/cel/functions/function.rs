//! A function of the language, and access to its arguments.

use crate::meter::Meter;
use crate::types::Type;
use crate::value::Value;

/// A function for a single list of types.
#[derive(Debug)]
pub(crate) struct Function {
    /// The name, with a namespace if the function has one: `ip.isCanonical`.
    pub(crate) name: &'static str,
    /// The function is a method of its first argument.
    pub(crate) method: bool,
    pub(crate) takes: &'static [Type],
    pub(crate) gives: Type,
    pub(crate) call: Call,
}

pub(crate) type Call = fn(&mut Meter, &[Value]) -> Answer;

/// The value of a call, or the reason for a failure.
pub(crate) type Answer = Result<Value, String>;

impl Function {
    pub(super) const fn global(
        name: &'static str,
        takes: &'static [Type],
        gives: Type,
        call: Call,
    ) -> Function {
        Function { name, method: false, takes, gives, call }
    }

    pub(super) const fn method(
        name: &'static str,
        takes: &'static [Type],
        gives: Type,
        call: Call,
    ) -> Function {
        Function { name, method: true, takes, gives, call }
    }

    /// Reports whether the function may accept values of these known types. A null is accepted for a nullable
    /// type, and fails when the expression runs.
    pub(crate) fn may_take(&self, types: &[Type]) -> bool {
        let fits = |(found, wanted): (&Type, &Type)| {
            found.may_be(*wanted) || (*found == Type::Null && wanted.may_be_null())
        };
        self.takes.len() == types.len() && types.iter().zip(self.takes).all(fits)
    }

    /// Reports whether the function accepts values of these types.
    pub(crate) fn takes(&self, types: &[Type]) -> bool {
        let fits = |(found, wanted): (&Type, &Type)| found.may_be(*wanted);
        self.takes.len() == types.len() && types.iter().zip(self.takes).all(fits)
    }
}

/// Returns the items of a list, for functions that take a list.
pub(super) fn items(value: &Value) -> &[Value] {
    match value {
        Value::List(items) => items,
        _ => &[],
    }
}

pub(super) fn text_of(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        _ => "",
    }
}

pub(super) fn whole_of(value: &Value) -> i64 {
    match value {
        Value::Int(value) => *value,
        _ => 0,
    }
}
