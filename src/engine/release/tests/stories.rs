//! Rollouts as users experience them; and copies that a cluster's folder no longer has, but the cluster
//! still does.

use super::world::{World, at, key, policy};
use berth_base::model::Selector;
use berth_base::model::release::Health;
use berth_base::model::rollout::{Amount, Pace, Rolling, Rollout, Stage, StageTask, Strategy};
use berth_base::model::rollout_policy::{GateApproval, WorkloadPattern};
use berth_base::model::staged::{Side, StageGate};

pub(super) fn one_at_a_time() -> Strategy {
    let pace = Pace::ByCluster(Some(Amount::Count(1)));
    Strategy::Progressive(vec![Rollout { pace, ..Rollout::TOGETHER }])
}

pub(super) fn rolling(max_unavailable: usize) -> Strategy {
    Strategy::Rolling(Rolling {
        max_unavailable: Amount::Count(max_unavailable),
        max_surge: Amount::Count(0),
        period_seconds: 60,
        wanted: None,
        asked: true,
    })
}

#[test]
fn a_change_goes_on_as_members_report_success_on_that_very_content() {
    let mut world = World::proven(one_at_a_time());
    world.edit("2");
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    // The old reports still exist, but move nothing.
    world.now += 1_000;
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    for (cluster, shown) in [("a", "a=2 b=2 c=1"), ("b", "a=2 b=2 c=2")] {
        world.report(cluster, Health::Succeeded, "");
        world.settle();
        assert_eq!(world.shown(), shown);
        assert!(!world.releases().is_proven());
    }
    world.report("c", Health::Succeeded, "");
    world.settle();
    assert_eq!((world.releases().good, world.releases().assigned.len()), (Some(2), 0));
}

#[test]
fn a_failure_halts_and_says_why_and_the_fix_does_not_wait_for_it() {
    for strategy in [one_at_a_time(), rolling(1)] {
        let mut world = World::proven(strategy);
        world.edit("2");
        world.settle();
        world.report("a", Health::Failed, "cannot pull image `web:2`");
        world.settle();
        assert_eq!(world.shown(), "a=2 b=1 c=1");
        let halted = world.releases().halted.clone().expect("it halts");
        assert_eq!(halted.reason, "a failed: cannot pull image `web:2`");
        assert!(
            world.warnings[0].contains("release 2 is halted: a failed: cannot pull"),
            "{:?}",
            world.warnings
        );
        world.edit("3");
        world.settle();
        assert_eq!(world.shown(), "a=3 b=1 c=1");
        assert_eq!(world.releases().halted, None);
        for _ in 0..3 {
            world.report_all(Health::Succeeded);
            world.settle();
        }
        assert_eq!(world.shown(), "a=3 b=3 c=3");
    }
}

#[test]
fn an_unready_workload_does_not_block_its_own_fix() {
    let mut world = World::proven(rolling(1));
    world.edit("2");
    world.settle();
    world.report("a", Health::Progressing, "0 of 3 ready");
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    world.edit("3");
    world.settle();
    assert_eq!(world.shown(), "a=3 b=1 c=1");
}

#[test]
fn a_cluster_that_joins_gets_the_proven_release_and_then_takes_its_turn() {
    let mut world = World::proven(one_at_a_time());
    world.edit("2");
    world.settle();
    world.join("d");
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1 d=1");
    for _ in 0..5 {
        world.report_all(Health::Succeeded);
        world.settle();
    }
    assert_eq!(world.shown(), "a=2 b=2 c=2 d=2");
    assert!(world.releases().is_proven());
}

#[test]
fn a_revert_in_the_middle_is_the_proven_release_again() {
    let mut world = World::proven(one_at_a_time());
    world.edit("2");
    world.settle();
    world.report("a", Health::Failed, "no");
    world.settle();
    world.edit("1");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=1");
    assert_eq!(world.releases().current.number, 1);
    world.report_all(Health::Succeeded);
    world.settle();
    assert!(world.releases().is_proven() && world.releases().assigned.is_empty());
    world.edit("4");
    world.settle();
    assert_eq!(world.releases().current.number, 3);
}

#[test]
fn a_cluster_that_leaves_does_not_hold_up_the_others() {
    let mut world = World::proven(one_at_a_time());
    world.edit("2");
    world.settle();
    world.leave("a");
    world.settle();
    assert_eq!(world.version("b").as_deref(), Some("2"));
}

#[test]
fn a_workload_that_is_made_again_does_not_begin_with_a_number_that_it_had() {
    let mut world = World::proven(one_at_a_time());
    world.edit("2");
    world.settle();
    assert_eq!(world.releases().current.number, 2);
    let removed = world.fleet.workloads.remove(&key()).expect("it is there");
    world.settle();
    assert_eq!((world.shown().as_str(), world.releases_of(&key())), ("a=- b=- c=-", None));
    assert_eq!(world.state.ledger.last_releases, [(key(), 2)].into());
    // Other things happen in the meantime.
    world.now += 100;
    world.leave("c");
    world.settle();
    world.fleet.workloads.insert(key(), removed);
    world.edit("3");
    world.settle();
    assert_eq!(world.releases().current.number, 3);
    assert!(world.state.ledger.last_releases.is_empty(), "its record says so again");
}

