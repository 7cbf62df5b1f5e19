//! A checked expression: names are resolved, macros are expanded, functions are known.

use super::functions::Function;
use super::value::{MapKey, Value};

#[derive(Debug)]
pub(super) struct Expression {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Literal(Value),
    /// A variable by its index.
    Variable(usize),
    /// The variable of a surrounding macro, the outermost being 0.
    Local(usize),
    Select {
        of: Box<Expression>,
        field: MapKey,
        optional: bool,
    },
    Has {
        of: Box<Expression>,
        field: MapKey,
    },
    Index {
        of: Box<Expression>,
        index: Box<Expression>,
        optional: bool,
    },
    /// Items, each marked true if it is left out when it is none.
    List(Vec<(bool, Expression)>),
    Map(Vec<(bool, Expression, Expression)>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    If(Box<[Expression; 3]>),
    /// The functions of this name that may apply; the arguments' types decide during the run.
    Call {
        name: String,
        overloads: Vec<&'static Function>,
        arguments: Vec<Expression>,
    },
    /// A method that only the first variable has.
    Ask {
        method: usize,
        argument: Box<Expression>,
    },
    /// `optional.or` and `optional.orValue`: the second value is only evaluated if the first is none.
    OrElse {
        of: Box<Expression>,
        other: Box<Expression>,
        unwrap: bool,
    },
    Every {
        over: Box<Expression>,
        holds: Holds,
        body: Box<Expression>,
    },
    /// `filter` and `map`.
    Gather {
        over: Box<Expression>,
        keep: Option<Box<Expression>>,
        give: Option<Box<Expression>>,
    },
    /// `optMap`, and `optFlatMap`, whose body returns an optional.
    Within {
        of: Box<Expression>,
        body: Box<Expression>,
        flat: bool,
    },
}

/// The number of items for which a body must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    All,
    Some,
    One,
}
