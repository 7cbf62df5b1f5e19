//! Readers of fields that several of OCM's kinds share: names, moments, counts and durations.

use berth_base::meta::names::{is_dns_label, is_dns_subdomain, is_label_key};
use berth_base::meta::{Metadata, open};
use berth_base::model::Timestamp;
use berth_base::model::rollout::Amount;
use berth_base::yaml::node::Value;
use berth_base::yaml::{Fields, Form, Node, Scope};

/// Opens a document of a namespaced kind.
pub(super) fn open_namespaced<'a>(scope: &'a Scope, root: &'a Node) -> Option<(Fields<'a>, Metadata)> {
    let (fields, metadata) = open_named(scope, root)?;
    if metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required");
    } else if !is_dns_label(&metadata.namespace) {
        scope.error(
            metadata.namespace_at,
            format!("metadata.namespace: `{}` is not a valid namespace", metadata.namespace),
        );
    }
    Some((fields, metadata))
}

/// Opens a document, whose name must be valid in Kubernetes.
pub(super) fn open_named<'a>(scope: &'a Scope, root: &'a Node) -> Option<(Fields<'a>, Metadata)> {
    let (fields, metadata) = open(scope, root)?;
    if !metadata.name.is_empty() && !is_dns_subdomain(&metadata.name) {
        scope.error(metadata.name_at, format!("metadata.name: `{}` is not a valid name", metadata.name));
    }
    Some((fields, metadata))
}

/// Reads a moment in RFC 3339.
pub(super) fn moment(fields: &mut Fields<'_>, key: &'static str) -> Option<Timestamp> {
    let text = fields.str(key)?;
    let moment = text.parse().ok();
    if moment.is_none() {
        let message = format!(
            "{} is `{text}`, but must be a moment such as `2024-02-01T00:00:00Z`",
            fields.path_of(key)
        );
        fields.error_at(key, message);
    }
    moment
}

/// Checks a taint's key, in taints and tolerations.
pub(super) fn taint_key(fields: &Fields<'_>, key: &str) -> bool {
    let valid = is_label_key(key);
    if !valid {
        fields.error_at("key", format!("{}: `{key}` is not a valid taint key", fields.path_of("key")));
    }
    valid
}

/// Reads text, or a whole number as text.
pub(super) fn text_or_number(fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    fields.takes(key, Form::CountOrShare);
    match &fields.node(key)?.value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => {
            fields.error_at(key, format!("{} must be a number or a string", fields.path_of(key)));
            None
        }
    }
}

/// Reads a number or a percentage: `3`, `25%`.
pub(super) fn amount(fields: &mut Fields<'_>, key: &'static str) -> Option<Amount> {
    let text = text_or_number(fields, key)?;
    let digits = text.strip_suffix('%').unwrap_or(&text);
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let message = format!(
            "{} is `{text}`, but must be a number or a percentage such as `25%`",
            fields.path_of(key)
        );
        fields.error_at(key, message);
        return None;
    }
    match text.strip_suffix('%') {
        Some(digits) => {
            let percent = digits.parse().ok().filter(|percent| *percent <= 100);
            if percent.is_none() {
                fields.error_at(key, format!("{} is `{text}`, which is more than 100%", fields.path_of(key)));
            }
            percent.map(Amount::Percent)
        }
        None => text.parse().ok().map(Amount::Count),
    }
}
