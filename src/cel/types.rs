//! The types of values, as far as known before a run, with the types of their contents: `list(int)`,
//! `map(string, dyn)`; and records: values whose fields are known, so that a misspelt field is found.
//!
//! The rules are those of cel-go: a type matches another one if both are known and equal, or one is
//! unknown.

use crate::fault::Fault;
use crate::value::Value;
use berth_base::diag::did_you_mean;

/// The type of a value, without the types of its contents; see [`Shape`](Shape).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Unknown before the run; as a function's argument, any type.
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    List,
    Map,
    Optional,
    Moment,
    Span,
    Kind,
    Quantity,
    Semver,
    Url,
    Ip,
    Cidr,
    Format,
    Pattern,
}

impl Type {
    /// Returns the type's name in the language.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Any => "dyn",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::Text | Type::Pattern => "string",
            Type::Bytes => "bytes",
            Type::List => "list",
            Type::Map => "map",
            Type::Optional => "optional_type",
            Type::Moment => "google.protobuf.Timestamp",
            Type::Span => "google.protobuf.Duration",
            Type::Kind => "type",
            Type::Quantity => "kubernetes.Quantity",
            Type::Semver => "kubernetes.Semver",
            Type::Url => "kubernetes.URL",
            Type::Ip => "net.IP",
            Type::Cidr => "net.CIDR",
            Type::Format => "kubernetes.NamedFormat",
        }
    }

    /// Reports whether a value of this type may turn out to have the wanted type.
    pub(crate) fn may_be(self, wanted: Type) -> bool {
        let plain = |one| if one == Type::Pattern { Type::Text } else { one };
        self == Type::Any || wanted == Type::Any || plain(self) == plain(wanted)
    }

    /// Reports whether values of this type may be compared with null: plain values and collections may not.
    pub(crate) fn may_be_null(self) -> bool {
        use Type::{Bool, Bytes, Double, Int, Kind, List, Map, Pattern, Text, Uint};
        !matches!(self, Bool | Bytes | Double | Int | Kind | List | Map | Pattern | Text | Uint)
    }

    pub(crate) fn of(value: &Value) -> Type {
        match value {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::Text(_) => Type::Text,
            Value::Bytes(_) => Type::Bytes,
            Value::List(_) => Type::List,
            Value::Map(_) => Type::Map,
            Value::Optional(_) => Type::Optional,
            Value::Moment(_) => Type::Moment,
            Value::Span(_) => Type::Span,
            Value::Type(_) => Type::Kind,
            Value::Quantity(_) => Type::Quantity,
            Value::Semver(_) => Type::Semver,
            Value::Url(_) => Type::Url,
            Value::Ip(_) => Type::Ip,
            Value::Cidr(..) => Type::Cidr,
            Value::Format(_) => Type::Format,
            Value::Pattern(_) => Type::Pattern,
        }
    }
}

/// The types that an expression may name.
pub(crate) const NAMED: [Type; 11] = [
    Type::Bool,
    Type::Int,
    Type::Uint,
    Type::Double,
    Type::Text,
    Type::Bytes,
    Type::List,
    Type::Map,
    Type::Null,
    Type::Kind,
    Type::Optional,
];

/// A type with the types in it: a list's items, a map's keys and values, an optional's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) kind: Type,
    /// Empty for a type without contents, and for an empty list, map or optional, which matches any other.
    parts: Vec<Shape>,
    /// The fields of a map, if they are known.
    pub(crate) record: Option<&'static Record>,
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
    pub(crate) fn holding(kind: Type, parts: &[Shape]) -> Shape {
        let known = |part: &Shape| if part.depth() < DEEPEST { part.clone() } else { Type::Any.into() };
        Shape { kind, parts: parts.iter().map(known).collect(), record: None }
    }

    pub(crate) fn of_record(record: &'static Record) -> Shape {
        Shape { record: Some(record), ..Shape::holding(Type::Map, &[Type::Text.into(), Type::Any.into()]) }
    }

    pub(crate) fn of_field(field: Field) -> Shape {
        match field {
            Field::Text => Type::Text.into(),
            Field::Int => Type::Int.into(),
            Field::Texts => Shape::holding(Type::Map, &[Type::Text.into(), Type::Text.into()]),
            Field::ListOf(record) => Shape::holding(Type::List, &[Shape::of_record(record)]),
        }
    }

    /// Returns the type of a list, map or optional with these parts. A part is known if all of its values
    /// have the same type.
    pub(crate) fn of_all(kind: Type, parts: impl Iterator<Item = Vec<Shape>>) -> Shape {
        let all = |one: Vec<Shape>, other: Vec<Shape>| {
            one.iter().zip(&other).map(|(one, other)| one.or(other)).collect()
        };
        Shape::holding(kind, &parts.reduce(all).unwrap_or_default())
    }

    fn depth(&self) -> usize {
        self.parts.iter().map(Shape::depth).max().map_or(0, |depth| depth + 1)
    }

    /// Returns a part by its index.
    pub(crate) fn part(&self, place: usize) -> Shape {
        self.parts.get(place).cloned().unwrap_or(Type::Any.into())
    }

    /// Reports whether a value of this type may turn out to have the other type.
    pub(crate) fn may_be(&self, other: &Shape) -> bool {
        let is_null = |one: &Shape, other: &Shape| one.kind == Type::Null && other.kind.may_be_null();
        let parts = || self.parts.iter().zip(&other.parts).all(|(one, other)| one.may_be(other));
        self.kind.may_be(other.kind) && parts() || is_null(self, other) || is_null(other, self)
    }

    /// Returns the type of a value that has one of the two types.
    pub(crate) fn or(&self, other: &Shape) -> Shape {
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
    pub(crate) fn name(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(Shape::name).collect();
        let name = self.kind.name();
        if parts.is_empty() { name.to_owned() } else { format!("{name}({})", parts.join(", ")) }
    }
}

/// Returns the shape of a function's result for arguments of accepted types. `None` if the function does not
/// accept their contents.
pub(crate) fn given(function: &str, arguments: &[Shape], gives: Type) -> Option<Shape> {
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

/// The fields of a variable or of another record's field.
#[derive(Debug)]
pub struct Record {
    /// The name in messages, which also identifies the record.
    pub name: &'static str,
    pub fields: &'static [(&'static str, Field)],
}

/// The type of a record's field.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    Text,
    Int,
    /// Texts by name, such as labels.
    Texts,
    ListOf(&'static Record),
}

impl Record {
    /// Returns the type of a field whose name is at the character `at`.
    pub(crate) fn field(&self, at: usize, name: &str) -> Result<Field, Fault> {
        let found = self.fields.iter().find(|(field, _)| *field == name);
        found.map(|(_, field)| *field).ok_or_else(|| {
            let fault = Fault::new(at, format!("the {} has no field `{name}`", self.name));
            fault.maybe_hint(did_you_mean(name, self.fields.iter().map(|(name, _)| *name)))
        })
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.name == other.name
    }
}

impl Eq for Record {}
