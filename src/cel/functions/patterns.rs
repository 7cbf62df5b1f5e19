//! Regular expressions: `matches`, and Kubernetes' functions that find matches.
//!
//! The lengths of text and pattern limit the time and the memory of a search.

use std::borrow::Cow;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::{Function, text_of, whole_of};
use crate::run::Meter;
use crate::types::Type::{Bool, Int, List, Text};
use crate::value::Value;

/// The largest size of a pattern, in bytes.
const LARGEST: usize = 1 << 18;

/// The cost of compiling a pattern that is not a literal in the expression.
const READ: usize = 200;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("matches", &[Text, Text], Bool, matches),
    Function::method("matches", &[Text, Text], Bool, matches),
    Function::method("find", &[Text, Text], Text, |meter, values| {
        let (text, pattern) = ready(meter, values)?;
        Ok(Value::text(pattern.find(text).map_or("", |found| found.as_str())))
    }),
    Function::method("findAll", &[Text, Text], List, |meter, values| find_all(meter, values, usize::MAX)),
    Function::method("findAll", &[Text, Text, Int], List, |meter, values| {
        let most = usize::try_from(whole_of(&values[2])).unwrap_or(usize::MAX);
        find_all(meter, values, most)
    }),
];

/// Reports whether a function's second argument is a pattern. Literal patterns are compiled in advance.
pub(crate) fn reads_pattern(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name)
}

/// Reads a pattern.
pub(crate) fn pattern(text: &str) -> Result<Value, String> {
    read(text).map(|regex| Value::Pattern(Arc::new(regex)))
}

fn read(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(50).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "this regular expression is too large".to_owned(),
        _ => format!("`{text}` is no regular expression"),
    })
}

/// Returns the text to search, and the pattern.
fn ready<'v>(meter: &mut Meter, values: &'v [Value]) -> Result<(&'v str, Cow<'v, Regex>), String> {
    let text = text_of(&values[0]);
    let pattern = match &values[1] {
        Value::Pattern(regex) => Cow::Borrowed(regex.as_ref()),
        other => {
            meter.take(READ + text_of(other).len())?;
            Cow::Owned(read(text_of(other))?)
        }
    };
    meter.take((1 + text.len() / 10).saturating_mul(1 + pattern.as_str().len() / 4))?;
    Ok((text, pattern))
}

fn matches(meter: &mut Meter, values: &[Value]) -> Result<Value, String> {
    let (text, pattern) = ready(meter, values)?;
    Ok(Value::Bool(pattern.is_match(text)))
}

fn find_all(meter: &mut Meter, values: &[Value], most: usize) -> Result<Value, String> {
    let (text, pattern) = ready(meter, values)?;
    let mut found = Vec::new();
    for part in pattern.find_iter(text).take(most) {
        // Each search starts at the end of the last match, and may read the whole rest.
        meter.take_text(text.len() - part.start())?;
        found.push(Value::text(part.as_str()));
    }
    Ok(Value::list(found))
}
