//! Kubernetes label selectors: `matchLabels` and `matchExpressions` → [`Selector`].
//!
//! The rules are those of the API server: `In` and `NotIn` need values, `Exists` and `DoesNotExist` must not
//! have any, and keys and values must be valid for labels. A faulty selector is reported and gives `None`,
//! never a selector without the faulty part: that would match more.

use crate::diag::Diagnostic;
use crate::model::{Requirement, Selector};
use crate::yaml::fields::{Fields, Scope};
use crate::yaml::node::Mark;
use crate::yaml::{Form, Node};

use super::names::{is_label_key, is_label_value};

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
}
