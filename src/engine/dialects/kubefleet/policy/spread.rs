//! `topologySpreadConstraints`.

use berth_base::model::placement::SpreadConstraint;
use berth_base::yaml::fields::Fields;

pub fn read(policy: &mut Fields<'_>) -> Vec<SpreadConstraint> {
    policy.each("topologySpreadConstraints").into_iter().map(constraint).collect()
}

fn constraint(mut fields: Fields<'_>) -> SpreadConstraint {
    let max_skew = fields.int_in("maxSkew", 1..=i64::from(i32::MAX)).unwrap_or(1);
    let key = fields.required_str("topologyKey").unwrap_or_default().to_owned();
    let unsatisfiable = fields.choice("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]);
    fields.finish();
    SpreadConstraint { key, max_skew, required: unsatisfiable != Some("ScheduleAnyway") }
}
