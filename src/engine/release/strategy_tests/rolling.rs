//! Budgets: the assigned clusters, and the reasons of those that wait.

use super::{NOW, after, missing, new, old, turn};
use crate::release::rolling::step;
use crate::release::turn::{Step, Turn, Version};
use berth_base::model::release::Health::{Applying, Failed, Progressing, Succeeded};
use berth_base::model::rollout::{Amount, Rolling};

fn budgets(max_unavailable: usize, max_surge: usize) -> Rolling {
    Rolling {
        max_unavailable: Amount::Count(max_unavailable),
        max_surge: Amount::Count(max_surge),
        period_seconds: 60,
        wanted: None,
        asked: true,
    }
}

fn told(step: &Step<'_>) -> String {
    let names = step.give.iter().map(|name| format!("+{name}"));
    names.chain(step.remove.iter().map(|name| format!("-{name}"))).collect::<Vec<_>>().join(" ")
}

fn reason<'s>(step: &'s Step<'_>, cluster: &str) -> &'s str {
    step.waits.get(cluster).map_or("", |reason| &**reason)
}

fn leaving(turn: Turn<'_>) -> Turn<'_> {
    Turn { picked: false, ..turn }
}

#[test]
fn who_waits_for_availability_hears_who_lacks_it() {
    let turns = [new("a", Progressing), new("b", Failed), old("c", Succeeded), old("d", Succeeded)];
    let found = step(&budgets(1, 0), &turns, NOW);
    assert_eq!(told(&found), "");
    let words = "3 of 4 copies must stay available, and 2 are, without a (progressing), b (failed)";
    assert_eq!((reason(&found, "c"), reason(&found, "d")), (words, words));
    let found = step(&budgets(1, 0), &[old("a", Succeeded), old("b", Succeeded)], NOW);
    assert_eq!(
        (told(&found).as_str(), reason(&found, "b")),
        ("+a", "1 more cluster may be unavailable now: a")
    );
}

#[test]
fn removals_go_first_and_failed_copies_are_updated_beside() {
    let turns = [
        old("a", Succeeded),
        old("b", Succeeded),
        old("c", Failed),
        leaving(old("d", Succeeded)),
        leaving(old("e", Failed)),
    ];
    let found = step(&budgets(2, 0), &turns, NOW);
    assert_eq!(told(&found), "+c -d -e");
    assert_eq!(reason(&found, "a"), "2 more clusters may be unavailable now: d, e");
}

#[test]
fn a_limit_above_the_number_of_clusters_frees_copies_that_never_were_available() {
    let turns = [old("a", Progressing), old("b", Progressing)];
    assert_eq!(told(&step(&budgets(2, 0), &turns, NOW)), "");
    assert_eq!(told(&step(&budgets(3, 0), &turns, NOW)), "+a");
    assert_eq!(told(&step(&budgets(4, 0), &turns, NOW)), "+a +b");
}

#[test]
fn a_share_is_of_the_wanted_number_and_rounded_up_in_whole_numbers() {
    let names: Vec<String> = (0..100).map(|n| format!("c{n:02}")).collect();
    let turns: Vec<Turn<'_>> = names.iter().map(|name| old(name, Succeeded)).collect();
    let share = |percent| Rolling { max_unavailable: Amount::Percent(percent), ..budgets(0, 0) };
    assert_eq!(step(&share(7), &turns, NOW).give.len(), 7);
    assert_eq!(step(&share(1), &turns[..50], NOW).give.len(), 1);
    let wanted = Rolling { wanted: Some(60), ..share(10) };
    assert_eq!(step(&wanted, &turns[..50], NOW).give.len(), 0);
    assert_eq!(step(&wanted, &turns[..57], NOW).give.len(), 3);
}

#[test]
fn who_joins_waits_for_room() {
    let turns = [new("a", Succeeded), missing("b"), missing("c"), leaving(new("d", Applying))];
    let wanted = |max_surge| Rolling { wanted: Some(3), ..budgets(0, max_surge) };
    let found = step(&wanted(0), &turns, NOW);
    assert_eq!(
        (told(&found).as_str(), reason(&found, "c")),
        ("+b", "2 of at most 3 copies exist already; first b")
    );
    assert_eq!(told(&step(&wanted(1), &turns, NOW)), "+b +c");
    let turns = [new("a", Succeeded), missing("b"), leaving(new("d", Succeeded))];
    let found = step(&Rolling { wanted: Some(2), ..budgets(0, 0) }, &turns, NOW);
    assert_eq!(reason(&found, "b"), "2 of at most 2 copies exist already");
}

#[test]
fn an_unmeasured_copy_counts_after_its_period() {
    let unmeasured = |turn| Turn { measured: false, ..turn };
    let fresh = |seconds| unmeasured(turn("a", Version::New, Succeeded, seconds));
    let others = || [unmeasured(old("b", Succeeded)), old("c", Succeeded), old("d", Succeeded)];
    let all = |seconds| [vec![fresh(seconds)], others().to_vec()].concat();
    // The other unmeasured copy is as old as the period: it counts one second later.
    let found = step(&budgets(2, 0), &all(20), NOW);
    assert_eq!((told(&found).as_str(), found.next), ("", Some(after(1))));
    let words = format!(
        "2 of 4 copies must stay available, and 2 are, without a (counts from {}), b (counts from {})",
        after(41),
        after(1)
    );
    assert_eq!(reason(&found, "d"), words);
    let found = step(&budgets(1, 0), &all(20), NOW);
    assert_eq!(found.next, Some(after(41)));
    assert_eq!(told(&step(&budgets(1, 0), &all(20), after(41))), "+b");
}

#[test]
fn a_cluster_that_returns_holds_everything_until_its_old_copy_is_gone() {
    let returning = Turn { removing: true, ..old("c", Succeeded) };
    let turns = [old("a", Failed), missing("b"), returning, leaving(old("d", Succeeded))];
    let found = step(&budgets(4, 4), &turns, NOW);
    assert_eq!(told(&found), "");
    let words = "waiting for the removal of earlier copies in: c";
    assert!(found.waits.values().all(|reason| **reason == *words));
    assert_eq!(found.waits.keys().copied().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
}
