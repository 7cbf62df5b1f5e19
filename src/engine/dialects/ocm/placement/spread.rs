//! `spreadPolicy` → constraints on the picks, as the field's description defines them. OCM itself accepts the
//! field and ignores it.

use berth_base::meta::names::is_label_key;
use berth_base::model::placement::{EvenConstraint, ScoreRule, Scorer};
use berth_base::yaml::Fields;

const MOST_CONSTRAINTS: usize = 8;

pub(super) fn read(spec: &mut Fields<'_>) -> Option<Scorer> {
    let mut policy = spec.fields("spreadPolicy")?;
    let constraints = policy.each("spreadConstraints");
    if constraints.len() > MOST_CONSTRAINTS {
        let message = format!("spec.spreadPolicy.spreadConstraints has more than {MOST_CONSTRAINTS} entries");
        policy.error_at("spreadConstraints", message);
    }
    let constraints: Vec<EvenConstraint> = constraints.into_iter().map(one).collect();
    policy.finish();
    // The scorer orders by itself and adds nothing to the score.
    let scorer = Scorer { name: "Spread".to_owned(), weight: 0, rule: ScoreRule::Even(constraints) };
    matches!(&scorer.rule, ScoreRule::Even(constraints) if !constraints.is_empty()).then_some(scorer)
}

fn one(mut constraint: Fields<'_>) -> EvenConstraint {
    let key = constraint.required_str("topologyKey");
    if let Some(key) = key.filter(|key| !is_label_key(key)) {
        let message = format!("{}: `{key}` is not a valid label key", constraint.path_of("topologyKey"));
        constraint.error_at("topologyKey", message);
    }
    constraint.require("topologyKeyType");
    let of_claims = constraint.choice("topologyKeyType", &["Label", "Claim"]) == Some("Claim");
    let max_skew = constraint.int_in("maxSkew", 1..=i64::from(i32::MAX)).unwrap_or(1);
    let unsatisfiable = constraint.choice("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]);
    constraint.finish();
    let required = unsatisfiable == Some("DoNotSchedule");
    EvenConstraint { key: key.unwrap_or_default().to_owned(), of_claims, max_skew, required }
}
