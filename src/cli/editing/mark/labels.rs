//! Parses `key=value` and `key-` as kubectl does, and finds the changes of a document's labels.

use std::collections::BTreeMap;

use super::{DocumentChanges, ValueChange, ValueEdit};
use berth_base::edit::{Found, Step};
use berth_base::meta::names::{is_label_key, is_label_value};
use berth_base::yaml::Node;

/// The requested labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LabelRequest {
    Set(String, String),
    Remove(String),
}

/// Reports whether a command-line word is a label instead of a cluster's name.
pub(crate) fn is_wish(word: &str) -> bool {
    word.contains('=') || word.ends_with('-')
}

pub fn parse(word: &str) -> Result<LabelRequest, String> {
    let is_key = |key: &str| {
        let fault =
            || format!("`{key}` is not a valid label key: use letters, digits, `-`, `_` and `.`, at most 63");
        if is_label_key(key) { Ok(key.to_owned()) } else { Err(fault()) }
    };
    match word.split_once('=') {
        Some((key, value)) if is_label_value(value) => Ok(LabelRequest::Set(is_key(key)?, value.to_owned())),
        Some((_, value)) => Err(format!(
            "`{value}` is not a valid label value: use letters, digits, `-`, `_` and `.`, at \
                         most 63"
        )),
        None => Ok(LabelRequest::Remove(is_key(word.strip_suffix('-').unwrap_or(word))?)),
    }
}

impl LabelRequest {
    pub fn key(&self) -> &str {
        match self {
            LabelRequest::Set(key, _) | LabelRequest::Remove(key) => key,
        }
    }
}

/// Returns a document's labels, with all values as text.
pub fn labels_of(found: &Found) -> BTreeMap<String, String> {
    let labels = found.node.get("metadata").and_then(|metadata| metadata.get("labels"));
    let labels = labels.map(Node::to_json).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    labels.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// Returns the changes, or the reason to refuse them.
pub fn outcome(
    labels: &BTreeMap<String, String>,
    requests: &[LabelRequest],
    overwrite: bool,
) -> Result<DocumentChanges, String> {
    let mut outcome = DocumentChanges::default();
    for request in requests {
        let path = vec![Step::from("metadata"), Step::from("labels"), Step::from(request.key())];
        match (request, labels.get(request.key())) {
            (LabelRequest::Set(key, value), Some(there)) if there == value => {
                outcome.notes.push(format!("the label `{key}` is already `{value}`"));
            }
            (LabelRequest::Set(key, value), Some(there)) if !overwrite => {
                return Err(format!("the label `{key}` is `{there}`; use --overwrite to set `{value}`"));
            }
            (LabelRequest::Set(key, value), there) => {
                let before = there.map_or_else(String::new, |there| format!(" (was {there})"));
                outcome.descriptions.push(format!("label {key}={value}{before}"));
                outcome.changes.push(ValueChange { path, what: ValueEdit::Set(value.as_str().into()) });
            }
            (LabelRequest::Remove(key), Some(there)) => {
                outcome.descriptions.push(format!("label {key}={there} removed"));
                outcome.changes.push(ValueChange { path, what: ValueEdit::Remove });
            }
            (LabelRequest::Remove(key), None) => outcome.notes.push(format!("there is no label `{key}`")),
        }
    }
    Ok(outcome)
}
