//! Waves and groups: the assigned clusters, and the reasons of those that wait.

use super::{NOW, after, missing, new, old, turn};
use crate::release::progressive::step;
use crate::release::turn::{Step, Turn, Version};
use berth_base::model::Group;
use berth_base::model::release::Health::{Applying, Failed, Progressing, Succeeded};
use berth_base::model::rollout::{Amount, GroupRef, Pace, Rollout};

fn waves(most: usize) -> Rollout {
    Rollout { pace: Pace::ByCluster(Some(Amount::Count(most))), ..Rollout::TOGETHER }
}

fn by_group() -> Rollout {
    Rollout { pace: Pace::ByGroup, ..Rollout::TOGETHER }
}

fn given(step: &Step<'_>) -> String {
    step.give.iter().copied().collect::<Vec<_>>().join(" ")
}

fn reason<'s>(step: &'s Step<'_>, cluster: &str) -> &'s str {
    step.waits.get(cluster).map_or("", |reason| &**reason)
}

fn groups() -> [Group; 3] {
    [(0, "canary"), (1, ""), (2, "prod")].map(|(index, name)| Group { index, name: name.to_owned() })
}

fn grouped<'a>(turns: &[Turn<'a>], groups: &'a [Group], indexes: &[usize]) -> Vec<Turn<'a>> {
    turns
        .iter()
        .zip(indexes)
        .map(|(turn, index)| Turn { group: groups.get(*index), ..turn.clone() })
        .collect()
}

#[test]
fn a_full_wave_names_who_is_under_way() {
    let turns = [new("a", Progressing), new("b", Failed), old("c", Succeeded), missing("d")];
    let rollout = Rollout { max_failures: Some(Amount::Count(1)), ..waves(2) };
    let found = step(&rollout, &turns, NOW);
    assert_eq!(given(&found), "");
    assert_eq!(reason(&found, "c"), "2 of 2 clusters are under way: a, b (failed)");
    assert_eq!(found.waits.keys().copied().collect::<Vec<_>>(), ["c", "d"]);
}

#[test]
fn a_success_counts_when_it_has_lasted() {
    let rollout = Rollout { soak_seconds: 600, ..waves(1) };
    let found = step(&rollout, &[turn("a", Version::New, Succeeded, 420), missing("b")], NOW);
    let until = after(180);
    assert_eq!(
        reason(&found, "b"),
        format!("1 of 1 cluster is under way: a (must stay healthy until {until})")
    );
    assert_eq!(found.next, Some(until));
    assert_eq!(given(&step(&rollout, &[turn("a", Version::New, Succeeded, 600), missing("b")], NOW)), "b");
}

#[test]
fn failures_halt_with_their_names() {
    let turns = [new("a", Failed), new("b", Progressing), missing("c")];
    let rollout = Rollout { deadline_seconds: Some(30), max_failures: Some(Amount::Count(1)), ..waves(3) };
    let found = step(&rollout, &turns, NOW);
    let words = "a, b took too long; at most 1 cluster may fail";
    assert_eq!(found.halted.as_ref().map(|failures| failures.words()).as_deref(), Some(words));
    assert_eq!(reason(&found, "c"), format!("the rollout is halted: {words}"));
    assert_eq!(found.timed_out.iter().copied().collect::<Vec<_>>(), ["a", "b"]);
    let found = step(&waves(3), &[new("a", Failed), missing("b")], NOW);
    assert_eq!(reason(&found, "b"), "the rollout is halted: a failed; no failures are allowed");
}

#[test]
fn a_limit_of_failures_above_the_number_of_clusters_allows_none_and_says_so() {
    let turns = [new("a", Failed), missing("b"), missing("c")];
    let rollout = Rollout { max_failures: Some(Amount::Count(10)), ..waves(2) };
    let found = step(&rollout, &turns, NOW);
    assert!(found.halted.is_some());
    let note = "the limit of 10 failures exceeds the number of clusters, 3, and counts as 0";
    assert_eq!(found.notes.into_iter().collect::<Vec<_>>(), [note]);
    // A limit of all clusters is a limit like any other.
    let rollout = Rollout { max_failures: Some(Amount::Count(3)), ..waves(2) };
    assert_eq!(given(&step(&rollout, &turns, NOW)), "b");
}

