//! The functions of the language, one small file a family: name, arguments, result, code.
//!
//! Those of the standard, of its texts and optional values, and those Kubernetes adds. A function
//! charges the meter for work that grows with its arguments, before it does the work.

mod address;
mod conversions;
mod format;
mod lists;
mod moments;
mod operators;
mod optional;
mod patterns;
mod quantity;
mod semver;
mod text;
mod text_format;
mod url;

use super::meter::Meter;
use super::shape::Shape;
use super::types::Type;
use super::value::Value;

pub use format::Format;
pub use semver::Semver;
pub use url::Url;

pub(super) use patterns::{pattern, reads_pattern};

/// A function for a single list of types.
#[derive(Debug)]
pub(super) struct Function {
    /// With the first part, for those that stand in a part of their own: `ip.isCanonical`.
    pub(super) name: &'static str,
    /// Called on its first argument.
    pub(super) method: bool,
    pub(super) takes: &'static [Type],
    pub(super) gives: Type,
    pub(super) call: Call,
}

pub(super) type Call = fn(&mut Meter, &[Value]) -> Result<Value, String>;

impl Function {
    const fn global(name: &'static str, takes: &'static [Type], gives: Type, call: Call) -> Function {
        Function { name, method: false, takes, gives, call }
    }

    const fn method(name: &'static str, takes: &'static [Type], gives: Type, call: Call) -> Function {
        Function { name, method: true, takes, gives, call }
    }

    /// Reports whether values may turn out to be such as it takes, by what is known of their types. A null passes for
    /// what may be null, and fails when the expression runs.
    pub(super) fn may_take(&self, types: &[Type]) -> bool {
        let fits = |(found, wanted): (&Type, &Type)| {
            found.may_be(*wanted) || (*found == Type::Null && wanted.may_be_null())
        };
        self.takes.len() == types.len() && types.iter().zip(self.takes).all(fits)
    }

    /// Reports whether it takes values of these types.
    pub(super) fn takes(&self, types: &[Type]) -> bool {
        let fits = |(found, wanted): (&Type, &Type)| found.may_be(*wanted);
        self.takes.len() == types.len() && types.iter().zip(self.takes).all(fits)
    }
}

const TABLES: [&[Function]; 14] = [
    operators::EQUALITY,
    operators::ORDER,
    operators::ARITHMETIC,
    conversions::FUNCTIONS,
    text::FUNCTIONS,
    text_format::FUNCTIONS,
    lists::FUNCTIONS,
    optional::FUNCTIONS,
    patterns::FUNCTIONS,
    moments::FUNCTIONS,
    quantity::FUNCTIONS,
    semver::FUNCTIONS,
    url::FUNCTIONS,
    address::FUNCTIONS,
];

pub(super) fn all() -> impl Iterator<Item = &'static Function> {
    TABLES.into_iter().flatten().chain(format::FUNCTIONS)
}

pub(super) fn named(name: &str) -> impl Iterator<Item = &'static Function> {
    all().filter(move |function| function.name == name)
}

/// Returns a function's name as people write it. Operators have internal names in the table.
pub(super) fn shown(name: &str) -> &str {
    match name {
        "@in" => "in",
        _ => name.trim_matches('_'),
    }
}

/// Returns the message for a call that fits no function of the name.
pub(super) fn no_overload(name: &str, method: bool, types: &[Shape]) -> String {
    let words: Vec<String> = types.iter().map(Shape::name).collect();
    let name = shown(name);
    match words.as_slice() {
        [of, rest @ ..] if method => {
            format!("a value of type {of} has no method `{name}` with ({})", rest.join(", "))
        }
        _ => format!("`{name}` is not for ({})", words.join(", ")),
    }
}

/// The items of a list, for functions that take one.
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
