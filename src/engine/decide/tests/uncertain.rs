//! A broken file is not a deletion.

use super::setup::*;
use berth_base::model::placement::{Policy, Selection};

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