#[test]
fn an_approval_of_a_release_opens_no_gate_for_a_workload_that_is_made_again() {
    let task = |after: &[StageTask]| Stage {
        name: "all".to_owned(),
        selector: Some(Selector { requirements: Vec::new() }),
        sorted_by: None,
        at_a_time: Amount::Count(1),
        before: after.to_vec(),
        after: Vec::new(),
    };
    let mut world = World::new(Strategy::Stages(vec![task(&[StageTask::Approval])]), &["a"]);
    let gate = StageGate { stage: "all".to_owned(), side: Side::Before };
    let approval = GateApproval { workload: WorkloadPattern::any(), release: 1, gate };
    let orders = policy("orders", |policy| policy.approved.push(approval));
    world.fleet.rollout_policies.insert(orders.key.clone(), orders.into());
    world.edit("1");
    world.settle();
    assert_eq!(world.shown(), "a=1");
    let removed = world.fleet.workloads.remove(&key()).expect("it is there");
    world.settle();
    world.fleet.workloads.insert(key(), removed);
    world.edit("unseen");
    world.settle();
    assert_eq!(world.shown(), "a=-", "nobody approved this release");
}

/// Returns three clusters of which the third has lost its copy, under a budget of one.
fn removed() -> World {
    let mut world = World::proven(rolling(1));
    world.now += 10;
    world.report_all(Health::Succeeded);
    world.unpicked.insert("c".to_owned());
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=-");
    world
}

fn removing(world: &World) -> Vec<&str> {
    world.releases().removing.keys().map(String::as_str).collect()
}

#[test]
fn a_cluster_that_is_picked_again_waits_until_its_copy_is_gone_and_so_do_all_others() {
    let mut world = removed();
    assert_eq!((removing(&world), world.releases().removing["c"]), (vec!["c"], at(world.now)));
    world.unpicked.clear();
    world.edit("2");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=-");
    assert_eq!(&*world.waits[&key()]["c"], "waiting for the removal of earlier copies in: c");
    // A report from before the removal does not count, nor does a report on an unfinished removal.
    world.settle();
    world.now += 10;
    world.report("c", Health::Progressing, "");
    world.settle();
    assert_eq!((world.shown().as_str(), removing(&world)), ("a=1 b=1 c=-", vec!["c"]));
    world.now += 10;
    world.report("c", Health::Succeeded, "");
    world.settle();
    assert_eq!((world.shown().as_str(), removing(&world).len()), ("a=1 b=1 c=1", 0));
    for _ in 0..4 {
        world.now += 10;
        world.report_all(Health::Succeeded);
        world.settle();
    }
    assert_eq!(world.shown(), "a=2 b=2 c=2");
}

#[test]
fn a_removal_that_goes_on_takes_a_place_of_the_surplus() {
    let mut world = removed();
    world.join("d");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=- d=-");
    world.now += 10;
    world.report("c", Health::Succeeded, "");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=- d=1");
}

#[test]
fn a_staged_rollout_is_done_when_what_left_is_gone() {
    let stage = Stage {
        name: "all".to_owned(),
        selector: Some(Selector::default()),
        sorted_by: None,
        at_a_time: Amount::Percent(100),
        before: Vec::new(),
        after: Vec::new(),
    };
    let mut world = World::proven(Strategy::Stages(vec![stage]));
    world.edit("2");
    world.unpicked.insert("c".to_owned());
    world.settle();
    world.now += 10;
    world.report_all(Health::Succeeded);
    world.settle();
    assert_eq!((world.shown().as_str(), removing(&world)), ("a=2 b=2 c=-", vec!["c"]));
    assert!(!world.releases().is_proven());
    world.now += 10;
    world.report("c", Health::Succeeded, "");
    world.settle();
    assert!(world.releases().is_proven() && removing(&world).is_empty());
}

#[test]
fn nobody_waits_for_members_that_never_reported_or_left_and_ocms_strategies_for_none() {
    // No report followed after all copies were proven, and the earlier reports are gone.
    let mut world = removed();
    world.leave("c");
    world.settle();
    assert_eq!(removing(&world), [""; 0]);
    let mut world = World::proven(one_at_a_time());
    world.unpicked.insert("c".to_owned());
    world.settle();
    assert_eq!(removing(&world), [""; 0]);
    let mut world = World::new(rolling(1), &["a", "b", "c"]);
    world.edit("1");
    world.report("a", Health::Succeeded, "");
    for _ in 0..3 {
        world.settle();
    }
    let with_copies = world.shown();
    world.unpicked.extend(["b".to_owned(), "c".to_owned()]);
    world.settle();
    assert_eq!(removing(&world), [""; 0], "{with_copies}");
}
