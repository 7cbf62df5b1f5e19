//! Strategies on given facts, and on fleets that apply what they get.
//!
//! Budgets, waves and groups: the assigned clusters, and the reasons of those that wait.

mod properties;

use jiff::SignedDuration;

use super::progressive;
use super::rolling::step;
use super::strategies::{Step, Turn, Version};
use berth_base::model::release::Health::{self, Applying, Failed, Progressing, Succeeded};
use berth_base::model::rollout::{Amount, GroupRef, Pace, Rolling, Rollout};
use berth_base::model::{Group, Timestamp};

/// The moment of a test.
const NOW: Timestamp = Timestamp::constant(1_780_000_000, 0);

fn after(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

/// Returns a picked cluster whose copy has had this health for this many seconds.
fn turn(cluster: &str, has: Version, health: Health, seconds: i64) -> Turn<'_> {
    let since = (health != Applying).then(|| after(-seconds));
    Turn { cluster, picked: true, has, health, since, measured: true, ..Turn::default() }
}

fn missing(cluster: &str) -> Turn<'_> {
    Turn { cluster, picked: true, ..Turn::default() }
}

fn new(cluster: &str, health: Health) -> Turn<'_> {
    turn(cluster, Version::New, health, 60)
}

fn old(cluster: &str, health: Health) -> Turn<'_> {
    turn(cluster, Version::Old, health, 60)
}

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

fn waves(most: usize) -> Rollout {
    Rollout { pace: Pace::ByCluster(Some(Amount::Count(most))), ..Rollout::TOGETHER }
}

fn by_group() -> Rollout {
    Rollout { pace: Pace::ByGroup, ..Rollout::TOGETHER }
}

fn given(step: &Step<'_>) -> String {
    step.give.iter().copied().collect::<Vec<_>>().join(" ")
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
    let found = progressive::step(&rollout, &turns, NOW);
    assert_eq!(given(&found), "");
    assert_eq!(reason(&found, "c"), "2 of 2 clusters are under way: a, b (failed)");
    assert_eq!(found.waits.keys().copied().collect::<Vec<_>>(), ["c", "d"]);
}

#[test]
fn a_success_counts_when_it_has_lasted() {
    let rollout = Rollout { soak_seconds: 600, ..waves(1) };
    let found = progressive::step(&rollout, &[turn("a", Version::New, Succeeded, 420), missing("b")], NOW);
    let until = after(180);
    assert_eq!(
        reason(&found, "b"),
        format!("1 of 1 cluster is under way: a (must stay healthy until {until})")
    );
    assert_eq!(found.next, Some(until));
    assert_eq!(
        given(&progressive::step(&rollout, &[turn("a", Version::New, Succeeded, 600), missing("b")], NOW)),
        "b"
    );
}

#[test]
fn failures_halt_with_their_names() {
    let turns = [new("a", Failed), new("b", Progressing), missing("c")];
    let rollout = Rollout { deadline_seconds: Some(30), max_failures: Some(Amount::Count(1)), ..waves(3) };
    let found = progressive::step(&rollout, &turns, NOW);
    let words = "a, b took too long; at most 1 cluster may fail";
    assert_eq!(found.halted.as_ref().map(|failures| failures.words()).as_deref(), Some(words));
    assert_eq!(reason(&found, "c"), format!("the rollout is halted: {words}"));
    assert_eq!(found.timed_out.iter().copied().collect::<Vec<_>>(), ["a", "b"]);
    let found = progressive::step(&waves(3), &[new("a", Failed), missing("b")], NOW);
    assert_eq!(reason(&found, "b"), "the rollout is halted: a failed; no failures are allowed");
}

#[test]
fn a_limit_of_failures_above_the_number_of_clusters_allows_none_and_says_so() {
    let turns = [new("a", Failed), missing("b"), missing("c")];
    let rollout = Rollout { max_failures: Some(Amount::Count(10)), ..waves(2) };
    let found = progressive::step(&rollout, &turns, NOW);
    assert!(found.halted.is_some());
    let note = "the limit of 10 failures exceeds the number of clusters, 3, and counts as 0";
    assert_eq!(found.notes.into_iter().collect::<Vec<_>>(), [note]);
    // A limit of all clusters is a limit like any other.
    let rollout = Rollout { max_failures: Some(Amount::Count(3)), ..waves(2) };
    assert_eq!(given(&progressive::step(&rollout, &turns, NOW)), "b");
}

#[test]
fn a_failure_behind_a_full_wave_is_told() {
    let turns = [new("a", Progressing), new("b", Failed), missing("c")];
    let found = progressive::step(&waves(1), &turns, NOW);
    assert_eq!((&found.halted, given(&found).as_str()), (&None, ""));
    let note = "failures behind a full wave do not count yet: b";
    assert_eq!(found.notes.into_iter().collect::<Vec<_>>(), [note]);
}

#[test]
fn the_next_group_waits_for_the_one_before() {
    let groups = groups();
    let turns = [new("a", Succeeded), new("b", Applying), missing("c"), missing("d")];
    let turns = grouped(&turns, &groups, &[0, 0, 1, 2]);
    let found = progressive::step(&by_group(), &turns, NOW);
    assert_eq!(reason(&found, "c"), "group canary is not finished: b");
    assert_eq!(reason(&found, "d"), "group canary is not finished: b");
    let turns = [new("a", Succeeded), new("b", Succeeded), missing("c"), missing("d")];
    let turns = grouped(&turns, &groups, &[0, 0, 1, 2]);
    let found = progressive::step(&by_group(), &turns, NOW);
    assert_eq!((given(&found).as_str(), reason(&found, "d")), ("c", "group 1 is not finished: c"));
}

#[test]
fn a_group_that_failed_too_often_still_gets_its_own_clusters() {
    let groups = groups();
    let turns = grouped(&[new("a", Failed), missing("b"), missing("c")], &groups, &[0, 0, 1]);
    let found = progressive::step(&by_group(), &turns, NOW);
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
    let found = progressive::step(&rollout, &under_way, NOW);
    assert_eq!((given(&found).as_str(), found.next), ("", Some(after(540))));
    assert_eq!(reason(&found, "c"), "the next wave begins when these are finished: b");
    // A cluster that was only assigned is not under way yet.
    let told = [new("a", Succeeded), new("b", Applying), missing("c"), missing("d")];
    assert_eq!(given(&progressive::step(&rollout, &grouped(&told, &groups, &[0, 1, 1, 1]), NOW)), "c");
    let late = [new("a", Succeeded), turn("b", Version::New, Failed, 700), missing("c"), missing("d")];
    let late = grouped(&late, &groups, &[0, 1, 1, 1]);
    let found = progressive::step(&rollout, &late, NOW);
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
    let found = progressive::step(&rollout, &turns, NOW);
    assert_eq!((given(&found).as_str(), &found.halted), ("d", &None));
    assert_eq!(found.timed_out.into_iter().collect::<Vec<_>>(), ["a", "b"]);
}
