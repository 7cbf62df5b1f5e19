//! Divisions in the engine: their inputs become facts and part of the digest, and uncertainty moves nothing.

use std::collections::BTreeMap;

use super::setup::*;
use crate::decide::{Decided, decide};
use berth_base::diag::Pos;
use berth_base::model::cluster::{Readiness, Report};
use berth_base::model::cluster::{WorkloadName, WorkloadReport};
use berth_base::model::placement::{Division, Filter, Policy, Rule, Share};
use berth_base::model::{ClusterStatus, Fleet, Key, Map, Shared};

fn divided(total: i32) -> Policy {
    let division = Division {
        by: Key::new("test", "Preference", "shop", "web"),
        origin: Pos::new("spread.yaml", 1, 1),
        workload: WorkloadName::of(&key("web")),
        total,
        shares: BTreeMap::new(),
        others: Some(Share { weight: 1, ..Share::default() }),
        rebalance: false,
        hash_key: "shop/web".to_owned(),
        among: vec![Filter { rule: Rule::Ready, by: None }],
        then: Vec::new(),
    };
    Policy { division: Some(Box::new(division)), ..policy(vec![Rule::Nowhere("as written".to_owned())]) }
}

fn world(total: i32) -> Fleet {
    fleet(vec![cluster("a", &[]), cluster("b", &[])], vec![placement("web", divided(total))])
}

fn numbers(decided: &Decided) -> Vec<(String, Option<i64>)> {
    let picks = decided.decisions.values().flat_map(|decision| &decision.picks);
    picks.map(|pick| (pick.cluster.to_string(), pick.replicas)).collect()
}

fn given(a: i64, b: i64) -> Vec<(String, Option<i64>)> {
    vec![("a".to_owned(), Some(a)), ("b".to_owned(), Some(b))]
}

fn reports(capacity: Option<i64>) -> Map<String, Shared<ClusterStatus>> {
    let workloads =
        [key("web"), key("other")].map(|key| (WorkloadName::of(&key), WorkloadReport { capacity }));
    let status =
        ClusterStatus { cluster: "a".to_owned(), workloads: workloads.into(), ..ClusterStatus::default() };
    Map::from([("a".to_owned(), status.into())])
}

#[test]
fn reported_room_counts_becomes_a_fact_and_a_new_one_is_a_reason_to_decide_again() {
    let fleet = world(8);
    let now = second(1000);
    let first = decide(&fleet, &Map::new(), &reports(Some(4)), now);
    assert_eq!(numbers(&first), given(4, 4));
    let fact = &first.facts["a"].workloads;
    assert_eq!(fact.len(), 1, "only what was read is a fact: {fact:?}");
    let from_facts = decide(&fleet, &Map::new(), &first.facts, now);
    assert_eq!(from_facts.decisions, first.decisions, "the facts alone give the same decision");

    let again = decide(&fleet, &first.decisions, &reports(Some(4)), now);
    assert_eq!((again.sticky, again.decided), (1, 0));
    let smaller = decide(&fleet, &first.decisions, &reports(Some(1)), now);
    assert_eq!(smaller.decided, 1);
    assert_eq!(numbers(&smaller)[1].1, Some(7));
}

#[test]
fn a_cluster_that_is_lost_in_doubt_keeps_its_replicas_and_nobody_is_given_them() {
    let before = decide(&world(8), &Map::new(), &Map::new(), second(1000));
    let mut doubtful = world(8);
    doubtful.clusters.remove("a");
    doubtful.doubt.everything = true;
    let held = run(&doubtful, &before.decisions);
    assert_eq!(numbers(&held), given(4, 4));
    assert_eq!(run(&doubtful, &held.decisions).decisions, held.decisions);
}

#[test]
fn where_nobody_takes_part_the_placement_stands_as_it_is_written() {
    let mut fleet = world(8);
    for cluster in fleet.clusters.values_mut() {
        cluster.standing = Readiness::Reported(Report { ready: Some(false), ..Report::default() });
    }
    let first = run(&fleet, &Map::new());
    assert!(numbers(&first).is_empty());
    let divided_before = run(&world(8), &Map::new());
    assert_eq!(numbers(&run(&fleet, &divided_before.decisions)), given(4, 4));
}
