//! Checks a parsed expression: names, macros, functions, and types as far as they are known.

use std::collections::BTreeSet;

use super::Names;
use super::expression::{Expression, Holds, Kind};
use super::fault::Fault;
use super::functions::{self, Function};
use super::parse::{Form, Node};
use super::types::{NAMED, Type};
use super::value::{MapKey, Value};
use crate::types::{self, Shape};
use berth_base::diag::did_you_mean;

/// Returns the checked expression, and the variables that it reads.
pub(super) fn check(node: &Node, names: Names<'_>) -> Result<(Expression, BTreeSet<usize>), Fault> {
    let mut checker = Checker { names, locals: Vec::new(), reads: BTreeSet::new() };
    let (expression, _) = checker.one(node)?;
    Ok((expression, checker.reads))
}

struct Checker<'n> {
    names: Names<'n>,
    /// The variables of the surrounding macros, each with its type.
    locals: Vec<(String, Shape)>,
    reads: BTreeSet<usize>,
}

type Typed = (Expression, Shape);

/// A required type, with the words for messages about other types.
#[derive(Clone, Copy)]
struct Wanted {
    kind: Type,
    words: &'static str,
}

const BOOLEAN: Wanted = Wanted { kind: Type::Bool, words: "a boolean" };
const OPTIONAL: Wanted = Wanted { kind: Type::Optional, words: "an optional" };
const TEXT: Wanted = Wanted { kind: Type::Text, words: "a text" };
const ANYTHING: Wanted = Wanted { kind: Type::Any, words: "any value" };

/// A call as written, without the value on which it is called.
#[derive(Clone, Copy)]
struct WrittenCall<'n> {
    at: usize,
    name: &'n str,
    arguments: &'n [Node],
}

