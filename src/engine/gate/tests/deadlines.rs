//! Deadlines: those that a change brings, and those that are judged with it.

use super::*;
use crate::gate::deadlines::LaterDecisions;

const DAY: i64 = 86_400;

fn day(days: i64) -> Timestamp {
    second(days * DAY)
}

fn second(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).expect("a moment")
}

/// Returns the decisions of a later moment at which only these clusters have the workload.
fn ahead(at: Timestamp, clusters: &[&str]) -> LaterDecisions {
    let decisions = state(&FOUR, &[("web", MAP, clusters)]).decisions;
    LaterDecisions { at, decisions: decisions.iter().map(|(key, one)| (key.clone(), one.clone())).collect() }
}

/// Returns a change that moves nothing now.
fn quiet(with_change: Vec<LaterDecisions>, without_change: Vec<LaterDecisions>) -> Case {
    let now = state(&FOUR, &[("web", MAP, &FOUR)]);
    let mut case = Case::of(now.clone(), now);
    case.outlook = Outlook { with_change, without_change };
    case.now = day(0);
    case
}

#[test]
fn a_deadline_that_the_change_brings_is_held_as_if_it_were_now() {
    let verdict = quiet(vec![ahead(day(3), &["a"])], Vec::new()).judge();
    let [held] = verdict.held.as_slice() else { panic!("{verdict:?}") };
    assert_eq!(held.why, [Why::Clusters { lost: 3, of: 4, lately: 0 }]);
    assert_eq!(held.due.len(), 3);
    assert!(held.due.values().all(|at| *at == day(3)));
    assert!(verdict.deadlines.is_empty(), "nothing was let pass");
}

#[test]
fn a_deadline_that_exists_already_is_not_the_changes() {
    let earlier = || vec![ahead(day(3), &["a"])];
    assert_eq!(quiet(earlier(), earlier()).held(), []);
    let later = quiet(vec![ahead(day(4), &["a"])], earlier());
    assert_eq!(later.held(), [], "the change puts it off");
    let sooner = quiet(vec![ahead(second(3 * DAY - 1), &["a"])], earlier());
    assert_eq!(sooner.held().len(), 1, "the change brings it forward");
    let more = quiet(vec![ahead(day(3), &[])], vec![ahead(day(3), &["a", "b", "c"])]);
    assert_eq!(more.judge().held[0].due.len(), 3, "only what it adds");
}

#[test]
fn a_held_deadline_stays_held_and_the_same_approval_lets_it_pass() {
    let mut case = quiet(vec![ahead(day(30), &["a"])], Vec::new());
    let first = case.publish();
    (case.is_edited, case.outlook, case.now) = (false, Outlook::default(), day(1));
    let again = case.publish();
    assert_eq!(again.held[0].digest, first.held[0].digest);
    case.approvals.insert(first.held[0].digest);
    assert!(case.publish().held.is_empty());
    // The deadline passes.
    (case.now, case.next) = (day(30), state(&FOUR, &[("web", MAP, &["a"])]));
    assert!(case.publish().held.is_empty(), "it was permitted with the change");
    assert_eq!(case.previous.folders, case.next.folders);
}

#[test]
fn a_deadline_that_is_called_off_is_forgotten() {
    let mut case = quiet(vec![ahead(day(3), &["a"])], Vec::new());
    case.publish();
    (case.outlook, case.now) = (Outlook::default(), day(1));
    assert!(case.publish().held.is_empty() && case.previous.ledger.losses.is_empty(), "by an edit");
}

#[test]
fn deadlines_of_a_source_that_was_judged_before_are_not_judged_again() {
    let mut case = quiet(vec![ahead(day(3), &["a"])], Vec::new());
    case.is_edited = false;
    assert_eq!(case.held(), []);
}

#[test]
fn a_deadline_below_the_limits_passes_and_is_written_down() {
    let mut case = quiet(vec![ahead(day(3), &["a", "b", "c"])], Vec::new());
    let verdict = case.publish();
    assert!(verdict.held.is_empty());
    assert_eq!(case.previous.folders, case.next.folders, "nothing goes yet");
    let [deadline] = verdict.deadlines.as_slice() else { panic!("{verdict:?}") };
    assert_eq!((deadline.at, deadline.clusters()), (day(3), BTreeSet::from(["d"])));
    let losses: Vec<_> =
        case.previous.ledger.pending().map(|(_, loss)| (loss.stage.clone(), loss.due)).collect();
    assert_eq!(losses, [(Stage::Permitted, Some(day(3)))]);
}
