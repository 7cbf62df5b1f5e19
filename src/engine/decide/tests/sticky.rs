//! A decision is sticky until its inputs change, and a broken file is not a deletion.

use super::setup::*;
use crate::decide::decide;
use berth_base::model::placement::{Filter, Policy, Rule, ScoreRule, Selection};
use berth_base::model::{ClusterStatus, Effect, Fleet, Map, Timestamp};

fn in_blue(rules: Vec<Rule>) -> Policy {
    Policy { candidates: vec![Filter { rule: labels(&["set=blue"]), by: None }], ..policy(rules) }
}

fn base() -> Fleet {
    let mut tainted = cluster("c", &["set=blue", "env=prod"]);
    tainted.taints = vec![taint("old", Effect::Refuse, Some(990))];
    let clusters = vec![cluster("a", &["set=blue", "env=prod"]), cluster("b", &["set=red"]), tainted];
    fleet(clusters, vec![placement("web", in_blue(vec![labels(&["env=prod"]), tolerates("old", Some(60))]))])
}

/// Returns the number of new decisions after a change.
fn decided_after(change: impl Fn(&mut Fleet), now: Timestamp) -> usize {
    let mut fleet = base();
    let before = run(&fleet, &Map::new()).decisions;
    change(&mut fleet);
    decide(&fleet, &before, &Map::new(), now).decided
}

#[test]
fn what_was_not_read_does_not_matter() {
    let now = second(1000);
    assert_eq!(decided_after(|_| (), now), 0);
    assert_eq!(decided_after(|fleet| set(fleet, "a", "other", "x"), now), 0);
    assert_eq!(decided_after(|fleet| set(fleet, "b", "env", "dev"), now), 0);
    assert_eq!(decided_after(|fleet| add(fleet, cluster("d", &["set=red"])), now), 0);
    // These clusters are refused before and after.
    assert_eq!(decided_after(|fleet| set(fleet, "b", "set", "blue"), now), 0);
    assert_eq!(decided_after(|fleet| add(fleet, cluster("d", &["set=blue"])), now), 0);
}

#[test]
fn what_was_read_does() {
    let now = second(1000);
    assert_eq!(decided_after(|fleet| set(fleet, "a", "env", "dev"), now), 1);
    assert_eq!(decided_after(|fleet| add(fleet, cluster("d", &["set=blue", "env=prod"])), now), 1);
    assert_eq!(
        decided_after(
            |fleet| fleet.clusters.get_mut("a").unwrap().taints.push(taint("x", Effect::Prefer, None)),
            now
        ),
        1
    );
    let other = || placement("web", in_blue(vec![labels(&["env=dev"])]));
    assert_eq!(decided_after(|fleet| _ = fleet.placements.insert(key("web"), other().into()), now), 1);
}

#[test]
fn time_matters_when_a_verdict_changes_and_next_change_says_when() {
    let fleet = base();
    let first = run(&fleet, &Map::new());
    assert_eq!(picked(&first, "web"), ["a", "c"]);
    let change = first.next_change.expect("a toleration runs out");
    let just_before = Timestamp::from_second(change.as_second() - 1).unwrap();
    assert_eq!(decided_after(|_| (), just_before), 0);
    let after = decide(&fleet, &first.decisions, &Map::new(), change);
    assert_eq!((after.decided, picked(&after, "web"), after.next_change), (1, vec!["a".to_owned()], None));
}

#[test]
fn other_decisions_do_not_matter() {
    let clusters = vec![cluster("a", &[]), cluster("b", &[])];
    let first = || Policy {
        scorers: vec![scorer(ScoreRule::Balance)],
        selection: Selection::First(1),
        ..policy(Vec::new())
    };
    let before = run(&fleet(clusters.clone(), vec![placement("p2", first())]), &Map::new()).decisions;
    let decided = run(&fleet(clusters, vec![placement("p1", first()), placement("p2", first())]), &before);
    assert_eq!((decided.decided, decided.sticky), (1, 1));
    assert_eq!(picked(&decided, "p2"), ["a"]);
    assert_eq!(picked(&decided, "p1"), ["b"]);
}

