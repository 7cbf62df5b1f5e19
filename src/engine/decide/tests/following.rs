//! Placements that follow others, and choices one after the other.

use super::setup::*;
use crate::decide::{Decided, decide, explain};
use berth_base::model::decision::Outcome;
use berth_base::model::named::Named;
use berth_base::model::placement::{Choice, Filter, Policy, Rule, ScoreRule, Selection, Sorter, Source};
use berth_base::model::selector::Measure;
use berth_base::model::{Cluster, Condition, Decision, Effect, Fleet, Key, Map};

#[test]
fn a_follower_gets_what_any_of_the_followed_picks() {
    let clusters = vec![cluster("a", &["x=1"]), cluster("b", &["x=1", "y=1"]), cluster("c", &[])];
    let placements = vec![
        placement("xs", policy(vec![labels(&["x"])])),
        placement("ys", policy(vec![labels(&["y"])])),
        follows("work", &["xs", "ys"]),
    ];
    let fleet = fleet(clusters, placements);
    let decided = run(&fleet, &Map::new());
    assert_eq!(picked(&decided, "work"), ["a", "b"]);
    let work = decided.decisions.values().find(|one| *one.key.name == *"work").unwrap();
    assert_eq!(work.picks[1].reason, "picked by Placement shop/xs and Placement shop/ys");
    let again = run(&fleet, &decided.decisions);
    assert_eq!((again.decided, again.sticky), (0, 3));
}

#[test]
fn filters_narrow_what_is_followed() {
    let mut work = follows("work", &["all"]);
    if let Source::Follows(follow) = &mut work.source {
        follow.filters = policy(vec![labels(&["x"])]).filters;
    }
    let clusters = vec![cluster("a", &["x=1"]), cluster("b", &[])];
    let decided = run(&fleet(clusters, vec![placement("all", policy(Vec::new())), work]), &Map::new());
    assert_eq!(picked(&decided, "work"), ["a"]);
}

#[test]
fn a_follower_cannot_be_followed() {
    let mut second = follows("second", &["first"]);
    if let Source::Follows(follow) = &mut second.source {
        follow.placements[0].kind = "Work".to_owned();
    }
    let placements = vec![placement("all", policy(Vec::new())), follows("first", &["all"]), second];
    let decided = run(&fleet(vec![cluster("a", &[])], placements), &Map::new());
    let errors: Vec<_> = decided.diagnostics.errors().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("work.yaml:7:3: error: Work shop/first follows other placements itself"),
        "{errors:?}"
    );
}

#[test]
fn a_reference_that_is_lost_takes_no_cluster_away() {
    let clusters = vec![cluster("a", &[]), cluster("b", &[])];
    let all = || placement("all", policy(Vec::new()));
    let before = run(&fleet(clusters.clone(), vec![all(), follows("work", &["all"])]), &Map::new()).decisions;
    let decided = run(&fleet(clusters, vec![all(), follows("work", &["al"])]), &before);
    assert_eq!(picked(&decided, "work"), ["a", "b"]);
}

fn nodes(name: &str, labels: &[&str], nodes: &str) -> Cluster {
    let mut cluster = cluster(name, labels);
    cluster.properties.insert("nodes".to_owned(), nodes.to_owned());
    cluster
}

fn choice(name: &str, wanted: &[&[&str]], count: Option<usize>) -> Choice {
    let terms = wanted.iter().map(|wanted| term(wanted)).collect();
    Choice { name: name.to_owned(), terms, count, least: count.unwrap_or(1) }
}

fn in_turn(choices: Vec<Choice>) -> Policy {
    let sorter = Sorter { measure: Measure::Property("nodes".to_owned()), ascending: true };
    Policy {
        scorers: vec![scorer(ScoreRule::Among(sorter))],
        selection: Selection::InTurn(choices),
        condition: Named { name: "scheduled", function: scheduled },
        ..policy(Vec::new())
    }
}

fn scheduled(outcome: &Outcome) -> Option<Condition> {
    let message = outcome.unmet.join("; ");
    let (kind, reason) = ("Scheduled".to_owned(), "Reason".to_owned());
    Some(Condition { kind, status: outcome.unmet.is_empty(), reason, message })
}

fn filters(rules: Vec<Rule>) -> Vec<Filter> {
    rules.into_iter().map(|rule| Filter { rule, by: None }).collect()
}

fn four() -> Vec<Cluster> {
    vec![
        nodes("a", &["env=prod"], "9"),
        nodes("b", &["env=prod"], "3"),
        nodes("c", &["env=prod"], "6"),
        nodes("d", &["env=dev"], "1"),
    ]
}

fn web(choices: Vec<Choice>) -> Fleet {
    fleet(four(), vec![placement("web", in_turn(choices))])
}

fn again(fleet: &Fleet, before: &Decided) -> Decided {
    decide(fleet, &before.decisions, &Map::new(), second(2000))
}

