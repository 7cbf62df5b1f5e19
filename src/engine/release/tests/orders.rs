//! The orders of people in rollout policies.

use berth_base::diag::Pos;
use berth_base::model::release::Health;
use berth_base::model::rollout::{Amount, Pace, Rollout, Strategy};
use berth_base::model::rollout_policy::{Abort, OnFailure, Pin, RolloutPolicy, WorkloadPattern};
use berth_base::model::{ClusterStatus, Key, Map};

use super::stories::{one_at_a_time, rolling};
use super::world::{World, at, key, other_key, policy};

fn proven() -> World {
    World::proven(one_at_a_time())
}

fn pin(cluster: &str, release: Option<u64>) -> Pin {
    Pin {
        at: Pos::file("rollouts/orders.yaml"),
        clusters: vec![cluster.to_owned()],
        selector: None,
        release,
        reason: "until the audit".to_owned(),
    }
}

fn order(world: &mut World, change: impl FnOnce(&mut RolloutPolicy)) {
    let policy = policy("orders", change);
    world.fleet.rollout_policies.insert(policy.key.clone(), policy.into());
}

#[test]
fn a_release_that_fails_is_rolled_back_where_that_is_asked_for() {
    let mut world = proven();
    order(&mut world, |policy| policy.on_failure = Some(OnFailure::RollBack));
    world.edit("2");
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    world.now += 10;
    world.report("a", Health::Failed, "no");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=1");
    assert_eq!(world.releases().halted.as_ref().map(|halt| halt.reason.as_str()), Some("a failed: no"));
    world.now += 10;
    world.report_all(Health::Succeeded);
    world.settle();
    // The failed release is not retried by itself, but a newer one is tried.
    assert_eq!(world.shown(), "a=1 b=1 c=1");
    world.edit("3");
    world.settle();
    assert_eq!(world.shown(), "a=3 b=1 c=1");
}

#[test]
fn a_release_is_taken_back_at_once_where_people_abort_it() {
    let mut world = proven();
    world.edit("2");
    world.settle();
    world.now += 10;
    world.report("a", Health::Succeeded, "");
    world.settle();
    assert_eq!(world.shown(), "a=2 b=2 c=1");
    let workload = WorkloadPattern::any();
    let abort = Abort { workload, release: 2, reason: "wrong prices".to_owned() };
    order(&mut world, |policy| policy.aborted.push(abort));
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=1");
}

#[test]
fn nothing_goes_on_while_it_is_paused_and_newcomers_begin_with_what_is_proven() {
    let mut world = proven();
    order(&mut world, |policy| policy.paused = Some("waiting for legal".to_owned()));
    world.edit("2");
    world.join("d");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=1 d=1");
    world.fleet.rollout_policies = Map::new();
    world.settle();
    assert_eq!(world.version("a").as_deref(), Some("2"));
}

#[test]
fn a_pinned_cluster_keeps_its_release_and_holds_nobody_up() {
    let mut world = proven();
    order(&mut world, |policy| policy.pins.push(pin("b", None)));
    world.edit("2");
    for _ in 0..4 {
        world.settle();
        world.now += 10;
        world.report_all(Health::Succeeded);
    }
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=2");
    assert!(world.releases().is_proven());
    assert_eq!(["a", "b"].map(|cluster| world.releases().of_cluster(cluster)), [Some(2), Some(1)]);
    // Without the pin the cluster keeps that release until its turn comes.
    order(&mut world, |policy| (policy.pins, policy.paused) = (Vec::new(), Some("holidays".to_owned())));
    world.settle();
    assert_eq!((world.shown(), world.releases().of_cluster("b")), ("a=2 b=1 c=2".to_owned(), Some(1)));
}

#[test]
fn newcomers_begin_with_a_proven_release_also_while_all_is_frozen() {
    let mut world = proven();
    order(&mut world, |policy| policy.paused = Some("holidays".to_owned()));
    world.join("d");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=1 d=1");
}

#[test]
fn a_newcomer_that_begins_in_a_pause_waits_for_nobody_and_halts_nothing() {
    let mut world = proven();
    order(&mut world, |policy| policy.paused = Some("holidays".to_owned()));
    world.now += 10;
    world.report("c", Health::Failed, "no");
    world.settle();
    world.join("b2");
    world.settle();
    assert_eq!((world.shown().as_str(), world.releases().halted.clone()), ("a=1 b=1 b2=1 c=1", None));
    assert!(world.waits[&key()].is_empty(), "{:?}", world.waits);
}

#[test]
fn a_newcomer_that_keeps_what_it_gets_first_is_not_behind() {
    let mut world = World::proven(rolling(1));
    world.edit("2");
    world.settle();
    for cluster in ["a", "b"] {
        world.now += 10;
        world.report(cluster, Health::Succeeded, "");
        world.settle();
    }
    world.now += 10;
    world.report("a", Health::Failed, "no");
    world.join("d");
    order(&mut world, |policy| policy.pins.push(pin("d", None)));
    world.settle();
    assert_eq!((world.shown().as_str(), world.releases().halted.clone()), ("a=2 b=2 c=2 d=1", None));
}

