//! Kubernetes label selectors, read from their two notations: the fields `matchLabels` and `matchExpressions` of an
//! object → [`Selector`], and kubectl's line `env=prod,tier in (web, api),!legacy` → these fields.
//!
//! The rules are those of the API server: `In` and `NotIn` need values, `Exists` and `DoesNotExist` must not
//! have any, and keys and values must be valid for labels. A faulty selector is reported and gives `None`,
//! never a selector without the faulty part: that would match more.

use serde_json::{Map, Value as Json, json};

use super::names::{is_label_key, is_label_value};
use crate::diag::Diagnostic;
use crate::model::{Requirement, Selector};
use crate::yaml::fields::{Fields, Scope};
use crate::yaml::node::Mark;
use crate::yaml::{Form, Node};

const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// Reads a whole label selector; `path` names it in messages. `None` if any part has a fault.
pub fn label_selector(scope: &Scope, node: &Node, path: &str) -> Option<Selector> {
    let mut fields = scope.fields(node, path)?;
    let labels = match_labels(&mut fields);
    let expressions = match_expressions(&mut fields);
    fields.finish();
    let mut requirements = labels?;
    requirements.extend(expressions?);
    Some(Selector { requirements })
}

/// Reads the field `matchExpressions` of a selector. Absent: no requirements.
pub fn match_expressions(fields: &mut Fields<'_>) -> Option<Vec<Requirement>> {
    fields.takes("matchExpressions", Form::List);
    fields.takes("matchExpressions[0]", Form::Mapping);
    if fields.node("matchExpressions").is_none() {
        return Some(Vec::new());
    }
    let (scope, path) = (fields.scope(), fields.path_of("matchExpressions"));
    let read = |(index, node): (usize, &Node)| expression(scope, node, &format!("{path}[{index}]"));
    // All of them are read, so that each fault is reported.
    let all: Vec<_> = fields.list("matchExpressions")?.iter().enumerate().map(read).collect();
    all.into_iter().collect()
}

/// Reads the field `matchLabels` of a selector. Absent: no requirements.
pub fn match_labels(fields: &mut Fields<'_>) -> Option<Vec<Requirement>> {
    fields.takes("matchLabels", Form::Mapping);
    fields.takes("matchLabels.*", Form::Text);
    if fields.node("matchLabels").is_none() {
        return Some(Vec::new());
    }
    let scope = fields.scope();
    let inner = fields.fields("matchLabels")?;
    let read = |entry: &crate::yaml::node::Entry| {
        let path = inner.path_of(&entry.key);
        let key = check_key(scope, entry.at, &path, &entry.key);
        let value = check_value(scope, &entry.value, &path);
        Some(Requirement::Is(key?, value?))
    };
    let all: Vec<_> = inner.entries().iter().map(read).collect();
    all.into_iter().collect()
}

fn expression(scope: &Scope, node: &Node, path: &str) -> Option<Requirement> {
    let mut fields = scope.fields(node, path)?;
    let key = fields.required_str("key");
    let key = key.and_then(|key| check_key(scope, fields.place_of("key"), &fields.path_of("key"), key));
    fields.require("operator");
    let operator = fields.choice("operator", &OPERATORS);
    fields.takes("values", Form::List);
    fields.takes("values[0]", Form::Text);
    let values = fields.node("values").map_or(Some(Vec::new()), |_| {
        let (path, items) = (fields.path_of("values"), fields.list("values")?);
        let read = |(index, item)| check_value(scope, item, &format!("{path}[{index}]"));
        let all: Vec<_> = items.iter().enumerate().map(read).collect();
        all.into_iter().collect::<Option<Vec<_>>>()
    });
    let place = if fields.place_of("values") == fields.at() { "operator" } else { "values" };
    let checked = operator.zip(values).and_then(|(operator, values)| {
        let needs_values = matches!(operator, "In" | "NotIn");
        if needs_values == values.is_empty() {
            let must = if needs_values { "needs at least one value" } else { "must have no values" };
            fields.error_at(place, format!("{} with operator `{operator}` {must}", fields.path_of("values")));
            return None;
        }
        Some((operator, values))
    });
    fields.finish();
    let (key, (operator, values)) = (key?, checked?);
    Some(match operator {
        "In" => Requirement::In(key, values),
        "NotIn" => Requirement::NotIn(key, values),
        "Exists" => Requirement::Exists(key),
        _ => Requirement::DoesNotExist(key),
    })
}

fn check_key(scope: &Scope, at: Mark, path: &str, key: &str) -> Option<String> {
    if !is_label_key(key) {
        scope.error(at, format!("{path}: `{key}` is not a valid label key"));
        return None;
    }
    Some(key.to_owned())
}

