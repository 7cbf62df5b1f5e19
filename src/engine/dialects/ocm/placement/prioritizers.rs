//! `prioritizerPolicy` → scorers. Additive adds to Balance and Steady at weight 1; Exact replaces them.
//!
//! As in OCM, a repeated built-in prioritizer has its last weight, and a repeated add-on score counts twice.

use std::collections::BTreeMap;

use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::model::placement::{ScoreRule, Scorer};
use berth_base::yaml::{Fields, Form, Scope};

const BUILT_INS: [&str; 4] = ["Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory"];

/// Returns the scorers of a placement without prioritizers.
pub(super) fn default() -> Vec<Scorer> {
    vec![built_in("Balance", 1), built_in("Steady", 1)]
}

pub(super) fn read(scope: &Scope, mut policy: Fields<'_>, has_names: bool) -> Vec<Scorer> {
    let mode = match policy.str("mode") {
        None | Some("") => Some("Additive"),
        Some(_) => policy.choice("mode", &["Additive", "Exact"]),
    };
    let mut weights: BTreeMap<&str, i64> = BTreeMap::new();
    if mode == Some("Additive") {
        weights.extend([("Balance", 1), ("Steady", 1)]);
    }
    let mut add_ons = Vec::new();
    for mut configuration in policy.each("configurations") {
        let weight = configuration.int_in("weight", -10..=10).unwrap_or(1);
        match coordinate(scope, &mut configuration, has_names, weight) {
            Some(Coordinate::BuiltIn(name)) => {
                weights.insert(name, weight);
            }
            Some(Coordinate::AddOn(rule)) => add_ons.push(add_on(rule, weight)),
            None => {}
        }
        configuration.finish();
    }
    policy.finish();
    let mut scorers: Vec<_> = weights.into_iter().map(|(name, weight)| built_in(name, weight)).collect();
    scorers.extend(add_ons);
    scorers.retain(|scorer| scorer.weight != 0);
    if scorers.is_empty() {
        scorers.push(nothing());
    }
    scorers
}

/// Returns a scorer for an empty list of prioritizers: every cluster scores 0.
fn nothing() -> Scorer {
    Scorer { name: "no prioritizer".to_owned(), weight: 0, rule: ScoreRule::Preferred(Vec::new()) }
}

enum Coordinate {
    BuiltIn(&'static str),
    AddOn((String, String)),
}

fn coordinate(
    scope: &Scope,
    configuration: &mut Fields<'_>,
    has_names: bool,
    weight: i64,
) -> Option<Coordinate> {
    // The older form names a built-in beside the weight.
    if has_names && configuration.node("scoreCoordinate").is_none() {
        configuration.takes("name", Form::Word(BUILT_INS.to_vec()));
        let name = configuration.required_str("name")?;
        return known(scope, configuration, "name", name, weight).map(Coordinate::BuiltIn);
    }
    if has_names {
        configuration.str("name");
    }
    let mut fields = configuration.required_fields("scoreCoordinate")?;
    let kind = match fields.str("type") {
        None => Some("BuiltIn"),
        Some(_) => fields.choice("type", &["BuiltIn", "AddOn"]),
    };
    fields.takes("builtIn", Form::Word(BUILT_INS.to_vec()));
    let built_in = fields.str("builtIn");
    let add_on = fields.fields("addOn").and_then(|mut add_on| {
        let (resource, score) = (add_on.required_str("resourceName"), add_on.required_str("scoreName"));
        add_on.finish();
        Some((resource?.to_owned(), score?.to_owned()))
    });
    let coordinate = match (kind?, built_in) {
        // OCM drops prioritizers without a weight before it checks their type.
        ("AddOn", _) => {
            let there = weight == 0 || fields.require("addOn");
            add_on.filter(|_| there).map(Coordinate::AddOn)
        }
        (_, Some(name)) => known(scope, &fields, "builtIn", name, weight).map(Coordinate::BuiltIn),
        (_, None) => {
            let _ = weight == 0 || fields.require("builtIn");
            None
        }
    };
    fields.finish();
    coordinate
}

/// Returns an existing built-in prioritizer.
fn known(scope: &Scope, fields: &Fields<'_>, key: &str, name: &str, weight: i64) -> Option<&'static str> {
    let found = BUILT_INS.into_iter().find(|known| *known == name);
    if found.is_none() {
        let message =
            format!("{} is `{name}`, but must be one of {}", fields.path_of(key), BUILT_INS.join(", "));
        let at = scope.pos(fields.place_of(key));
        let diagnostic = match weight {
            0 => Diagnostic::warning(at, message),
            _ => Diagnostic::error(at, message),
        };
        scope.report(diagnostic.maybe_hint(did_you_mean(name, BUILT_INS)));
    }
    found
}

fn built_in(name: &str, weight: i64) -> Scorer {
    let rule = match name {
        "Balance" => ScoreRule::Balance,
        "Steady" => ScoreRule::Steady,
        "ResourceAllocatableCPU" => ScoreRule::Allocatable("cpu".to_owned()),
        _ => ScoreRule::Allocatable("memory".to_owned()),
    };
    Scorer { name: name.to_owned(), weight, rule }
}

fn add_on((resource, score): (String, String), weight: i64) -> Scorer {
    Scorer { name: format!("AddOn/{resource}/{score}"), weight, rule: ScoreRule::AddOn { resource, score } }
}
