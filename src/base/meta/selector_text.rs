//! A label selector in kubectl's command line form → its form in Kubernetes objects: `env=prod,tier in (web,
//! api),!legacy` → `{matchLabels, matchExpressions}`.

use serde_json::{Map, Value as Json, json};

use super::names::{is_label_key, is_label_value};
use crate::model::{self, Selector};

/// Reads a selector. The error names the wrong part, and its correct form.
pub fn parse_selector(text: &str) -> Result<Json, String> {
    let (mut labels, mut expressions) = (Map::new(), Vec::new());
    for part in parts(text)? {
        match requirement(part.trim())? {
            Requirement::Label(key, value) => {
                let before = labels.insert(key.to_owned(), value.into());
                if before.is_some_and(|before| before != *value) {
                    return Err(format!("`{key}` cannot have two values at once"));
                }
            }
            Requirement::Expression(key, operator, values) => expressions.push(match values.is_empty() {
                true => json!({"key": key, "operator": operator}),
                false => json!({"key": key, "operator": operator, "values": values}),
            }),
        }
    }
    let mut selector = Map::new();
    if !labels.is_empty() {
        selector.insert("matchLabels".to_owned(), labels.into());
    }
    if !expressions.is_empty() {
        selector.insert("matchExpressions".to_owned(), expressions.into());
    }
    Ok(selector.into())
}

/// Reads a selector like [`parse_selector`], ready to match labels.
pub fn parse_requirements(text: &str) -> Result<Selector, String> {
    let selector = parse_selector(text)?;
    let list = |value: &Json| {
        let values = value.as_array().into_iter().flatten().filter_map(Json::as_str);
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = labels
        .filter_map(|(key, value)| Some(model::Requirement::Is(key.clone(), value.as_str()?.to_owned())));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let expressions = expressions.filter_map(|one| {
        let key = one["key"].as_str()?.to_owned();
        Some(match one["operator"].as_str()? {
            "In" => model::Requirement::In(key, list(&one["values"])),
            "NotIn" => model::Requirement::NotIn(key, list(&one["values"])),
            "Exists" => model::Requirement::Exists(key),
            _ => model::Requirement::DoesNotExist(key),
        })
    });
    Ok(Selector { requirements: labels.chain(expressions).collect() })
}

enum Requirement<'a> {
    Label(&'a str, &'a str),
    Expression(&'a str, &'static str, Vec<&'a str>),
}

/// Splits at commas outside of brackets.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let (mut found, mut start, mut open) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' if !open => open = true,
            ')' if open => open = false,
            '(' | ')' => return Err(format!("`{text}` has an unmatched closing bracket")),
            ',' if !open => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if open {
        return Err(format!("`{text}` lacks a closing bracket"));
    }
    found.push(&text[start..]);
    Ok(found)
}

fn requirement(part: &str) -> Result<Requirement<'_>, String> {
    if part.is_empty() {
        return Err("a part of the selector is empty; write `key=value`".to_owned());
    }
    if let Some(rest) = part.strip_prefix('!') {
        return Ok(Requirement::Expression(key(rest)?, "DoesNotExist", Vec::new()));
    }
    if let Some((before, list)) = part.split_once('(') {
        let list = list.trim_end().strip_suffix(')').ok_or_else(|| {
            format!(
                "`{part}` has text after its closing \
                bracket"
            )
        })?;
        let (before, operator) = match before.trim_end().rsplit_once(char::is_whitespace) {
            Some((before, "in")) => (before, "In"),
            Some((before, "notin")) => (before, "NotIn"),
            _ => {
                return Err(format!(
                    "`{part}` is not understood; write `key in (a, b)` or `key notin (a, b)`"
                ));
            }
        };
        let values = list.split(',').map(value).collect::<Result<Vec<_>, _>>()?;
        return Ok(Requirement::Expression(key(before)?, operator, values));
    }
    if let Some((before, after)) = part.split_once("!=") {
        return Ok(Requirement::Expression(key(before)?, "NotIn", vec![value(after)?]));
    }
    if let Some((before, after)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::Label(key(before)?, value(after)?));
    }
    Ok(Requirement::Expression(key(part)?, "Exists", Vec::new()))
}

fn key(text: &str) -> Result<&str, String> {
    let text = text.trim();
    if is_label_key(text) { Ok(text) } else { Err(format!("`{text}` is not a label's name")) }
}

fn value(text: &str) -> Result<&str, String> {
    let text = text.trim();
    if is_label_value(text) { Ok(text) } else { Err(format!("`{text}` is not a label's value")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_kubectl_is_read() {
        let read = parse_selector("env=prod, tier==web,zone!=x,a in (b, c),d notin (e),f,!g").unwrap();
        assert_eq!(
            read,
            json!({"matchLabels": {"env": "prod", "tier": "web"}, "matchExpressions": [
                {"key": "zone", "operator": "NotIn", "values": ["x"]},
                {"key": "a", "operator": "In", "values": ["b", "c"]},
                {"key": "d", "operator": "NotIn", "values": ["e"]},
                {"key": "f", "operator": "Exists"},
                {"key": "g", "operator": "DoesNotExist"},
            ]})
        );
    }

    #[test]
    fn what_is_no_selector_is_an_error() {
        for bad in ["", "a=b,", "a in b", "a in (b", "a)(b", "a b", "=x", "a=b=c", "a=1,a=2", "a in (b) c"] {
            assert!(parse_selector(bad).is_err(), "{bad}");
        }
    }
}
