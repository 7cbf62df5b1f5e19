//! What is written → a checked expression: names, macros, functions, and types as far as they are known.

use super::Names;
use super::expression::{Expression, Holds, Kind};
use super::fault::Fault;
use super::functions::{self, Function};
use super::parse::{Form, Node};
use super::types::{NAMED, Type};
use super::value::{MapKey, Value};
use crate::diag::did_you_mean;

pub(super) fn check(node: &Node, names: Names<'_>) -> Result<Expression, Fault> {
    Checker { names, locals: Vec::new() }.one(node).map(|(expression, _)| expression)
}

struct Checker<'n> {
    names: Names<'n>,
    /// The variables of macros around what is checked, each with its type.
    locals: Vec<(String, Type)>,
}

type Typed = (Expression, Type);

const LOGICAL: &str = "a boolean";

impl Checker<'_> {
    fn one(&mut self, node: &Node) -> Result<Typed, Fault> {
        let at = node.at;
        let made = |kind, gives| Ok((Expression { at, kind }, gives));
        match &node.form {
            Form::Literal(value) => made(Kind::Literal(value.clone()), Type::of(value)),
            Form::Name(name) => self.name(at, name),
            Form::Select { of, field, optional } => {
                let of = self.holder(of)?;
                let field = MapKey::Text(field.as_str().into());
                let gives = if *optional { Type::Optional } else { Type::Any };
                made(Kind::Select { of, field, optional: *optional }, gives)
            }
            Form::Index { of, index, optional } => {
                let (of, kind) = self.one(of)?;
                if ![Type::Any, Type::List, Type::Map, Type::Optional].contains(&kind) {
                    return Err(Fault::new(at, format!("{} has nothing to look up", a(kind))));
                }
                let at_index = index.at;
                let (index, found) = self.one(index)?;
                let wanted = match (kind, &of.kind) {
                    (Type::List, _) => Type::Int,
                    (_, Kind::Variable) => Type::Text,
                    _ => Type::Any,
                };
                if !found.may_be(wanted) {
                    let message = format!("a key of type {} is expected, not {}", wanted.name(), a(found));
                    return Err(Fault::new(at_index, message));
                }
                let index = Box::new(index);
                let gives = if *optional || kind == Type::Optional { Type::Optional } else { Type::Any };
                made(Kind::Index { of: Box::new(of), index, optional: *optional }, gives)
            }
            Form::List(items) => {
                let item = |(optional, item): &(bool, Node)| {
                    let wanted = if *optional { Type::Optional } else { Type::Any };
                    Ok((*optional, self.of_type(item, wanted, "an optional")?))
                };
                made(Kind::List(items.iter().map(item).collect::<Result<_, _>>()?), Type::List)
            }
            Form::Map(entries) => {
                let entry = |(optional, key, value): &(bool, Node, Node)| {
                    let wanted = if *optional { Type::Optional } else { Type::Any };
                    Ok((*optional, self.one(key)?.0, self.of_type(value, wanted, "an optional")?))
                };
                made(Kind::Map(entries.iter().map(entry).collect::<Result<_, _>>()?), Type::Map)
            }
            Form::And(parts) => made(Kind::And(self.logical(parts)?), Type::Bool),
            Form::Or(parts) => made(Kind::Or(self.logical(parts)?), Type::Bool),
            Form::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                let condition = self.of_type(condition, Type::Bool, LOGICAL)?;
                let at_no = no.at;
                let ((yes, one), (no, other)) = (self.one(yes)?, self.one(no)?);
                if !one.may_be(other) {
                    let message = format!(
                        "both sides of `:` must have one type, not {} and {}",
                        one.name(),
                        other.name()
                    );
                    return Err(Fault::new(at_no, message));
                }
                made(Kind::If(Box::new([condition, yes, no])), if one == other { one } else { Type::Any })
            }
            Form::Call { target, name, arguments } => self.call(at, target.as_deref(), name, arguments),
        }
    }

    fn of_type(&mut self, node: &Node, wanted: Type, what: &str) -> Result<Expression, Fault> {
        let (expression, found) = self.one(node)?;
        match found.may_be(wanted) {
            true => Ok(expression),
            false => Err(Fault::new(node.at, format!("{what} is expected, not {}", a(found)))),
        }
    }

    fn logical(&mut self, parts: &[Node]) -> Result<Vec<Expression>, Fault> {
        parts.iter().map(|part| self.of_type(part, Type::Bool, LOGICAL)).collect()
    }

    /// What fields are selected of.
    fn holder(&mut self, node: &Node) -> Result<Box<Expression>, Fault> {
        let (of, kind) = self.one(node)?;
        match [Type::Any, Type::Map, Type::Optional].contains(&kind) {
            true => Ok(Box::new(of)),
            false => Err(Fault::new(node.at, format!("{} has no fields", a(kind)))),
        }
    }

    fn name(&self, at: usize, name: &str) -> Result<Typed, Fault> {
        if let Some(index) = self.locals.iter().rposition(|(local, _)| local == name) {
            return Ok((Expression { at, kind: Kind::Local(index) }, self.locals[index].1));
        }
        if name == self.names.variable {
            return Ok((Expression { at, kind: Kind::Variable }, Type::Any));
        }
        if let Some(kind) = NAMED.into_iter().find(|kind| kind.name() == name) {
            return Ok((Expression { at, kind: Kind::Literal(Value::Type(kind.name())) }, Type::Kind));
        }
        let known = self.locals.iter().map(|(local, _)| local.as_str()).chain([self.names.variable]);
        let hint = did_you_mean(name, known);
        Err(Fault::new(at, format!("there is nothing named `{name}`, only `{}`", self.names.variable))
            .maybe_hint(hint))
    }

    fn call(
        &mut self,
        at: usize,
        target: Option<&Node>,
        name: &str,
        arguments: &[Node],
    ) -> Result<Typed, Fault> {
        if let Some(typed) = self.call_macro(at, target, name, arguments)? {
            return Ok(typed);
        }
        let Some(target) = target else { return self.function(at, name, false, None, arguments) };
        if let Form::Name(first) = &target.form
            && !self.is_known(first)
        {
            let qualified = format!("{first}.{name}");
            if functions::named(&qualified).next().is_some() {
                return self.function(at, &qualified, false, None, arguments);
            }
        }
        let method = self.names.methods.iter().position(|method| *method == name);
        if let Some(method) = method {
            return self.ask(at, target, name, method, arguments);
        }
        let target = self.one(target)?;
        if let ("or" | "orValue", [other], true) = (name, arguments, target.1.may_be(Type::Optional)) {
            let unwrap = name == "orValue";
            let wanted = if unwrap { Type::Any } else { Type::Optional };
            let other = Box::new(self.of_type(other, wanted, "an optional")?);
            let gives = if unwrap { Type::Any } else { Type::Optional };
            return Ok((
                Expression { at, kind: Kind::OrElse { of: Box::new(target.0), other, unwrap } },
                gives,
            ));
        }
        self.function(at, name, true, Some(target), arguments)
    }

    fn is_known(&self, name: &str) -> bool {
        name == self.names.variable || self.locals.iter().any(|(local, _)| local == name)
    }

    /// A method of the variable itself.
    fn ask(
        &mut self,
        at: usize,
        target: &Node,
        name: &str,
        method: usize,
        arguments: &[Node],
    ) -> Result<Typed, Fault> {
        let (target, _) = self.one(target)?;
        let variable = self.names.variable;
        let ([argument], Kind::Variable) = (arguments, target.kind) else {
            let message = format!("`{name}` is a method of `{variable}` alone, with one text in brackets");
            return Err(Fault::new(at, message));
        };
        let argument = Box::new(self.of_type(argument, Type::Text, "a text")?);
        Ok((Expression { at, kind: Kind::Ask { method, argument } }, Type::Any))
    }

    /// A function, or a method whose target is the first argument.
    fn function(
        &mut self,
        at: usize,
        name: &str,
        method: bool,
        target: Option<Typed>,
        arguments: &[Node],
    ) -> Result<Typed, Fault> {
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
        let types: Vec<Type> = typed.iter().map(|(_, kind)| *kind).collect();
        let overloads: Vec<&Function> =
            of_name.into_iter().filter(|function| function.may_take(&types)).collect();
        let differ = match name {
            "_==_" | "_!=_" => !comparable(&types),
            "_<_" | "_<=_" | "_>_" | "_>=_" => numbers_of_two_types(&types),
            _ => false,
        };
        let Some(first) = overloads.first().filter(|_| !differ) else {
            let hint = numbers_of_two_types(&types)
                .then(|| "convert one of the numbers, as in `double(…)` or `int(…)`".to_owned());
            return Err(Fault::new(at, functions::no_overload(name, method, &types)).maybe_hint(hint));
        };
        let gives =
            if overloads.iter().all(|one| one.gives == first.gives) { first.gives } else { Type::Any };
        let mut arguments: Vec<Expression> = typed.into_iter().map(|(expression, _)| expression).collect();
        if functions::reads_pattern(name)
            && let Some(Expression { at, kind: Kind::Literal(value) }) = arguments.get_mut(1)
            && let Value::Text(text) = value
        {
            *value = functions::pattern(text).map_err(|why| Fault::new(*at, why))?;
        }
        Ok((Expression { at, kind: Kind::Call { name: shown(name), overloads, arguments } }, gives))
    }

    fn call_macro(
        &mut self,
        at: usize,
        target: Option<&Node>,
        name: &str,
        arguments: &[Node],
    ) -> Result<Option<Typed>, Fault> {
        let (kind, gives) = match (target, name, arguments) {
            (None, "has", [argument]) => {
                let Form::Select { of, field, optional: false } = &argument.form else {
                    return Err(Fault::new(argument.at, "`has` is asked about a field, as in `has(a.b)`"));
                };
                let field = MapKey::Text(field.as_str().into());
                (Kind::Has { of: self.holder(of)?, field }, Type::Bool)
            }
            (Some(over), "all" | "exists" | "exists_one" | "existsOne", [local, body]) => {
                let over = self.range(over)?;
                let body = Box::new(self.body(local, Type::Any, body, Type::Bool, LOGICAL)?);
                let holds = match name {
                    "all" => Holds::All,
                    "exists" => Holds::Some,
                    _ => Holds::One,
                };
                (Kind::Every { over, holds, body }, Type::Bool)
            }
            (Some(over), "filter", [local, body]) => {
                let over = self.range(over)?;
                let keep = self.body(local, Type::Any, body, Type::Bool, LOGICAL)?;
                (Kind::Gather { over, keep: Some(Box::new(keep)), give: None }, Type::List)
            }
            (Some(over), "map", [local, rest @ .., give]) if rest.len() < 2 => {
                let over = self.range(over)?;
                let keep = match rest {
                    [keep] => Some(Box::new(self.body(local, Type::Any, keep, Type::Bool, LOGICAL)?)),
                    _ => None,
                };
                let give = Box::new(self.body(local, Type::Any, give, Type::Any, "")?);
                (Kind::Gather { over, keep, give: Some(give) }, Type::List)
            }
            (Some(of), "optMap" | "optFlatMap", [local, body]) => {
                let of = Box::new(self.of_type(of, Type::Optional, "an optional")?);
                let flat = name == "optFlatMap";
                let wanted = if flat { Type::Optional } else { Type::Any };
                let body = Box::new(self.body(local, Type::Any, body, wanted, "an optional")?);
                (Kind::Within { of, body, flat }, Type::Optional)
            }
            _ => return Ok(None),
        };
        Ok(Some((Expression { at, kind }, gives)))
    }

    fn range(&mut self, over: &Node) -> Result<Box<Expression>, Fault> {
        let (expression, kind) = self.one(over)?;
        match [Type::Any, Type::List, Type::Map].contains(&kind) {
            true => Ok(Box::new(expression)),
            false => Err(Fault::new(over.at, format!("a list or map is expected, not {}", a(kind)))),
        }
    }

    /// What a macro does for each item, which is known in it by a name.
    fn body(
        &mut self,
        local: &Node,
        kind: Type,
        body: &Node,
        wanted: Type,
        what: &str,
    ) -> Result<Expression, Fault> {
        let Form::Name(name) = &local.form else {
            return Err(Fault::new(local.at, "a plain name for the items is expected"));
        };
        self.locals.push((name.clone(), kind));
        let body = self.of_type(body, wanted, what);
        self.locals.pop();
        body
    }
}

/// Reports whether values of two types can be equal. Numbers of two types can be once their types are not known.
fn comparable(types: &[Type]) -> bool {
    let [one, other] = types else { return true };
    one.may_be(*other)
        || (one.may_be_null() && *other == Type::Null)
        || (other.may_be_null() && *one == Type::Null)
}

/// Reports whether both are numbers, and of types that the checker does not mix.
fn numbers_of_two_types(types: &[Type]) -> bool {
    let is_number = |kind: &Type| matches!(kind, Type::Int | Type::Uint | Type::Double);
    matches!(types, [one, other] if one != other && is_number(one) && is_number(other))
}

/// A type in a message.
fn a(kind: Type) -> String {
    format!("a value of type {}", kind.name())
}

/// An operator or function in a message.
fn shown(name: &str) -> String {
    functions::shown(name).to_owned()
}