#[test]
fn each_choice_takes_the_best_of_those_that_are_left() {
    let fleet = web(vec![
        choice("first", &[&["env=prod"]], Some(1)),
        choice("second", &[&["env=prod"], &["env=dev"]], Some(2)),
    ]);
    let decided = run(&fleet, &Map::new());
    let decision = &decided.decisions[&key("web")];
    let reasons: Vec<_> = decision.picks.iter().map(|pick| (&*pick.cluster, pick.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            ("b", "first: among the first 1 by score"),
            // Shares compare a, c and d, the clusters of the second choice.
            ("c", "second: among the first 2 by score"),
            ("d", "second: among the first 2 by score"),
        ]
    );
    assert_eq!(decision.pick("c").unwrap().scores, [("score".to_owned(), 38)].into());
    assert_eq!(decision.pick("d").unwrap().scores, [("score".to_owned(), 100)].into());
    assert!(decision.condition.as_ref().is_some_and(|condition| condition.status));
}

#[test]
fn all_takes_what_is_left_and_no_terms_match_everything() {
    let decided =
        run(&web(vec![choice("one", &[&["env=prod"]], Some(1)), choice("rest", &[], None)]), &Map::new());
    assert_eq!(picked(&decided, "web"), ["a", "b", "c", "d"]);
    let reason = &decided.decisions[&key("web")].pick("a").unwrap().reason;
    assert_eq!(reason, "rest: all that match");
}

#[test]
fn too_few_for_the_least_number_are_told_by_choice() {
    let scarce = Choice { least: 4, ..choice("many", &[&["env=prod"]], Some(5)) };
    let enough = Choice { least: 0, ..choice("none", &[&["env=test"]], Some(2)) };
    let decided = run(&web(vec![scarce, enough]), &Map::new());
    let condition = decided.decisions[&key("web")].condition.clone().expect("a condition");
    assert_eq!((condition.status, condition.message.as_str()), (false, "many has 3 of 4"));
    assert_eq!(picked(&decided, "web"), ["a", "b", "c"]);
}

#[test]
fn scores_that_change_move_nothing_and_a_lower_number_drops_the_worst() {
    let two = vec![choice("two", &[&["env=prod"]], Some(2))];
    let before = run(&web(two.clone()), &Map::new());
    assert_eq!(picked(&before, "web"), ["b", "c"]);
    let mut clusters = four();
    clusters[0] = nodes("a", &["env=prod"], "1");
    let changed = fleet(clusters.clone(), vec![placement("web", in_turn(two))]);
    let after = again(&changed, &before);
    assert_eq!(picked(&after, "web"), ["b", "c"]);
    let one = vec![choice("two", &[&["env=prod"]], Some(1))];
    let fewer = fleet(clusters.clone(), vec![placement("web", in_turn(one))]);
    assert_eq!(picked(&again(&fewer, &after), "web"), ["b"]);
    // A cluster that no longer matches frees its place at once.
    clusters[1] = nodes("b", &["env=dev"], "3");
    let two = vec![choice("two", &[&["env=prod"]], Some(2))];
    let moved = fleet(clusters, vec![placement("web", in_turn(two))]);
    assert_eq!(picked(&again(&moved, &after), "web"), ["a", "c"]);
}

#[test]
fn a_cluster_that_a_filter_refuses_later_keeps_what_it_has() {
    let one = vec![choice("one", &[&["env=prod"]], Some(1))];
    let untainted = Policy { filters: filters(vec![Rule::Tolerates(Vec::new())]), ..in_turn(one) };
    let before = run(&fleet(four(), vec![placement("web", untainted.clone())]), &Map::new());
    assert_eq!(picked(&before, "web"), ["b"]);
    let mut clusters = four();
    clusters[1].taints = vec![taint("away", Effect::Refuse, None)];
    let tainted = fleet(clusters, vec![placement("web", untainted)]);
    assert_eq!(picked(&again(&tainted, &before), "web"), ["b"]);
    assert_eq!(picked(&run(&tainted, &Map::new()), "web"), ["c"]);
}

#[test]
fn each_cluster_that_is_left_out_has_a_reason_of_every_choice() {
    let fleet =
        web(vec![choice("first", &[&["env=prod"]], Some(1)), choice("second", &[&["env=dev"]], Some(1))]);
    let previous: Map<Key, Decision> = Map::new();
    let trace = explain(&fleet, &previous, &Map::new(), second(1000), &key("web")).expect("it is there");
    let reason = |name: &str| {
        let found = trace.clusters.iter().find(|one| one.cluster == name).expect("a cluster");
        (found.picked, found.reason.clone())
    };
    let left_out =
        "first: not among the first 1 by score; second: label env=dev is required, the cluster has env=prod";
    assert_eq!(reason("a"), (false, left_out.to_owned()));
    assert!(reason("b").0 && reason("d").0);
}
