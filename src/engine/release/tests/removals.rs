//! Copies that a cluster's folder no longer has, but the cluster still does.

use berth_base::model::Selector;
use berth_base::model::release::Health;
use berth_base::model::rollout::{Amount, Stage, Strategy};

use super::stories::{one_at_a_time, rolling};
use super::world::{World, at, key};

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