#[test]
fn a_newcomer_that_is_pinned_while_all_go_back_holds_up_no_proof() {
    let mut world = proven();
    world.now += 10;
    world.edit("2");
    world.settle();
    let workload = WorkloadPattern::any();
    let abort = Abort { workload, release: 2, reason: "wrong prices".to_owned() };
    let orders = |policy: &mut RolloutPolicy| {
        policy.paused = Some("holidays".to_owned());
        policy.aborted.push(abort.clone());
    };
    order(&mut world, orders);
    world.settle();
    assert_eq!((world.shown().as_str(), world.releases().assigned.len()), ("a=1 b=1 c=1", 1));
    world.now += 10;
    world.report("a", Health::Succeeded, "");
    world.join("d");
    order(&mut world, |policy| {
        orders(policy);
        policy.pins.push(pin("d", None));
    });
    world.settle();
    assert_eq!((world.shown().as_str(), world.releases().assigned.len()), ("a=1 b=1 c=1 d=1", 0));
}

#[test]
fn where_a_pin_ends_as_a_member_takes_its_report_back_a_second_pass_changes_nothing() {
    let mut world = proven();
    world.now += 10;
    world.join("d");
    order(&mut world, |policy| policy.pins.push(pin("d", None)));
    world.settle();
    world.now += 10;
    let silent =
        ClusterStatus { cluster: "b".to_owned(), reported: Some(at(world.now)), ..Default::default() };
    world.statuses.insert("b".to_owned(), silent.into());
    order(&mut world, |policy| policy.pins.clear());
    world.settle();
    assert_eq!(world.releases().assigned.keys().collect::<Vec<_>>(), ["d"], "its report is awaited");
}

#[test]
fn facts_keep_a_success_while_all_rest_and_no_failure() {
    let mut world = World::proven(rolling(1));
    let health = |world: &World| {
        let fact = world.state.facts.get("b").and_then(|fact| fact.copies.values().next());
        fact.map(|report| report.health)
    };
    world.now += 10;
    world.report("b", Health::Failed, "no");
    world.settle();
    assert_eq!(health(&world), Some(Health::Succeeded), "nothing moves, and nothing is published for it");
    world.unpicked.insert("c".to_owned());
    world.settle();
    assert_eq!(health(&world), Some(Health::Failed), "something moved");
    world.now += 10;
    world.report("c", Health::Succeeded, "");
    world.settle();
    // Under another strategy, a past failure would halt the proof of a step, but not the step.
    world.now += 10;
    world.report("b", Health::Succeeded, "");
    world.settle();
    assert_eq!(health(&world), Some(Health::Succeeded));
}

#[test]
fn a_success_is_a_fact_where_a_failure_is_one_elsewhere() {
    let mut world = World::new(Strategy::AtOnce, &["a", "b", "c"]);
    world.edit("1");
    world.settle();
    world.now += 10;
    world.report("c", Health::Failed, "no");
    let soak_seconds = 120;
    let rollout =
        Rollout { pace: Pace::ByCluster(Some(Amount::Count(1))), soak_seconds, ..Rollout::TOGETHER };
    world.go_by(Strategy::Progressive(vec![rollout]));
    world.settle();
    assert!(world.releases().is_proven(), "everybody has it");
    world.now += 90;
    world.report("a", Health::Succeeded, "");
    world.settle();
    // In the step, the first wave is still full, and the failure behind it does not count.
    world.now += 60;
    world.settle();
    assert_eq!(world.releases().halted, None);
    world.now += 120;
    world.settle();
    assert!(world.releases().halted.is_some());
}

#[test]
fn a_release_that_everybody_has_is_rolled_back_where_it_fails_before_it_is_proven() {
    let mut world = proven();
    order(&mut world, |policy| policy.on_failure = Some(OnFailure::RollBack));
    world.edit("2");
    for cluster in ["a", "b"] {
        world.settle();
        world.now += 10;
        world.report(cluster, Health::Succeeded, "");
    }
    world.settle();
    assert_eq!(world.shown(), "a=2 b=2 c=2");
    world.now += 10;
    world.report("c", Health::Failed, "no");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=1");
}

#[test]
fn a_report_from_before_a_pin_gave_copies_back_says_nothing_of_them() {
    let mut world = proven();
    world.now += 10;
    let late = world.failure("a");
    world.now += 10;
    world.edit("2");
    world.settle();
    world.statuses.insert("a".to_owned(), late.into());
    world.settle();
    world.now += 10;
    order(&mut world, |policy| policy.pins.push(pin("a", Some(1))));
    world.settle();
    assert_eq!((world.shown().as_str(), world.awaited()), ("a=1 b=2 c=1", vec!["a"]));
    // Without the pin, too, only the next report counts.
    order(&mut world, |policy| policy.paused = Some("holidays".to_owned()));
    world.settle();
    assert_eq!((world.shown().as_str(), world.awaited()), ("a=1 b=2 c=1", vec!["a"]));
    world.now += 10;
    world.report("a", Health::Succeeded, "");
    world.settle();
    assert!(world.awaited().is_empty());
}

