//! A checked expression and the values of its variables → the result, within the work budget.
//!
//! As the language defines, `&&`, `||`, `all` and `exists` ignore an error that another part makes
//! irrelevant. Work is counted in steps, never in time, so it is the same on every machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::expression::{Expression, Holds, Kind};
use crate::fault::Fault;
use crate::functions::{CallResult, Function};
use crate::types::{Shape, Type};
use crate::value::{MapKey, Value};
use crate::{Answer, functions};

pub(crate) fn run(
    root: &Expression,
    variables: &[Value],
    answer: Answer<'_>,
    meter: &mut Meter,
) -> Result<Value, Fault> {
    Run { variables, answer, locals: Vec::new(), meter }.one(root)
}

struct Run<'a> {
    variables: &'a [Value],
    answer: Answer<'a>,
    locals: Vec<Value>,
    meter: &'a mut Meter,
}

type Ran = Result<Value, Fault>;

impl Run<'_> {
    /// Calls the overload that takes these values.
    fn call(&mut self, name: &str, overloads: &[&Function], values: &[Value]) -> CallResult {
        let types: Vec<Type> = values.iter().map(Type::of).collect();
        if let Some(function) = overloads.iter().find(|function| function.takes(&types)) {
            return (function.call)(self.meter, values);
        }
        let method = overloads.first().is_some_and(|function| function.method);
        let shapes: Vec<Shape> = types.into_iter().map(Shape::from).collect();
        Err(functions::no_overload(name, method, &shapes))
    }

    fn one(&mut self, expression: &Expression) -> Ran {
        let at = expression.at;
        self.take(at, 1)?;
        match &expression.kind {
            Kind::Literal(value) => Ok(value.clone()),
            Kind::Variable(index) => Ok(self.variables.get(*index).cloned().unwrap_or(Value::Null)),
            Kind::Local(index) => Ok(self.locals.get(*index).cloned().unwrap_or(Value::Null)),
            Kind::Select { of, field, optional } => {
                let of = self.one(of)?;
                look_up(&of, field, *optional).map_err(|why| Fault::new(at, why))
            }
            Kind::Has { of, field } => {
                let of = self.one(of)?;
                let found = look_up(&of, field, true).map_err(|why| Fault::new(at, why))?;
                Ok(Value::Bool(matches!(found, Value::Optional(Some(_)))))
            }
            Kind::Index { of, index, optional } => {
                let (of, index) = (self.one(of)?, self.one(index)?);
                by_index(&of, &index, *optional).map_err(|why| Fault::new(at, why))
            }
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(at, entries),
            Kind::And(parts) => self.any(parts, false),
            Kind::Or(parts) => self.any(parts, true),
            Kind::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                let branch = if self.is_true(condition)? { yes } else { no };
                self.one(branch)
            }
            Kind::Call { name, overloads, arguments } => {
                let values: Vec<Value> =
                    arguments.iter().map(|one| self.one(one)).collect::<Result<_, _>>()?;
                self.call(name, overloads, &values).map_err(|why| Fault::new(at, why))
            }
            Kind::Ask { method, argument } => match self.one(argument)? {
                Value::Text(text) => (self.answer)(*method, &text).map_err(|why| Fault::new(at, why)),
                other => Err(wrong_type(argument.at, "a text", &other)),
            },
            Kind::OrElse { of, other, unwrap } => match self.one(of)? {
                Value::Optional(Some(value)) if *unwrap => Ok(value.as_ref().clone()),
                found @ Value::Optional(Some(_)) => Ok(found),
                Value::Optional(None) => self.one(other),
                other => Err(wrong_type(of.at, "an optional", &other)),
            },
            Kind::Every { over, holds, body } => self.every(over, *holds, body),
            Kind::Gather { over, keep, give } => self.gather(over, keep.as_deref(), give.as_deref()),
            Kind::Within { of, body, flat } => match self.one(of)? {
                Value::Optional(Some(value)) => {
                    let given = self.with(value.as_ref().clone(), body)?;
                    Ok(if *flat { given } else { Value::some(given) })
                }
                none @ Value::Optional(None) => Ok(none),
                other => Err(wrong_type(of.at, "an optional", &other)),
            },
        }
    }

    fn take(&mut self, at: usize, steps: usize) -> Result<(), Fault> {
        self.meter.take(steps).map_err(|why| Fault::new(at, why))
    }

    fn is_true(&mut self, expression: &Expression) -> Result<bool, Fault> {
        match self.one(expression)? {
            Value::Bool(value) => Ok(value),
            other => Err(wrong_type(expression.at, "a boolean", &other)),
        }
    }

    /// Reports whether some part is `sought`, whatever errors other parts end with.
    fn any(&mut self, parts: &[Expression], sought: bool) -> Ran {
        let mut fault = None;
        for part in parts {
            match self.is_true(part) {
                Ok(value) if value == sought => return Ok(Value::Bool(sought)),
                Ok(_) => {}
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        fault.map_or(Ok(Value::Bool(!sought)), Err)
    }

    fn list(&mut self, items: &[(bool, Expression)]) -> Ran {
        let mut list = Vec::new();
        for (optional, item) in items {
            let value = self.one(item)?;
            list.extend(if *optional { unwrapped(item.at, value)? } else { Some(value) });
        }
        Ok(Value::list(list))
    }

    fn map(&mut self, at: usize, entries: &[(bool, Expression, Expression)]) -> Ran {
        let mut map = BTreeMap::new();
        for (optional, key, value) in entries {
            let (found, value) = (self.one(key)?, self.one(value)?);
            let Some(name) = found.key().filter(|_| !matches!(found, Value::Double(_))) else {
                return Err(wrong_type(key.at, "a key of a map", &found));
            };
            let value = if *optional { unwrapped(at, value)? } else { Some(value) };
            let Some(value) = value else { continue };
            if map.insert(name, value).is_some() {
                return Err(Fault::new(key.at, "this key is there already"));
            }
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn with(&mut self, local: Value, body: &Expression) -> Ran {
        self.locals.push(local);
        let given = self.one(body);
        self.locals.pop();
        given
    }

    fn holds(&mut self, local: Value, body: &Expression) -> Result<bool, Fault> {
        match self.with(local, body)? {
            Value::Bool(value) => Ok(value),
            other => Err(wrong_type(body.at, "a boolean", &other)),
        }
    }

    /// Returns the items of a list, or the keys of a map.
    fn range(&mut self, over: &Expression) -> Result<Vec<Value>, Fault> {
        let items: Vec<Value> = match self.one(over)? {
            Value::List(items) => items.to_vec(),
            Value::Map(entries) => entries.keys().map(as_value).collect(),
            other => return Err(wrong_type(over.at, "a list or map", &other)),
        };
        self.take(over.at, items.len())?;
        Ok(items)
    }

    fn every(&mut self, over: &Expression, holds: Holds, body: &Expression) -> Ran {
        let (mut fault, mut count) = (None, 0);
        for item in self.range(over)? {
            match self.holds(item, body) {
                Ok(true) if holds == Holds::Some => return Ok(Value::Bool(true)),
                Ok(false) if holds == Holds::All => return Ok(Value::Bool(false)),
                Ok(value) => count += usize::from(value),
                // With an error among the items, nobody can tell whether exactly one holds.
                Err(error) if holds == Holds::One => return Err(error),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        match (fault, holds) {
            (Some(fault), _) => Err(fault),
            (None, Holds::All) => Ok(Value::Bool(true)),
            (None, Holds::Some) => Ok(Value::Bool(false)),
            (None, Holds::One) => Ok(Value::Bool(count == 1)),
        }
    }

    fn gather(&mut self, over: &Expression, keep: Option<&Expression>, give: Option<&Expression>) -> Ran {
        let mut gathered = Vec::new();
        for item in self.range(over)? {
            let kept = match keep {
                Some(keep) => self.holds(item.clone(), keep)?,
                None => true,
            };
            if kept {
                gathered.push(match give {
                    Some(give) => self.with(item, give)?,
                    None => item,
                });
            }
        }
        Ok(Value::list(gathered))
    }
}

fn as_value(key: &MapKey) -> Value {
    match key {
        MapKey::Bool(value) => Value::Bool(*value),
        MapKey::Number(value) => match i64::try_from(*value) {
            Ok(value) => Value::Int(value),
            Err(_) => Value::Uint(u64::try_from(*value).unwrap_or(u64::MAX)),
        },
        MapKey::Text(text) => Value::Text(text.clone()),
    }
}

/// Returns the value under a key, optionally as an optional; for an optional, always as an optional.
fn look_up(of: &Value, key: &MapKey, optional: bool) -> Result<Value, String> {
    match of {
        Value::Map(entries) => match (entries.get(key), optional) {
            (Some(value), false) => Ok(value.clone()),
            (Some(value), true) => Ok(Value::some(value.clone())),
            (None, true) => Ok(Value::Optional(None)),
            (None, false) => Err(format!("there is no key {}", words(key))),
        },
        Value::Optional(Some(inner)) => look_up(inner, key, true),
        Value::Optional(None) => Ok(Value::Optional(None)),
        other => Err(format!("a value of type {} has no key {}", Type::of(other).name(), words(key))),
    }
}

fn by_index(of: &Value, index: &Value, optional: bool) -> Result<Value, String> {
    match of {
        Value::List(items) => {
            let Some(MapKey::Number(number)) = index.key() else {
                return Err(format!("a list has no item at a {}", Type::of(index).name()));
            };
            let item = usize::try_from(number).ok().and_then(|number| items.get(number));
            match (item, optional) {
                (Some(item), false) => Ok(item.clone()),
                (Some(item), true) => Ok(Value::some(item.clone())),
                (None, true) => Ok(Value::Optional(None)),
                (None, false) => Err(format!("there is no item {number} among {}", items.len())),
            }
        }
        Value::Optional(Some(inner)) => by_index(inner, index, true),
        _ => match index.key() {
            Some(key) => look_up(of, &key, optional),
            None => Err(format!("a {} is no key", Type::of(index).name())),
        },
    }
}

fn words(key: &MapKey) -> String {
    match key {
        MapKey::Bool(value) => format!("`{value}`"),
        MapKey::Number(value) => format!("`{value}`"),
        MapKey::Text(text) => format!("`{text}`"),
    }
}

fn unwrapped(at: usize, value: Value) -> Result<Option<Value>, Fault> {
    match value {
        Value::Optional(inner) => Ok(inner.map(|inner| inner.as_ref().clone())),
        other => Err(wrong_type(at, "an optional", &other)),
    }
}

fn wrong_type(at: usize, wanted: &str, found: &Value) -> Fault {
    Fault::new(at, format!("{wanted} is expected, not a value of type {}", Type::of(found).name()))
}

/// The budget of one expression for one value: a thousand times the need of a sensible one.
const STEPS: u64 = 100_000;

/// The number of characters or bytes that one step copies or searches.
const TEXT_PER_STEP: usize = 10;

#[derive(Debug)]
pub(crate) struct Meter {
    left: u64,
    most: u64,
}

impl Meter {
    pub(crate) fn full() -> Meter {
        Meter::of(STEPS)
    }

    pub(crate) fn of(steps: u64) -> Meter {
        Meter { left: steps, most: steps }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    pub(crate) fn take(&mut self, steps: usize) -> Result<(), String> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(format!("this takes more than {} steps", self.most))
            }
        }
    }

    /// Charges for searching or creating a text.
    pub(crate) fn take_text(&mut self, length: usize) -> Result<(), String> {
        self.take(1 + length / TEXT_PER_STEP)
    }
}