fn check_value(scope: &Scope, node: &Node, path: &str) -> Option<String> {
    let Some(value) = node.as_str() else {
        let message = format!("{path} must be a string, not {}", node.what());
        scope.report(Diagnostic::error(scope.pos(node.at), message).hint("put the value in quotes"));
        return None;
    };
    if !is_label_value(value) {
        scope.error(node.at, format!("{path}: `{value}` is not a valid label value"));
        return None;
    }
    Some(value.to_owned())
}

/// Reads a selector. The error names the wrong part, and its correct form.
pub fn parse_selector(text: &str) -> Result<Json, String> {
    let (mut labels, mut expressions) = (Map::new(), Vec::new());
    for part in parts(text)? {
        match requirement(part.trim())? {
            Written::Label(key, value) => {
                let before = labels.insert(key.to_owned(), value.into());
                if before.is_some_and(|before| before != *value) {
                    return Err(format!("`{key}` cannot have two values at once"));
                }
            }
            Written::Expression(key, operator, values) => expressions.push(match values.is_empty() {
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
    let labels =
        labels.filter_map(|(key, value)| Some(Requirement::Is(key.clone(), value.as_str()?.to_owned())));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let expressions = expressions.filter_map(|one| {
        let key = one["key"].as_str()?.to_owned();
        Some(match one["operator"].as_str()? {
            "In" => Requirement::In(key, list(&one["values"])),
            "NotIn" => Requirement::NotIn(key, list(&one["values"])),
            "Exists" => Requirement::Exists(key),
            _ => Requirement::DoesNotExist(key),
        })
    });
    Ok(Selector { requirements: labels.chain(expressions).collect() })
}

enum Written<'a> {
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

fn requirement(part: &str) -> Result<Written<'_>, String> {
    if part.is_empty() {
        return Err("a part of the selector is empty; write `key=value`".to_owned());
    }
    if let Some(rest) = part.strip_prefix('!') {
        return Ok(Written::Expression(key(rest)?, "DoesNotExist", Vec::new()));
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
        return Ok(Written::Expression(key(before)?, operator, values));
    }
    if let Some((before, after)) = part.split_once("!=") {
        return Ok(Written::Expression(key(before)?, "NotIn", vec![value(after)?]));
    }
    if let Some((before, after)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Written::Label(key(before)?, value(after)?));
    }
    Ok(Written::Expression(key(part)?, "Exists", Vec::new()))
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
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::diag::Severity;
    use crate::meta::testing::node;

    fn read(selector: Json) -> (Option<Selector>, Vec<String>) {
        let scope = Scope::new("a.yaml".into(), Severity::Error);
        let selector = label_selector(&scope, &node(&selector), "spec.clusterSelector");
        (selector, scope.into_diagnostics().iter().map(|one| one.message.clone()).collect())
    }

    #[test]
    fn labels_and_expressions_add_up() {
        let (selector, found) = read(json!({
            "matchLabels": {"tier": "prod"},
            "matchExpressions": [
                {"key": "region", "operator": "In", "values": ["eu", "us"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }));
        assert!(found.is_empty(), "{found:?}");
        let expected = [
            Requirement::Is("tier".into(), "prod".into()),
            Requirement::In("region".into(), vec!["eu".into(), "us".into()]),
            Requirement::DoesNotExist("old".into()),
        ];
        assert_eq!(selector.expect("it is sound").requirements, expected);
    }

    #[test]
    fn an_empty_selector_has_no_requirements() {
        for empty in
            [json!({}), json!({"matchLabels": {}}), json!({"matchLabels": null, "matchExpressions": []})]
        {
            assert_eq!(read(empty).0, Some(Selector::default()));
        }
    }

    #[test]
    fn operators_and_their_values_must_fit() {
        for (operator, values, fault) in [
            ("In", json!([]), "needs at least one value"),
            ("NotIn", Json::Null, "needs at least one value"),
            ("Exists", json!(["a"]), "must have no values"),
            ("Near", json!(["a"]), "operator is `Near`"),
        ] {
            let (selector, found) =
                read(json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}));
            assert_eq!(selector, None);
            assert!(found.len() == 1 && found[0].contains(fault), "{operator}: {found:?}");
        }
    }

    #[test]
    fn every_fault_is_reported_and_none_is_left_out_of_the_selector() {
        let (selector, found) = read(json!({
            "matchLabels": {"ok": "yes", "bad key": "x", "number": 1},
            "matchExpressions": [{"key": "a"}, {"key": "b", "operator": "Exists", "vals": []}],
        }));
        assert_eq!(selector, None);
        assert_eq!(found.len(), 4, "{found:?}");
    }

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