#[test]
fn a_pin_that_keeps_copies_keeps_the_moment_of_their_coming() {
    let mut world = proven();
    world.edit("2");
    world.settle();
    world.now += 10;
    let late = world.failure("a");
    for version in ["3", "2"] {
        world.now += 10;
        world.edit(version);
        world.settle();
    }
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    world.statuses.insert("a".to_owned(), late.into());
    world.settle();
    assert_eq!(world.releases().halted, None);
    order(&mut world, |policy| policy.pins.push(pin("a", None)));
    world.settle();
    assert_eq!(world.awaited(), ["a"]);
    // Without the pin the release waits for a report on these copies.
    order(&mut world, |_| {});
    world.settle();
    assert_eq!((world.releases().halted.clone(), world.awaited()), (None, Vec::new()));
    assert!(world.releases().assigned.contains_key("a"));
}

#[test]
fn a_report_from_before_a_cluster_left_says_nothing_of_what_it_gets_first() {
    let mut world = proven();
    world.now += 10;
    let late = world.failure("c");
    world.now += 10;
    world.unpicked.insert("c".to_owned());
    world.settle();
    world.statuses.insert("c".to_owned(), late.into());
    world.settle();
    world.now += 10;
    order(&mut world, |policy| policy.pins.push(pin("c", None)));
    world.unpicked.clear();
    world.settle();
    assert_eq!((world.shown().as_str(), world.awaited()), ("a=1 b=1 c=1", vec!["c"]));
}

/// Returns a world with a second workload, both without a copy. A policy about both gives the first one its
/// `bond`.
fn beside_another(bond: impl FnOnce(&mut RolloutPolicy)) -> World {
    let mut world = World::new(one_at_a_time(), &["a", "b"]);
    world.add(other_key(), one_at_a_time());
    [key(), other_key()].iter().for_each(|key| world.edit_of(key, "1"));
    order(&mut world, bond);
    world
}

fn exactly(key: &Key) -> WorkloadPattern {
    WorkloadPattern { name: Some(key.name.to_string()), ..WorkloadPattern::any() }
}

fn after_the_other(policy: &mut RolloutPolicy) {
    policy.workloads = Some(vec![exactly(&key())]);
    policy.after = vec![exactly(&other_key())];
}

/// Pins all clusters of the other workload alone.
fn pin_the_other(world: &mut World, release: Option<u64>) {
    let pins = policy("pins", |policy| {
        policy.workloads = Some(vec![exactly(&other_key())]);
        policy.pins = ["a", "b"].map(|cluster| pin(cluster, release)).to_vec();
    });
    world.fleet.rollout_policies.insert(pins.key.clone(), pins.into());
}

#[test]
fn a_workload_that_is_placed_nowhere_holds_up_nobody() {
    let mut world = beside_another(after_the_other);
    world.placed_nowhere.insert(other_key());
    world.settle();
    assert_eq!(world.shown(), "a=1 b=-", "{:?}", world.waits);
    assert_eq!(world.releases_of(&other_key()).and_then(|releases| releases.good), None, "nobody proved it");
    // When it is placed later, it goes first again.
    world.placed_nowhere.clear();
    world.edit("2");
    world.settle();
    world.now += 10;
    world.report_all(Health::Succeeded);
    world.settle();
    assert_eq!(world.shown(), "a=1 b=-", "{:?}", world.waits);
}

#[test]
fn a_workload_whose_clusters_are_all_pinned_holds_up_nobody() {
    for release in [None, Some(7)] {
        let mut world = beside_another(after_the_other);
        pin_the_other(&mut world, release);
        world.settle();
        assert_eq!(world.version("a").as_deref(), Some("1"), "{release:?}: {:?}", world.waits);
        assert_eq!(world.releases_of(&other_key()).and_then(|releases| releases.good), None);
    }
}

#[test]
fn a_workload_that_is_placed_nowhere_holds_up_no_proof_of_those_it_goes_together_with() {
    let mut world = beside_another(|policy| {
        policy.workloads = Some(vec![exactly(&key()), exactly(&other_key())]);
        policy.together = true;
    });
    world.placed_nowhere.insert(other_key());
    for _ in 0..3 {
        world.settle();
        world.now += 10;
        world.report_all(Health::Succeeded);
    }
    world.settle();
    assert_eq!((world.shown().as_str(), world.releases().is_proven()), ("a=1 b=1", true));
    assert_eq!(world.releases_of(&other_key()).and_then(|releases| releases.good), None, "nobody proved it");
}
