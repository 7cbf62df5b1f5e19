//! The functions of the language, one file for each family: name, arguments, result, code.
//!
//! They are the standard functions, those for texts and optional values, and Kubernetes' extensions. A
//! function charges the meter for work that grows with its arguments, before it does the work.

mod address;
mod conversions;
mod kubernetes;
mod lists;
mod moments;
mod operators;
mod patterns;
mod text;

use crate::run::Meter;
use crate::types::{Shape, Type};
use crate::value::Value;

pub(crate) use patterns::{pattern, reads_pattern};

const TABLES: [&[Function]; 14] = [
    operators::EQUALITY,
    operators::ORDER,
    operators::ARITHMETIC,
    conversions::FUNCTIONS,
    text::FUNCTIONS,
    text::FORMAT_FUNCTIONS,
    lists::FUNCTIONS,
    lists::OPTIONAL_FUNCTIONS,
    patterns::FUNCTIONS,
    moments::FUNCTIONS,
    kubernetes::QUANTITY_FUNCTIONS,
    kubernetes::SEMVER_FUNCTIONS,
    kubernetes::URL_FUNCTIONS,
    address::FUNCTIONS,
];

pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    TABLES.into_iter().flatten().chain(kubernetes::FORMAT_FUNCTIONS)
}

pub(crate) fn named(name: &str) -> impl Iterator<Item = &'static Function> {
    all().filter(move |function| function.name == name)
}

/// Returns a function's name as people write it. Operators have internal names in the table.
pub(crate) fn shown(name: &str) -> &str {
    match name {
        "@in" => "in",
        _ => name.trim_matches('_'),
    }
}

/// Returns the message for a call that matches no function of this name.
pub(crate) fn no_overload(name: &str, method: bool, types: &[Shape]) -> String {
    let words: Vec<String> = types.iter().map(Shape::name).collect();
    let name = shown(name);
    match words.as_slice() {
        [of, rest @ ..] if method => {
            format!("a value of type {of} has no method `{name}` with ({})", rest.join(", "))
        }
        _ => format!("`{name}` is not for ({})", words.join(", ")),
    }
}

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

pub(crate) type Call = fn(&mut Meter, &[Value]) -> CallResult;

/// The value of a call, or the reason for a failure.
pub(crate) type CallResult = Result<Value, String>;

impl Function {
    const fn global(name: &'static str, takes: &'static [Type], gives: Type, call: Call) -> Function {
        Function { name, method: false, takes, gives, call }
    }

    const fn method(name: &'static str, takes: &'static [Type], gives: Type, call: Call) -> Function {
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
fn items(value: &Value) -> &[Value] {
    match value {
        Value::List(items) => items,
        _ => &[],
    }
}

fn text_of(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        _ => "",
    }
}

fn whole_of(value: &Value) -> i64 {
    match value {
        Value::Int(value) => *value,
        _ => 0,
    }
}
