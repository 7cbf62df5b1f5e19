//! Types with the types of their contents, as far as known before a run: `list(int)`, `map(string, dyn)`.
//!
//! The rules are those of cel-go: a type matches another one if both are known and equal, or one is unknown.

use super::record::{Field, Record};
use super::types::Type;

/// A type with the types in it: a list's items, a map's keys and values, an optional's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) kind: Type,
    /// Empty for a type without contents, and for an empty list, map or optional, which matches any other.
    parts: Vec<Shape>,
    /// The fields of a map, if they are known.
    pub(super) record: Option<&'static Record>,
}

/// Deeper types count as unknown: a chain of macros could double a type at each step.
const DEEPEST: usize = 10;

/// The types of items that can be added up, and the types that have an order.
const SUMMABLE: [Type; 5] = [Type::Any, Type::Int, Type::Uint, Type::Double, Type::Span];
const ORDERED: [Type; 4] = [Type::Bool, Type::Text, Type::Bytes, Type::Moment];

impl From<Type> for Shape {
    /// Returns the type with unknown parts.
    fn from(kind: Type) -> Shape {
        let parts = match kind {
            Type::List | Type::Optional => 1,
            Type::Map => 2,
            _ => 0,
        };
        Shape { kind, parts: (0..parts).map(|_| Shape::from(Type::Any)).collect(), record: None }
    }
}

impl Shape {
    pub(super) fn holding(kind: Type, parts: &[Shape]) -> Shape {
        let known = |part: &Shape| if part.depth() < DEEPEST { part.clone() } else { Type::Any.into() };
        Shape { kind, parts: parts.iter().map(known).collect(), record: None }
    }

    pub(super) fn of_record(record: &'static Record) -> Shape {
        Shape { record: Some(record), ..Shape::holding(Type::Map, &[Type::Text.into(), Type::Any.into()]) }
    }

    pub(super) fn of_field(field: Field) -> Shape {
        match field {
            Field::Text => Type::Text.into(),
            Field::Int => Type::Int.into(),
            Field::Texts => Shape::holding(Type::Map, &[Type::Text.into(), Type::Text.into()]),
            Field::ListOf(record) => Shape::holding(Type::List, &[Shape::of_record(record)]),
        }
    }

    /// Returns the type of a list, map or optional with these parts. A part is known if all of its values
    /// have the same type.
    pub(super) fn of_all(kind: Type, parts: impl Iterator<Item = Vec<Shape>>) -> Shape {
        let all = |one: Vec<Shape>, other: Vec<Shape>| {
            one.iter().zip(&other).map(|(one, other)| one.or(other)).collect()
        };
        Shape::holding(kind, &parts.reduce(all).unwrap_or_default())
    }

    fn depth(&self) -> usize {
        self.parts.iter().map(Shape::depth).max().map_or(0, |depth| depth + 1)
    }

    /// Returns a part by its index.
    pub(super) fn part(&self, place: usize) -> Shape {
        self.parts.get(place).cloned().unwrap_or(Type::Any.into())
    }

    /// Reports whether a value of this type may turn out to have the other type.
    pub(super) fn may_be(&self, other: &Shape) -> bool {
        let is_null = |one: &Shape, other: &Shape| one.kind == Type::Null && other.kind.may_be_null();
        let parts = || self.parts.iter().zip(&other.parts).all(|(one, other)| one.may_be(other));
        self.kind.may_be(other.kind) && parts() || is_null(self, other) || is_null(other, self)
    }

    /// Returns the type of a value that has one of the two types.
    pub(super) fn or(&self, other: &Shape) -> Shape {
        match (self.kind, other.kind) {
            _ if !self.may_be(other) => Type::Any.into(),
            (Type::Null, _) => other.clone(),
            (_, Type::Null) => self.clone(),
            (one, another) if one != another => Type::Any.into(),
            _ if self.parts.is_empty() => other.clone(),
            _ if other.parts.is_empty() => self.clone(),
            (kind, _) => {
                let parts = self.parts.iter().zip(&other.parts).map(|(one, other)| one.or(other));
                let record = self.record.filter(|record| other.record == Some(record));
                Shape { kind, parts: parts.collect(), record }
            }
        }
    }

    /// Returns the type as messages show it: `list(int)`.
    pub(super) fn name(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(Shape::name).collect();
        let name = self.kind.name();
        if parts.is_empty() { name.to_owned() } else { format!("{name}({})", parts.join(", ")) }
    }
}

/// Returns the shape of a function's result for arguments of accepted types. `None` if the function does not
/// accept their contents.
pub(super) fn given(function: &str, arguments: &[Shape], gives: Type) -> Option<Shape> {
    let text = Shape::from(Type::Text);
    let items = arguments.first().map(|first| first.part(0)).unwrap_or(Type::Any.into());
    let has_order = || SUMMABLE.contains(&items.kind) || ORDERED.contains(&items.kind);
    match (function, arguments) {
        ("_==_" | "_!=_", [one, other]) => one.may_be(other).then(|| gives.into()),
        ("@in", [item, holder]) => item.may_be(&holder.part(0)).then(|| gives.into()),
        ("_+_", [one, other]) if gives == Type::List => one.may_be(other).then(|| one.or(other)),
        ("indexOf" | "lastIndexOf", [list, item]) if list.kind == Type::List => {
            item.may_be(&items).then(|| gives.into())
        }
        ("sum", [_]) => SUMMABLE.contains(&items.kind).then_some(items),
        ("min" | "max", [_]) => has_order().then_some(items),
        ("isSorted", [_]) => has_order().then(|| gives.into()),
        ("join", _) => items.may_be(&text).then(|| gives.into()),
        ("split" | "findAll", _) => Some(Shape::holding(Type::List, &[text])),
        ("validate", _) => Some(Shape::holding(gives, &[Shape::holding(Type::List, &[text])])),
        ("getQuery", _) => Some(Shape::holding(gives, &[text.clone(), Shape::holding(Type::List, &[text])])),
        ("optional.none", _) => Some(Shape::holding(gives, &[])),
        ("optional.of" | "optional.ofNonZeroValue", held) => Some(Shape::holding(gives, held)),
        ("value", [_]) => Some(items),
        ("first" | "last", [_]) => Some(Shape::holding(gives, &[items])),
        ("optional.unwrap" | "unwrapOpt", [_]) => {
            items.kind.may_be(Type::Optional).then(|| Shape::holding(gives, &[items.part(0)]))
        }
        _ => Some(gives.into()),
    }
}
