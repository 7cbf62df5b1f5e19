//! The functions of the language, one small file for each family: name, arguments, result, code.
//!
//! They are the standard functions, those for texts and optional values, and Kubernetes' extensions. A
//! function charges the meter for work that grows with its arguments, before it does the work.

mod address;
mod conversions;
mod format;
mod function;
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

use super::shape::Shape;

pub(super) use function::Function;
pub(super) use patterns::{pattern, reads_pattern};

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

/// Returns the message for a call that matches no function of this name.
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
