use std::collections::BTreeMap;

use proptest::prelude::*;

use super::setup::*;
use berth_base::model::Map;
use berth_base::model::placement::{EvenConstraint, Policy, ScoreRule, Scorer, Selection};

fn even(key: &str, required: bool) -> EvenConstraint {
    EvenConstraint { key: key.to_owned(), of_claims: false, max_skew: 1, required }
}

fn evenly(constraints: Vec<EvenConstraint>, selection: Selection) -> Policy {
    let scorer = Scorer { name: "Spread".to_owned(), weight: 0, rule: ScoreRule::Even(constraints) };
    Policy { scorers: vec![scorer], selection, ..policy(Vec::new()) }
}

fn of(clusters: &[(&str, &str)], policy: Policy) -> Vec<String> {
    let clusters = clusters.iter().map(|(name, label)| match *label {
        "" => cluster(name, &[]),
        label => cluster(name, &[label]),
    });
    picked(&run(&fleet(clusters.collect(), vec![placement("p", policy)]), &Map::new()), "p")
}

const TWO_ZONES: [(&str, &str); 5] =
    [("a1", "z=a"), ("a2", "z=a"), ("a3", "z=a"), ("b1", "z=b"), ("b2", "z=b")];

#[test]
fn picks_are_even_over_the_values_of_a_label() {
    assert_eq!(of(&TWO_ZONES, evenly(vec![even("z", false)], Selection::First(4))), ["a1", "a2", "b1", "b2"]);
    assert_eq!(
        of(&TWO_ZONES, Policy { selection: Selection::First(4), ..policy(Vec::new()) }),
        ["a1", "a2", "a3", "b1"]
    );
}

#[test]
fn what_must_be_even_leaves_out_what_is_too_much() {
    let clusters = [("a1", "z=a"), ("a2", "z=a"), ("a3", "z=a"), ("b1", "z=b"), ("c", "")];
    assert_eq!(of(&clusters, evenly(vec![even("z", true)], Selection::All)), ["a1", "a2", "b1"]);
    assert_eq!(of(&clusters, evenly(vec![even("z", true)], Selection::First(5))), ["a1", "a2", "b1"]);
    // A constraint that is not required only orders: in the end all are picked.
    assert_eq!(of(&clusters, evenly(vec![even("z", false)], Selection::First(4))), ["a1", "a2", "a3", "b1"]);
}

#[test]
fn a_value_that_nobody_can_be_picked_from_holds_nobody_back() {
    let mut only_a = evenly(vec![even("z", true)], Selection::All);
    only_a.filters = policy(vec![labels(&["z=a"])]).filters;
    assert_eq!(of(&TWO_ZONES, only_a), ["a1", "a2", "a3"]);
}

proptest! {
    #[test]
    fn required_constraints_hold_for_any_fleet(zones in prop::collection::vec(0_usize..4, 0..14), count in 0_usize..14) {
        let names: Vec<String> = (0..zones.len()).map(|n| format!("c{n:02}")).collect();
        let labels: Vec<String> = zones.iter().map(|zone| format!("z={zone}")).collect();
        let clusters: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(labels.iter().map(String::as_str)).collect();
        let picked = of(&clusters, evenly(vec![even("z", true)], Selection::First(count)));
        let mut counts: BTreeMap<&str, usize> = clusters.iter().map(|(_, zone)| (*zone, 0)).collect();
        for (name, zone) in &clusters {
            *counts.get_mut(zone).expect("a zone") += usize::from(picked.iter().any(|one| one == name));
        }
        let (least, most) = (counts.values().min().copied(), counts.values().max().copied());
        prop_assert!(most.unwrap_or(0) <= least.unwrap_or(0) + 1, "{counts:?}");
        prop_assert!(picked.len() <= count);
        // No cluster is left out that would have fitted.
        if picked.len() < count.min(zones.len()) {
            let smallest = least.unwrap_or(0);
            prop_assert!(clusters.iter().all(|(name, zone)| picked.iter().any(|one| one == name) || counts[zone] > smallest));
        }
    }
}

#[test]
fn as_many_values_as_clusters_are_no_burden() {
    let names: Vec<String> = (0..2_000).map(|n| format!("c{n:04}")).collect();
    let labels: Vec<String> = (0..2_000).map(|n| format!("z={n}")).collect();
    let clusters: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(labels.iter().map(String::as_str)).collect();
    assert_eq!(of(&clusters, evenly(vec![even("z", false)], Selection::First(1_999))).len(), 1_999);
}
