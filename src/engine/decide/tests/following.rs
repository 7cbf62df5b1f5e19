//! Placements that follow others.

use super::setup::*;
use berth_base::model::Map;
use berth_base::model::placement::Source;

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
