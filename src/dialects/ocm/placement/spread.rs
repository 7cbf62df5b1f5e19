//! `spreadPolicy`: checked, and reported as not acted on. OCM itself accepts and ignores it.

use crate::meta::names::is_label_key;
use crate::yaml::{Fields, Scope};

const MOST_CONSTRAINTS: usize = 8;

pub(super) fn check(scope: &Scope, spec: &mut Fields<'_>) {
    let Some(mut policy) = spec.fields("spreadPolicy") else { return };
    let constraints = policy.each("spreadConstraints");
    if constraints.len() > MOST_CONSTRAINTS {
        let message = format!("spec.spreadPolicy.spreadConstraints has more than {MOST_CONSTRAINTS} entries");
        policy.error_at("spreadConstraints", message);
    }
    if !constraints.is_empty() {
        scope.warning(
            policy.at(),
            "spec.spreadPolicy is not acted on: clusters are picked without regard to it",
        );
    }
    for mut constraint in constraints {
        if let Some(key) = constraint.required_str("topologyKey").filter(|key| !is_label_key(key)) {
            let message = format!("{}: `{key}` is not a valid label key", constraint.path_of("topologyKey"));
            constraint.error_at("topologyKey", message);
        }
        constraint.require("topologyKeyType");
        constraint.choice("topologyKeyType", &["Label", "Claim"]);
        constraint.int_in("maxSkew", 1..=i64::from(i32::MAX));
        constraint.choice("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]);
        constraint.finish();
    }
    policy.finish();
}