impl Checker<'_> {
    fn one(&mut self, node: &Node) -> Result<Typed, Fault> {
        let at = node.at;
        let made = |kind, gives: Shape| Ok((Expression { at, kind }, gives));
        match &node.form {
            Form::Literal(value) => made(Kind::Literal(value.clone()), Type::of(value).into()),
            Form::Name(name) => self.name(at, name),
            Form::Select { of, field, optional } => {
                let (of, holder) = self.holder(of)?;
                let gives = field_of(at, &holder, field, *optional)?;
                let field = MapKey::Text(field.as_str().into());
                made(Kind::Select { of: Box::new(of), field, optional: *optional }, gives)
            }
            Form::Index { of, index, optional } => {
                let (of, index, gives) = self.index(at, [of, index], *optional)?;
                made(Kind::Index { of, index, optional: *optional }, gives)
            }
            Form::List(items) => {
                let item = |(optional, item): &(bool, Node)| {
                    let (item, shape) = self.held(item, *optional)?;
                    Ok(((*optional, item), vec![shape]))
                };
                let (items, shapes): (Vec<_>, Vec<_>) =
                    items.iter().map(item).collect::<Result<Vec<_>, Fault>>()?.into_iter().unzip();
                made(Kind::List(items), Shape::of_all(Type::List, shapes.into_iter()))
            }
            Form::Map(entries) => {
                let entry = |(optional, key, value): &(bool, Node, Node)| {
                    let (key, keys) = self.one(key)?;
                    let (value, values) = self.held(value, *optional)?;
                    Ok(((*optional, key, value), vec![keys, values]))
                };
                let (entries, shapes): (Vec<_>, Vec<_>) =
                    entries.iter().map(entry).collect::<Result<Vec<_>, Fault>>()?.into_iter().unzip();
                made(Kind::Map(entries), Shape::of_all(Type::Map, shapes.into_iter()))
            }
            Form::And(parts) => made(Kind::And(self.logical(parts)?), Type::Bool.into()),
            Form::Or(parts) => made(Kind::Or(self.logical(parts)?), Type::Bool.into()),
            Form::If(parts) => {
                let (parts, gives) = self.branches(parts)?;
                made(Kind::If(parts), gives)
            }
            Form::Call { target, name, arguments } => {
                self.call(WrittenCall { at, name, arguments }, target.as_deref())
            }
        }
    }

    /// Checks a look-up in a list or map.
    fn index(
        &mut self,
        at: usize,
        [of, index]: [&Node; 2],
        optional: bool,
    ) -> Result<(Box<Expression>, Box<Expression>, Shape), Fault> {
        let (of, holder) = self.one(of)?;
        if ![Type::Any, Type::List, Type::Map].contains(&within(&holder).kind) {
            return Err(Fault::new(at, format!("{} has nothing to look up", a(&holder))));
        }
        let at_index = index.at;
        let (index, found) = self.one(index)?;
        let wanted = match within(&holder) {
            inner if inner.kind == Type::List => Type::Int.into(),
            inner if inner.kind == Type::Map => inner.part(0),
            _ => Type::Any.into(),
        };
        if !found.may_be(&wanted) {
            let message = format!("a key of type {} is expected, not {}", wanted.name(), a(&found));
            return Err(Fault::new(at_index, message));
        }
        Ok((Box::new(of), Box::new(index), looked_up(&holder, optional)))
    }

    /// Checks a condition and its two branches, which must have one type.
    fn branches(&mut self, parts: &[Node; 3]) -> Result<(Box<[Expression; 3]>, Shape), Fault> {
        let [condition, yes, no] = parts;
        let (condition, _) = self.of_type(condition, BOOLEAN)?;
        let at_no = no.at;
        let ((yes, one), (no, other)) = (self.one(yes)?, self.one(no)?);
        if !one.may_be(&other) {
            let message =
                format!("both sides of `:` must have one type, not {} and {}", one.name(), other.name());
            return Err(Fault::new(at_no, message));
        }
        Ok((Box::new([condition, yes, no]), one.or(&other)))
    }

    fn of_type(&mut self, node: &Node, wanted: Wanted) -> Result<Typed, Fault> {
        let (expression, found) = self.one(node)?;
        match found.may_be(&wanted.kind.into()) {
            true => Ok((expression, found)),
            false => Err(Fault::new(node.at, format!("{} is expected, not {}", wanted.words, a(&found)))),
        }
    }

    /// Checks an item of a list or map, or the content of an optional item.
    fn held(&mut self, node: &Node, optional: bool) -> Result<Typed, Fault> {
        if !optional {
            return self.one(node);
        }
        let (expression, found) = self.of_type(node, OPTIONAL)?;
        Ok((expression, found.part(0)))
    }

    fn logical(&mut self, parts: &[Node]) -> Result<Vec<Expression>, Fault> {
        parts.iter().map(|part| Ok(self.of_type(part, BOOLEAN)?.0)).collect()
    }

    /// Checks the value whose field is selected.
    fn holder(&mut self, node: &Node) -> Result<Typed, Fault> {
        let (of, shape) = self.one(node)?;
        match [Type::Any, Type::Map].contains(&within(&shape).kind) {
            true => Ok((of, shape)),
            false => Err(Fault::new(node.at, format!("{} has no fields", a(&shape)))),
        }
    }

    fn name(&mut self, at: usize, name: &str) -> Result<Typed, Fault> {
        if let Some(index) = self.locals.iter().rposition(|(local, _)| local == name) {
            return Ok((Expression { at, kind: Kind::Local(index) }, self.locals[index].1.clone()));
        }
        if let Some(index) = self.names.variables.iter().position(|variable| variable.name == name) {
            self.reads.insert(index);
            let any = || Shape::holding(Type::Map, &[Type::Text.into(), Type::Any.into()]);
            let shape = self.names.variables[index].record.map_or_else(any, Shape::of_record);
            return Ok((Expression { at, kind: Kind::Variable(index) }, shape));
        }
        if let Some(kind) = NAMED.into_iter().find(|kind| kind.name() == name) {
            return Ok((Expression { at, kind: Kind::Literal(Value::Type(kind.name())) }, Type::Kind.into()));
        }
        let variables = || self.names.variables.iter().map(|variable| variable.name);
        let known = self.locals.iter().map(|(local, _)| local.as_str()).chain(variables());
        let hint = did_you_mean(name, known);
        let all: Vec<String> = variables().map(|name| format!("`{name}`")).collect();
        let message = format!("there is nothing named `{name}`, only {}", all.join(", "));
        Err(Fault::new(at, message).maybe_hint(hint))
    }

    fn call(&mut self, call: WrittenCall<'_>, target: Option<&Node>) -> Result<Typed, Fault> {
        let WrittenCall { at, name, arguments } = call;
        if let Some(typed) = self.call_macro(call, target)? {
            return Ok(typed);
        }
        let Some(target) = target else { return self.function(call, None) };
        if let Form::Name(first) = &target.form
            && !self.is_known(first)
        {
            let qualified = format!("{first}.{name}");
            if functions::named(&qualified).next().is_some() {
                return self.function(WrittenCall { name: &qualified, ..call }, None);
            }
        }
        if let Some(method) = self.names.methods.iter().position(|method| *method == name) {
            return self.ask(method, call, target);
        }
        let target = self.one(target)?;
        if let ("or" | "orValue", [other], true) = (name, arguments, target.1.kind.may_be(Type::Optional)) {
            let unwrap = name == "orValue";
            let (at_other, (other, found)) = (other.at, self.one(other)?);
            let found = if unwrap { Shape::holding(Type::Optional, &[found]) } else { found };
            if !target.1.may_be(&found) {
                let message = format!("`{name}` gives {} or {}", target.1.name(), found.name());
                return Err(Fault::new(at_other, message));
            }
            let gives = target.1.or(&found);
            let gives = if unwrap { gives.part(0) } else { gives };
            let (of, other) = (Box::new(target.0), Box::new(other));
            return Ok((Expression { at, kind: Kind::OrElse { of, other, unwrap } }, gives));
        }
        self.function(call, Some(target))
    }

    fn is_known(&self, name: &str) -> bool {
        self.names.variables.iter().any(|variable| variable.name == name)
            || self.locals.iter().any(|(local, _)| local == name)
    }

    /// Checks a method of the variable itself, by the method's index.
    fn ask(&mut self, method: usize, call: WrittenCall<'_>, target: &Node) -> Result<Typed, Fault> {
        let WrittenCall { at, name, arguments } = call;
        let (target, _) = self.one(target)?;
        let variable = self.names.variables.first().map_or("", |first| first.name);
        let ([argument], Kind::Variable(0)) = (arguments, target.kind) else {
            let message = format!("`{name}` is a method of `{variable}` alone, with one text in brackets");
            return Err(Fault::new(at, message));
        };
        let argument = Box::new(self.of_type(argument, TEXT)?.0);
        Ok((Expression { at, kind: Kind::Ask { method, argument } }, Type::Any.into()))
    }

    /// Checks a function, or a method whose target is the first argument.
    fn function(&mut self, call: WrittenCall<'_>, target: Option<Typed>) -> Result<Typed, Fault> {
        let WrittenCall { at, name, arguments } = call;
        let method = target.is_some();
        let mut typed: Vec<Typed> = target.into_iter().collect();
        for argument in arguments {
            typed.push(self.one(argument)?);
        }
        let of_name: Vec<&Function> =
            functions::named(name).filter(|function| function.method == method).collect();
        if of_name.is_empty() {
            let known = functions::all().filter(|function| function.method == method);
            let hint = did_you_mean(name, known.map(|function| function.name));
            let what = if method { "method" } else { "function" };
            let is_written_otherwise = functions::named(name).next().is_some();
            let other = || match method {
                true => format!("`{name}` is a function: write `{name}(…)`"),
                false => format!("`{name}` is a method: write `value.{name}(…)`"),
            };
            let hint = is_written_otherwise.then(other).or(hint);
            return Err(Fault::new(at, format!("there is no {what} `{name}`")).maybe_hint(hint));
        }
        let (expressions, shapes): (Vec<Expression>, Vec<Shape>) = typed.into_iter().unzip();
        let types: Vec<Type> = shapes.iter().map(|shape| shape.kind).collect();
        let overloads: Vec<&Function> =
            of_name.into_iter().filter(|function| function.may_take(&types)).collect();
        let gives = overloads.first().map(|first| first.gives);
        let gives =
            gives.map(|gives| if overloads.iter().all(|one| one.gives == gives) { gives } else { Type::Any });
        // Within macros cel-go accepts mixed number types.
        let is_mixed = matches!(name, "_<_" | "_<=_" | "_>_" | "_>=_") && numbers_of_two_types(&types);
        let given = gives
            .filter(|_| !is_mixed || !self.locals.is_empty())
            .and_then(|gives| types::given(name, &shapes, gives));
        let Some(given) = given else {
            let hint = numbers_of_two_types(&types)
                .then(|| "convert one of the numbers, as in `double(…)` or `int(…)`".to_owned());
            return Err(Fault::new(at, functions::no_overload(name, method, &shapes)).maybe_hint(hint));
        };
        let mut arguments = expressions;
        if functions::reads_pattern(name)
            && let Some(Expression { at, kind: Kind::Literal(value) }) = arguments.get_mut(1)
            && let Value::Text(text) = value
        {
            *value = functions::pattern(text).map_err(|why| Fault::new(*at, why))?;
        }
        Ok((Expression { at, kind: Kind::Call { name: shown(name), overloads, arguments } }, given))
    }

    fn call_macro(&mut self, call: WrittenCall<'_>, target: Option<&Node>) -> Result<Option<Typed>, Fault> {
        let WrittenCall { at, name, arguments } = call;
        let (kind, gives) = match (target, name, arguments) {
            (None, "has", [argument]) => {
                let Form::Select { of, field, optional: false } = &argument.form else {
                    return Err(Fault::new(argument.at, "`has` is asked about a field, as in `has(a.b)`"));
                };
                let (of, holder) = self.holder(of)?;
                field_of(argument.at, &holder, field, false)?;
                let field = MapKey::Text(field.as_str().into());
                (Kind::Has { of: Box::new(of), field }, Type::Bool.into())
            }
            (Some(over), "all" | "exists" | "exists_one" | "existsOne", [local, body]) => {
                let (over, item) = self.range(over)?;
                let body = self.condition(local, &item, body)?;
                let holds = match name {
                    "all" => Holds::All,
                    "exists" => Holds::Some,
                    _ => Holds::One,
                };
                (Kind::Every { over, holds, body }, Type::Bool.into())
            }
            (Some(over), "filter", [local, body]) => {
                let (over, item) = self.range(over)?;
                let keep = Some(self.condition(local, &item, body)?);
                (Kind::Gather { over, keep, give: None }, Shape::holding(Type::List, &[item]))
            }
            (Some(over), "map", [local, rest @ .., give]) if rest.len() < 2 => {
                let (over, item) = self.range(over)?;
                let keep = match rest {
                    [keep] => Some(self.condition(local, &item, keep)?),
                    _ => None,
                };
                let (give, given) = self.body(local, &item, give, ANYTHING)?;
                let give = Some(Box::new(give));
                (Kind::Gather { over, keep, give }, Shape::holding(Type::List, &[given]))
            }
            (Some(of), "optMap" | "optFlatMap", [local, body]) => {
                let (of, optional) = self.of_type(of, OPTIONAL)?;
                let flat = name == "optFlatMap";
                let wanted = if flat { OPTIONAL } else { ANYTHING };
                let (body, given) = self.body(local, &optional.part(0), body, wanted)?;
                let gives = if flat { given } else { Shape::holding(Type::Optional, &[given]) };
                (Kind::Within { of: Box::new(of), body: Box::new(body), flat }, gives)
            }
            _ => return Ok(None),
        };
        Ok(Some((Expression { at, kind }, gives)))
    }

    /// Checks the range of a macro and returns the type of its items: a list's items, a map's keys.
    fn range(&mut self, over: &Node) -> Result<(Box<Expression>, Shape), Fault> {
        let (expression, shape) = self.one(over)?;
        match [Type::Any, Type::List, Type::Map].contains(&shape.kind) {
            true => Ok((Box::new(expression), shape.part(0))),
            false => Err(Fault::new(over.at, format!("a list or map is expected, not {}", a(&shape)))),
        }
    }

    fn condition(&mut self, local: &Node, item: &Shape, body: &Node) -> Result<Box<Expression>, Fault> {
        Ok(Box::new(self.body(local, item, body, BOOLEAN)?.0))
    }

    /// Checks the body of a macro, in which a name is the item.
    fn body(&mut self, local: &Node, item: &Shape, body: &Node, wanted: Wanted) -> Result<Typed, Fault> {
        let Form::Name(name) = &local.form else {
            return Err(Fault::new(local.at, "a plain name for the items is expected"));
        };
        self.locals.push((name.clone(), item.clone()));
        let body = self.of_type(body, wanted);
        self.locals.pop();
        body
    }
}

