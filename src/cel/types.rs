//! The types of values, as far as known before a run.

use super::value::Value;

/// The type of a value, without the types of its contents; see [`Shape`](super::shape::Shape).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
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
    pub(super) fn name(self) -> &'static str {
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
    pub(super) fn may_be(self, wanted: Type) -> bool {
        let plain = |one| if one == Type::Pattern { Type::Text } else { one };
        self == Type::Any || wanted == Type::Any || plain(self) == plain(wanted)
    }

    /// Reports whether values of this type may be compared with null: plain values and collections may not.
    pub(super) fn may_be_null(self) -> bool {
        use Type::{Bool, Bytes, Double, Int, Kind, List, Map, Pattern, Text, Uint};
        !matches!(self, Bool | Bytes | Double | Int | Kind | List | Map | Pattern | Text | Uint)
    }

    pub(super) fn of(value: &Value) -> Type {
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
pub(super) const NAMED: [Type; 11] = [
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
