//! `${MEMBER-CLUSTER-NAME}` and `${MEMBER-CLUSTER-LABEL-KEY-<key>}` in a patch's value.
//!
//! KubeFleet's variables: the name and the labels of the copy's cluster, in every text of the value,
//! including keys of mappings. Any other `${...}` stays unchanged.

use serde_json::Value as Json;

use crate::diag::{did_you_mean, nearest_within};
use crate::model::selector::Labels;

const NAME: &str = "${MEMBER-CLUSTER-NAME}";
const LABEL: &str = "${MEMBER-CLUSTER-LABEL-KEY-";

/// The cluster of a copy, for the values of variables.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub cluster: &'a str,
    pub labels: &'a Labels,
}

/// Returns the value with its variables replaced; the error is the reason why one cannot be.
pub fn fill(value: &Json, target: Target<'_>) -> Result<Json, String> {
    Ok(match value {
        Json::String(text) => Json::String(fill_text(text, target)?),
        Json::Array(items) => {
            Json::Array(items.iter().map(|item| fill(item, target)).collect::<Result<_, _>>()?)
        }
        Json::Object(fields) => {
            let filled = |(key, value): (&String, &Json)| Ok((fill_text(key, target)?, fill(value, target)?));
            Json::Object(fields.iter().map(filled).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// Reports whether a value contains a variable, so that its result depends on the cluster.
pub fn holds_variables(value: &Json) -> bool {
    let in_text = |text: &str| text.contains("${MEMBER-CLUSTER-");
    match value {
        Json::String(text) => in_text(text),
        Json::Array(items) => items.iter().any(holds_variables),
        Json::Object(fields) => fields.iter().any(|(key, value)| in_text(key) || holds_variables(value)),
        _ => false,
    }
}

/// A text that looks like a variable but is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookalike {
    pub written: String,
    pub meant: &'static str,
}

/// Returns the first text of a value that looks like a variable: `${MEMBER_CLUSTER_NAME}`, `$(member-cluster-name)`.
pub fn lookalike(value: &Json) -> Option<Lookalike> {
    match value {
        Json::String(text) => lookalike_in(text),
        Json::Array(items) => items.iter().find_map(lookalike),
        Json::Object(fields) => {
            fields.iter().find_map(|(key, value)| lookalike_in(key).or_else(|| lookalike(value)))
        }
        _ => None,
    }
}

fn lookalike_in(text: &str) -> Option<Lookalike> {
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    text.match_indices('$').map(|(at, _)| &text[at..]).find_map(|text| {
        let inner = text[1..].trim_start_matches(['{', '(']);
        let after = inner.trim_start_matches(of_a_name);
        let name = &inner[..inner.len() - after.len()];
        let end = text.len() - after.len() + usize::from(after.starts_with(['}', ')']));
        let written = &text[..end];
        let upper = name.to_ascii_uppercase().replace('_', "-");
        let meant = match upper.starts_with("MEMBER-CLUSTER-LABEL") {
            true if written.starts_with(LABEL) => return None,
            true => "${MEMBER-CLUSTER-LABEL-KEY-<key>}",
            false => nearest_within(&upper, ["MEMBER-CLUSTER-NAME"], 3).map(|_| NAME)?,
        };
        (written != meant).then(|| Lookalike { written: written.to_owned(), meant })
    })
}

fn fill_text(text: &str, target: Target<'_>) -> Result<String, String> {
    let named = text.replace(NAME, target.cluster);
    let mut parts = named.split(LABEL);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (key, rest) = part.split_once('}').ok_or_else(|| format!("`{LABEL}…` has no closing brace"))?;
        filled.push_str(target.labels.get(key).ok_or_else(|| unknown_label(key, target))?);
        filled.push_str(rest);
    }
    Ok(filled)
}

fn unknown_label(key: &str, target: Target<'_>) -> String {
    let near = did_you_mean(key, target.labels.keys().map(String::as_str));
    let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
    format!("cluster `{}` has no label `{key}`{near}", target.cluster)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(value: Json) -> Result<Json, String> {
        let labels =
            Labels::from([("region".to_owned(), "eu".to_owned()), ("a/b".to_owned(), "c".to_owned())]);
        fill(&value, Target { cluster: "oslo", labels: &labels })
    }

    #[test]
    fn names_and_labels_are_filled_in_everywhere() {
        let value = json!({"${MEMBER-CLUSTER-NAME}": ["x-${MEMBER-CLUSTER-LABEL-KEY-region}-${MEMBER-CLUSTER-LABEL-KEY-a/b}"], "n": 1});
        assert_eq!(filled(value), Ok(json!({"oslo": ["x-eu-c"], "n": 1})));
        assert_eq!(filled(json!("${OTHER} $")), Ok(json!("${OTHER} $")));
    }

    #[test]
    fn texts_that_look_like_variables_are_found() {
        let found = |value: Json| lookalike(&value).map(|one| (one.written, one.meant));
        for written in [
            "${MEMBER_CLUSTER_NAME}",
            "$(member-cluster-name)",
            "$MEMBER-CLUSTER-NAME",
            "${MEMBER-CLUSTER-NAM}",
        ] {
            assert_eq!(found(json!({"a": [format!("x-{written}")]})), Some((written.to_owned(), NAME)));
        }
        let label = "${MEMBER_CLUSTER_LABEL_KEY_region}".to_owned();
        assert_eq!(found(json!({label.clone(): 1})), Some((label, "${MEMBER-CLUSTER-LABEL-KEY-<key>}")));
        for other in [
            "${MEMBER-CLUSTER-NAME}/${MEMBER-CLUSTER-LABEL-KEY-region}",
            "${CLUSTER_NAME} $",
            "MEMBER_CLUSTER_NAME",
        ] {
            assert_eq!(found(json!(other)), None);
        }
    }

    #[test]
    fn an_unknown_label_and_a_missing_brace_are_errors() {
        let unknown = filled(json!("${MEMBER-CLUSTER-LABEL-KEY-regio}")).expect_err("there is no such label");
        assert_eq!(unknown, "cluster `oslo` has no label `regio` (did you mean `region`?)");
        assert!(filled(json!("${MEMBER-CLUSTER-LABEL-KEY-region")).is_err());
    }

    #[test]
    fn a_label_that_looks_like_a_variable_is_not_filled_in_again() {
        let labels = Labels::from([("x".to_owned(), LABEL.to_owned())]);
        let target = Target { cluster: "oslo", labels: &labels };
        let value = fill(&json!("${MEMBER-CLUSTER-LABEL-KEY-x}"), target);
        assert_eq!(value, Ok(json!(LABEL)));
    }
}
