//! Mistakes in the public documentation that people copy: read as intended, with a warning.
//!
//! `preferredDuringScheduling…` as one mapping, `preference` as a list of one, a label's value as a number.
//! KubeFleet's hub refuses all three.

use serde_json::{Map, Value as Json, json};

use berth_base::diag::Diagnostic;
use berth_base::meta;
use berth_base::model::Selector;
use berth_base::yaml::fields::{Fields, Scope};
use berth_base::yaml::node::{Node, Value};

/// Reads a label selector whose values may be whole numbers.
pub fn label_selector(scope: &Scope, node: &Node, path: &str) -> Option<Selector> {
    let mut node = node.clone();
    if let Value::Map(entries) = &mut node.value {
        for entry in entries {
            match (entry.key.as_str(), &mut entry.value.value) {
                ("matchLabels", Value::Map(labels)) => {
                    for label in labels {
                        let path = format!("{path}.matchLabels.{}", label.key);
                        as_text(scope, &mut label.value, &path);
                    }
                }
                ("matchExpressions", Value::List(expressions)) => {
                    for (index, expression) in expressions.iter_mut().enumerate() {
                        values_as_text(
                            scope,
                            expression,
                            &format!("{path}.matchExpressions[{index}].values"),
                        );
                    }
                }
                _ => {}
            }
        }
    }
    meta::label_selector(scope, &node, path)
}

fn values_as_text(scope: &Scope, expression: &mut Node, path: &str) {
    let Value::Map(entries) = &mut expression.value else { return };
    for entry in entries.iter_mut().filter(|entry| entry.key == "values") {
        if let Value::List(values) = &mut entry.value.value {
            for (index, value) in values.iter_mut().enumerate() {
                as_text(scope, value, &format!("{path}[{index}]"));
            }
        }
    }
}

/// Turns a whole number into its text. For other numbers the original text is lost: `1.10` is `1.1`.
fn as_text(scope: &Scope, node: &mut Node, path: &str) {
    let Value::Number(number) = &node.value else { return };
    let Some(whole) = number.as_i64() else { return };
    let message =
        format!("{path} is the number {whole}, but label values are text; it is read as `\"{whole}\"`");
    scope.report(Diagnostic::warning(scope.pos(node.at), message).hint("put the value in quotes"));
    node.value = Value::String(whole.to_string());
}

/// Returns the items of a list of mappings; a single mapping in place of the list counts as its only item.
pub fn each<'a>(fields: &mut Fields<'a>, key: &'static str) -> Vec<Fields<'a>> {
    let path = fields.path_of(key);
    let alone = fields.node(key).filter(|node| matches!(node.value, Value::Map(_)));
    let Some(alone) = alone else { return fields.each(key) };
    let message = format!("{path} is a mapping, but must be a list; it is read as a list with one entry");
    warn(fields, alone, message, "write `- ` before its first field and indent the others");
    fields.scope().fields(alone, &format!("{path}[0]")).into_iter().collect()
}

/// Returns a required mapping; a list with one mapping in its place counts as that mapping.
pub fn required_fields<'a>(fields: &mut Fields<'a>, key: &'static str) -> Option<Fields<'a>> {
    let path = fields.path_of(key);
    let Some(Value::List(items)) = fields.node(key).map(|node| &node.value) else {
        return fields.required_fields(key);
    };
    let [one] = items.as_slice() else { return fields.required_fields(key) };
    let message = format!("{path} is a list, but must be a mapping; its only entry is read");
    warn(fields, one, message, "leave out the `- `");
    fields.scope().fields(one, &path)
}

fn warn(fields: &Fields<'_>, at: &Node, message: String, hint: &str) {
    fields.scope().report(Diagnostic::warning(fields.scope().pos(at.at), message).hint(hint));
}

/// Removes the mistakes from a policy's text, so that correcting one does not change the policy.
pub fn mend(policy: &mut Map<String, Json>) {
    let Some(affinity) = policy.get_mut("affinity").and_then(|one| one.get_mut("clusterAffinity")) else {
        return;
    };
    if let Some(preferred) = affinity.get_mut("preferredDuringSchedulingIgnoredDuringExecution") {
        if preferred.is_object() {
            *preferred = json!([preferred.take()]);
        }
        for entry in preferred.as_array_mut().into_iter().flatten() {
            let Some(preference) = entry.get_mut("preference") else { continue };
            if let Json::Array(items) = preference
                && let [one] = items.as_mut_slice()
            {
                *preference = one.take();
            }
            mend_labels(preference);
        }
    }
    let required = affinity.get_mut("requiredDuringSchedulingIgnoredDuringExecution");
    let terms = required.and_then(|required| required.get_mut("clusterSelectorTerms"));
    terms.and_then(Json::as_array_mut).into_iter().flatten().for_each(mend_labels);
}

fn mend_labels(term: &mut Json) {
    let Some(selector) = term.get_mut("labelSelector") else { return };
    let text = |value: &mut Json| {
        if let Some(whole) = value.as_i64() {
            *value = json!(whole.to_string());
        }
    };
    let labels = selector.get_mut("matchLabels").and_then(Json::as_object_mut);
    labels.into_iter().flat_map(Map::values_mut).for_each(text);
    let expressions = selector.get_mut("matchExpressions").and_then(Json::as_array_mut);
    let values = expressions.into_iter().flatten().filter_map(|one| one.get_mut("values")?.as_array_mut());
    values.flatten().for_each(text);
}