/// Returns the type in which to look up a field: an optional counts as its value.
fn within(holder: &Shape) -> Shape {
    if holder.kind == Type::Optional { holder.part(0) } else { holder.clone() }
}

/// Returns the type of a field that is selected by name. A record only has its own fields.
fn field_of(at: usize, holder: &Shape, field: &str, optional: bool) -> Result<Shape, Fault> {
    let Some(record) = within(holder).record else { return Ok(looked_up(holder, optional)) };
    let found = Shape::of_field(record.field(at, field)?);
    let is_optional = optional || holder.kind == Type::Optional;
    Ok(if is_optional { Shape::holding(Type::Optional, &[found]) } else { found })
}

/// Returns the type of an item of a list or map.
fn looked_up(holder: &Shape, optional: bool) -> Shape {
    let found = match within(holder) {
        inner if inner.kind == Type::List => inner.part(0),
        inner if inner.kind == Type::Map => inner.part(1),
        _ => Type::Any.into(),
    };
    let is_optional = optional || holder.kind == Type::Optional;
    if is_optional { Shape::holding(Type::Optional, &[found]) } else { found }
}

/// Reports whether both are numbers of types that the checker does not mix.
fn numbers_of_two_types(types: &[Type]) -> bool {
    let is_number = |kind: &Type| matches!(kind, Type::Int | Type::Uint | Type::Double);
    matches!(types, [one, other] if one != other && is_number(one) && is_number(other))
}

/// Describes a type for a message.
fn a(shape: &Shape) -> String {
    format!("a value of type {}", shape.name())
}

/// Describes an operator or function for a message.
fn shown(name: &str) -> String {
    functions::shown(name).to_owned()
}
