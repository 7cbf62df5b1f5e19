//! `tolerations` → the taints that a placement tolerates, and the length of toleration.

use crate::dialects::ocm::cluster::EFFECT_WORDS;
use crate::dialects::ocm::fields::taint_key;
use berth_base::model::placement::Toleration;
use berth_base::yaml::Fields;

pub(super) fn read(spec: &mut Fields<'_>) -> Vec<Toleration> {
    spec.each("tolerations").into_iter().map(one).collect()
}

fn one(mut fields: Fields<'_>) -> Toleration {
    let key = fields.str("key").filter(|key| !key.is_empty());
    let key = key.filter(|key| taint_key(&fields, key));
    let operator = match fields.str("operator") {
        None | Some("") => Some("Equal"),
        Some(_) => fields.choice("operator", &["Equal", "Exists"]),
    };
    let value = fields.str("value").unwrap_or_default();
    let effect = fields.choice("effect", &EFFECT_WORDS);
    let seconds = fields.int("tolerationSeconds");
    let is_empty = fields.node("key").and_then(|node| node.as_str()).unwrap_or_default().is_empty();
    if operator == Some("Equal") && is_empty {
        let message = format!("{} is required unless the operator is `Exists`", fields.path_of("key"));
        fields.error_at("key", message);
    }
    if operator == Some("Exists") && !value.is_empty() {
        fields.error_at(
            "value",
            format!("{} must be empty with the operator `Exists`", fields.path_of("value")),
        );
    }
    if value.chars().count() > 1024 {
        fields.error_at("value", format!("{} has more than 1024 characters", fields.path_of("value")));
    }
    fields.finish();
    Toleration {
        key: key.map(str::to_owned),
        value: (operator == Some("Equal")).then(|| value.to_owned()),
        effect: effect.map(str::to_owned),
        seconds,
    }
}
