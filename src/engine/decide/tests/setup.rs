//! Fleets for tests: short to write, with defaults for everything that is not given.

use std::collections::BTreeMap;

use serde_json::json;

use crate::decide::{Decided, decide};
use berth_base::diag::Pos;
use berth_base::model::PlacementRef;
use berth_base::model::cluster::{AddOnScore, Cluster};
use berth_base::model::decision::{Condition, Outcome};
use berth_base::model::named::Named;
use berth_base::model::placement::{Filter, Follow, Policy, Rule, ScoreRule, Scorer, Toleration, Wording};
use berth_base::model::{
    Decision, Effect, Fleet, Key, Map, Pick, Placement, Requirement, Selector, Source, Taint, Term, Timestamp,
};
use berth_base::packed::Packed;

pub fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("it is in range")
}

/// Returns a cluster with labels such as `env=prod`.
pub fn cluster(name: &str, labels: &[&str]) -> Cluster {
    let labels = labels.iter().map(|label| label.split_once('=').expect("it is key=value"));
    Cluster {
        name: name.into(),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        ..Cluster::default()
    }
}

pub fn taint(key: &str, effect: Effect, since: Option<i64>) -> Taint {
    let effect_word = match effect {
        Effect::Refuse => "NoSelect",
        Effect::RefuseNew => "NoSelectIfNew",
        Effect::Prefer => "PreferNoSelect",
    };
    Taint {
        key: key.to_owned(),
        value: String::new(),
        effect,
        effect_word: effect_word.to_owned(),
        since: since.map(second),
        frozen: None,
    }
}

pub fn tolerates(key: &str, seconds: Option<i64>) -> Rule {
    Rule::Tolerates(vec![Toleration { key: Some(key.to_owned()), seconds, ..Toleration::default() }])
}

pub fn score(value: i64, until: Option<i64>) -> BTreeMap<(String, String), AddOnScore> {
    [(("r".to_owned(), "s".to_owned()), AddOnScore { value, index: 0, valid_until: until.map(second) })]
        .into()
}

pub(crate) fn add_on() -> Scorer {
    Scorer {
        name: "add-on".to_owned(),
        weight: 1,
        rule: ScoreRule::AddOn { resource: "r".to_owned(), score: "s".to_owned() },
    }
}

pub fn scorer(rule: ScoreRule) -> Scorer {
    Scorer { name: format!("{rule:?}"), weight: 1, rule }
}

/// Returns a rule that requires labels such as `env=prod`.
pub fn labels(wanted: &[&str]) -> Rule {
    Rule::Labels(selector(wanted))
}

pub fn selector(wanted: &[&str]) -> Selector {
    let requirement = |wanted: &&str| match wanted.split_once('=') {
        Some((key, value)) => Requirement::Is(key.to_owned(), value.to_owned()),
        None => Requirement::Exists((*wanted).to_owned()),
    };
    Selector { requirements: wanted.iter().map(requirement).collect() }
}

pub fn term(wanted: &[&str]) -> Term {
    Term { labels: selector(wanted), ..Term::default() }
}

pub fn key(name: &str) -> Key {
    Key::new("test", "Placement", "shop", name)
}

pub fn names(names: &[&str]) -> std::collections::BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const PLACED: Wording = Named { name: "placed", function: placed };

fn placed(outcome: &Outcome) -> Option<Condition> {
    Some(Condition {
        kind: "Placed".to_owned(),
        status: outcome.unmet.is_empty() && outcome.wanted.is_none_or(|wanted| outcome.picked >= wanted),
        reason: String::new(),
        message: outcome.unmet.join(", "),
    })
}

/// Returns a policy that picks every cluster that passes these rules.
pub fn policy(rules: Vec<Rule>) -> Policy {
    let filter = |rule| Filter { rule, by: None };
    Policy {
        filters: rules.into_iter().map(filter).collect(),
        condition: PLACED,
        text: Packed::of(&json!({})),
        ..Policy::BLANK
    }
}

pub fn placement(name: &str, policy: Policy) -> Placement {
    let origin = Pos::new(format!("{name}.yaml"), 1, 1);
    Placement::new(key(name), origin, Source::Own(Box::new(policy)))
}

pub fn follows(name: &str, followed: &[&str]) -> Placement {
    let reference = |name: &&str| PlacementRef {
        kind: "Placement".to_owned(),
        namespace: "shop".to_owned(),
        name: (*name).to_owned(),
        at: Pos::new("work.yaml", 7, 3),
    };
    let placements = followed.iter().map(reference).collect();
    let follow = Follow { placements, filters: Vec::new(), condition: PLACED };
    let key = Key::new("test", "Work", "shop", name);
    Placement::new(key, Pos::new("work.yaml", 1, 1), Source::Follows(follow))
}

pub fn fleet(clusters: Vec<Cluster>, placements: Vec<Placement>) -> Fleet {
    Fleet {
        clusters: clusters.into_iter().map(|one| (one.name.to_string(), one.into())).collect(),
        placements: placements.into_iter().map(|one| (one.key.clone(), one.into())).collect(),
        ..Fleet::default()
    }
}

pub fn run(fleet: &Fleet, previous: &Map<Key, Decision>) -> Decided {
    decide(fleet, previous, &Map::new(), second(1000))
}

/// Returns the names of the clusters that a placement picks.
pub fn picked(decided: &Decided, name: &str) -> Vec<String> {
    let decision = decided.decisions.iter().find(|(key, _)| *key.name == *name).expect("it is decided").1;
    decision.picks.iter().map(|pick| pick.cluster.to_string()).collect()
}

/// Returns earlier decisions with these picks, without a digest.
pub fn earlier(picks: &[(&str, &[&str])]) -> Map<Key, Decision> {
    let one = |(name, clusters): &(&str, &[&str])| {
        let pick =
            |cluster: &&str| Pick::of(*cluster).with(|details| "before".clone_into(&mut details.reason));
        let decision = Decision {
            picks: clusters.iter().map(pick).collect(),
            ..Decision::new(key(name), format!("{name}.yaml"))
        };
        (key(name), decision)
    };
    picks.iter().map(one).collect()
}