#[test]
fn reports_extend_clusters_and_what_is_read_of_them_becomes_facts() {
    let rule = Rule::AnyOf(vec![berth_base::model::Term {
        labels: selector(&["env=prod", "zone=x"]),
        claims: selector(&["id=1"]),
        ..Default::default()
    }]);
    let fleet = fleet(
        vec![cluster("a", &["env=prod"]), cluster("b", &[])],
        vec![placement("web", policy(vec![rule]))],
    );
    let text = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let status = ClusterStatus {
        cluster: "a".to_owned(),
        reported: Some(second(999)),
        labels: text(&[("env", "dev"), ("zone", "x"), ("unread", "1")]),
        claims: text(&[("id", "1"), ("unread", "2")]),
        ..ClusterStatus::default()
    };
    let unread = ClusterStatus {
        cluster: "b".to_owned(),
        claims: text(&[("unread", "3")]),
        ..ClusterStatus::default()
    };
    let statuses = [("a".to_owned(), status.into()), ("b".to_owned(), unread.into())].into();
    let decided = decide(&fleet, &Map::new(), &statuses, second(1000));
    assert_eq!(picked(&decided, "web"), ["a"]);
    let fact = ClusterStatus {
        cluster: "a".to_owned(),
        labels: text(&[("zone", "x")]),
        claims: text(&[("id", "1")]),
        ..ClusterStatus::default()
    };
    assert_eq!(decided.facts, [("a".to_owned(), fact.into())].into());
    // Facts in place of statuses give the same decisions and the same facts.
    let again = decide(&fleet, &Map::new(), &decided.facts, second(1000));
    assert_eq!((again.decisions, again.facts), (decided.decisions, decided.facts));
}

fn set(fleet: &mut Fleet, cluster: &str, key: &str, value: &str) {
    fleet.clusters.get_mut(cluster).unwrap().labels.insert(key.to_owned(), value.to_owned());
}

fn add(fleet: &mut Fleet, cluster: berth_base::model::Cluster) {
    fleet.clusters.insert(cluster.name.to_string(), cluster.into());
}

#[test]
fn while_everything_is_in_doubt_no_decision_loses_a_cluster() {
    let mut fleet = fleet(
        vec![cluster("a", &["x=1"]), cluster("b", &[])],
        vec![placement("web", policy(vec![labels(&["x"])]))],
    );
    let previous = earlier(&[("web", &["b", "gone"]), ("vanished", &["a"])]);
    assert_eq!(picked(&run(&fleet, &previous), "web"), ["a"]);
    fleet.doubt.everything = true;
    // If the last good forms are known, they contain every moved document.
    assert!(!run(&fleet, &previous).decisions.contains_key(&key("vanished")));
    fleet.doubt.objects = true;
    let decided = run(&fleet, &previous);
    assert_eq!(picked(&decided, "web"), ["a", "b", "gone"]);
    assert_eq!(picked(&decided, "vanished"), ["a"]);
    let decision = &decided.decisions[&key("web")];
    assert_eq!(decision.digest, None);
    assert!(decision.pick("gone").unwrap().reason.starts_with("kept: a file"));
    let again = run(&fleet, &decided.decisions);
    assert_eq!(again.decisions, decided.decisions);
}

#[test]
fn only_decisions_of_a_file_in_doubt_are_held() {
    let only_x = || policy(vec![labels(&["x"])]);
    let mut fleet = fleet(
        vec![cluster("a", &["x=1"]), cluster("b", &[])],
        vec![placement("p1", only_x()), placement("p2", only_x())],
    );
    fleet.doubt.files.extend(["p1.yaml".to_owned(), "p3.yaml".to_owned()]);
    let decided = run(&fleet, &earlier(&[("p1", &["b"]), ("p2", &["b"]), ("p3", &["b"]), ("p4", &["b"])]));
    assert_eq!(picked(&decided, "p1"), ["a", "b"]);
    assert_eq!(picked(&decided, "p2"), ["a"]);
    assert_eq!(picked(&decided, "p3"), ["b"]);
    assert!(!decided.decisions.contains_key(&key("p4")));
}

#[test]
fn new_clusters_make_room_for_those_that_are_held() {
    let first = Policy { selection: Selection::First(2), ..policy(Vec::new()) };
    let mut fleet =
        fleet(["a", "b", "c"].map(|name| cluster(name, &[])).into(), vec![placement("web", first)]);
    fleet.doubt.everything = true;
    assert_eq!(picked(&run(&fleet, &earlier(&[("web", &["b", "x"])])), "web"), ["b", "x"]);
    assert_eq!(picked(&run(&fleet, &earlier(&[("web", &["x"])])), "web"), ["a", "x"]);
}
