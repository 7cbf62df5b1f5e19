//! `tolerations`, with KubeFleet's rules: `Equal` by default, `NoSchedule` or any effect.

use berth_base::meta::names::{is_label_key, is_label_value};
use berth_base::model::placement::Toleration;
use berth_base::yaml::fields::Fields;

/// Reads the field `tolerations`, with at most `most` entries.
pub fn read(policy: &mut Fields<'_>, most: usize) -> Vec<Toleration> {
    if policy.list("tolerations").is_some_and(|list| list.len() > most) {
        let message = format!("{} must not have more than {most} entries", policy.path_of("tolerations"));
        policy.error_at("tolerations", message);
    }
    let mut tolerations: Vec<Toleration> = Vec::new();
    for fields in policy.each("tolerations") {
        let (scope, at, path) = (fields.scope(), fields.at(), fields.path().to_owned());
        let toleration = toleration(fields);
        if tolerations.contains(&toleration) {
            scope.error(at, format!("{path} repeats an earlier toleration"));
        }
        tolerations.push(toleration);
    }
    tolerations
}

fn toleration(mut fields: Fields<'_>) -> Toleration {
    let key = fields.str("key").filter(|key| !key.is_empty());
    let operator = match fields.node("operator") {
        None => Some("Equal"),
        Some(_) => fields.choice("operator", &["Equal", "Exists"]),
    };
    let value = fields.str("value").unwrap_or_default();
    let effect = fields.choice("effect", &["NoSchedule"]);
    if let Some(key) = key.filter(|key| !is_label_key(key)) {
        fields.error_at("key", format!("{}: `{key}` is not a valid taint key", fields.path_of("key")));
    }
    if !is_label_value(value) {
        fields
            .error_at("value", format!("{}: `{value}` is not a valid taint value", fields.path_of("value")));
    }
    if operator == Some("Exists") && !value.is_empty() {
        fields.error_at("value", format!("{} does not go with operator Exists", fields.path_of("value")));
    }
    if operator == Some("Equal") && key.is_none() {
        let message = format!("{} is required with operator Equal", fields.path_of("key"));
        fields.error_at("key", message);
    }
    fields.finish();
    Toleration {
        key: key.map(str::to_owned),
        value: (operator != Some("Exists")).then(|| value.to_owned()),
        effect: effect.map(str::to_owned),
        seconds: None,
    }
}
