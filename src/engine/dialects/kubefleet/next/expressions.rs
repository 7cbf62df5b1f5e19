//! The expressions of a term: of labels, and of properties as numbers.

use crate::dialects::kubefleet::policy::{comparison, measure};
use berth_base::diag::Diagnostic;
use berth_base::meta;
use berth_base::meta::names::is_label_key;
use berth_base::model::PropertyRequirement;
use berth_base::model::selector::Requirement;
use berth_base::yaml::fields::Fields;

const OF_TEXT: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];
const OF_NUMBERS: [&str; 6] = ["Gt", "Lt", "Ge", "Le", "Eq", "Ne"];

/// Reads the field `matchLabels` of a term.
pub fn match_labels(term: &mut Fields<'_>, most: usize) -> Vec<Requirement> {
    let labels = meta::match_labels(term).unwrap_or_default();
    if labels.len() > most {
        let message = format!("{} must not have more than {most} entries", term.path_of("matchLabels"));
        term.error_at("matchLabels", message);
    }
    labels
}

/// Reads one entry of `matchLabelExpressions`.
pub fn of_label(mut fields: Fields<'_>) -> Option<Requirement> {
    let (key, operator, values) = parts(&mut fields, &OF_TEXT, &OF_NUMBERS, "a label is text")?;
    if !is_label_key(&key) {
        fields.error_at("key", format!("{}: `{key}` is not a valid label key", fields.path_of("key")));
    }
    fields.finish();
    Some(match operator {
        "In" => Requirement::In(key, values),
        "NotIn" => Requirement::NotIn(key, values),
        "Exists" => Requirement::Exists(key),
        _ => Requirement::DoesNotExist(key),
    })
}

/// Reads one entry of `matchClusterPropertyExpressions`.
pub fn of_property(mut fields: Fields<'_>) -> Option<PropertyRequirement> {
    let (key, operator, values) =
        parts(&mut fields, &OF_NUMBERS, &OF_TEXT, "berth compares properties as numbers")?;
    let measure = measure(&fields, "key", &key);
    let than = values.first().and_then(|text| match text.parse() {
        Ok(quantity) => Some(quantity),
        Err(fault) => {
            fields.error_at("values", format!("{}: `{text}` is {fault}", fields.path_of("values")));
            None
        }
    });
    fields.finish();
    Some(PropertyRequirement { measure: measure?, comparison: comparison(operator), than: than? })
}

/// Reads key, operator and values. Returns none after a fault.
fn parts(
    fields: &mut Fields<'_>,
    operators: &[&'static str],
    others: &[&'static str],
    why: &str,
) -> Option<(String, &'static str, Vec<String>)> {
    let key = fields.required_str("key").map(str::to_owned);
    fields.require("operator");
    let both: Vec<&'static str> = operators.iter().chain(others).copied().collect();
    let operator = fields.choice("operator", &both);
    let values: Vec<String> =
        fields.strings("values").unwrap_or_default().into_iter().map(str::to_owned).collect();
    let (key, operator) = (key?, operator?);
    if others.contains(&operator) {
        let message = format!("{} {operator} does not fit here: {why}", fields.path_of("operator"));
        let hint = format!("use one of {}", operators.join(", "));
        let at = fields.scope().pos(fields.place_of("operator"));
        fields.scope().report(Diagnostic::error(at, message).hint(hint));
        return None;
    }
    let wanted = match operator {
        "In" | "NotIn" => (!values.is_empty(), "at least one value"),
        "Exists" | "DoesNotExist" => (values.is_empty(), "no values"),
        _ => (values.len() == 1, "exactly one value"),
    };
    if !wanted.0 {
        let message = format!("{} must hold {} with {operator}", fields.path_of("values"), wanted.1);
        fields.error_at("values", message);
        return None;
    }
    Some((key, operator, values))
}