#[test]
fn a_failure_behind_a_full_wave_is_told() {
    let turns = [new("a", Progressing), new("b", Failed), missing("c")];
    let found = step(&waves(1), &turns, NOW);
    assert_eq!((&found.halted, given(&found).as_str()), (&None, ""));
    let note = "failures behind a full wave do not count yet: b";
    assert_eq!(found.notes.into_iter().collect::<Vec<_>>(), [note]);
}

#[test]
fn the_next_group_waits_for_the_one_before() {
    let groups = groups();
    let turns = [new("a", Succeeded), new("b", Applying), missing("c"), missing("d")];
    let turns = grouped(&turns, &groups, &[0, 0, 1, 2]);
    let found = step(&by_group(), &turns, NOW);
    assert_eq!(reason(&found, "c"), "group canary is not finished: b");
    assert_eq!(reason(&found, "d"), "group canary is not finished: b");
    let turns = [new("a", Succeeded), new("b", Succeeded), missing("c"), missing("d")];
    let turns = grouped(&turns, &groups, &[0, 0, 1, 2]);
    let found = step(&by_group(), &turns, NOW);
    assert_eq!((given(&found).as_str(), reason(&found, "d")), ("c", "group 1 is not finished: c"));
}

#[test]
fn a_group_that_failed_too_often_still_gets_its_own_clusters() {
    let groups = groups();
    let turns = grouped(&[new("a", Failed), missing("b"), missing("c")], &groups, &[0, 0, 1]);
    let found = step(&by_group(), &turns, NOW);
    assert_eq!(given(&found), "b");
    assert_eq!(
        reason(&found, "c"),
        "the rollout is halted: a failed; no failures are allowed in group canary"
    );
}

#[test]
fn after_mandatory_groups_a_wave_ends_before_the_next_begins() {
    let groups = groups();
    let first = vec![GroupRef::Name("canary".to_owned())];
    let rollout =
        Rollout { first, max_failures: Some(Amount::Count(2)), deadline_seconds: Some(600), ..waves(2) };
    let under_way = [new("a", Succeeded), new("b", Progressing), missing("c"), missing("d")];
    let under_way = grouped(&under_way, &groups, &[0, 1, 1, 1]);
    let found = step(&rollout, &under_way, NOW);
    assert_eq!((given(&found).as_str(), found.next), ("", Some(after(540))));
    assert_eq!(reason(&found, "c"), "the next wave begins when these are finished: b");
    // A cluster that was only assigned is not under way yet.
    let told = [new("a", Succeeded), new("b", Applying), missing("c"), missing("d")];
    assert_eq!(given(&step(&rollout, &grouped(&told, &groups, &[0, 1, 1, 1]), NOW)), "c");
    let late = [new("a", Succeeded), turn("b", Version::New, Failed, 700), missing("c"), missing("d")];
    let late = grouped(&late, &groups, &[0, 1, 1, 1]);
    let found = step(&rollout, &late, NOW);
    assert_eq!((given(&found).as_str(), found.next), ("", None));
    let words = "after mandatory groups, no wave begins while a cluster is past its deadline: b";
    assert_eq!(reason(&found, "c"), words);
}

#[test]
fn all_at_once_knows_neither_soak_nor_failures() {
    let rollout = Rollout {
        soak_seconds: 600,
        max_failures: Some(Amount::Count(1)),
        deadline_seconds: Some(30),
        ..Rollout::TOGETHER
    };
    let turns = [new("a", Failed), new("b", Progressing), new("c", Succeeded), missing("d")];
    let found = step(&rollout, &turns, NOW);
    assert_eq!((given(&found).as_str(), &found.halted), ("d", &None));
    assert_eq!(found.timed_out.into_iter().collect::<Vec<_>>(), ["a", "b"]);
}
