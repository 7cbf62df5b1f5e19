//! Removals in many steps, judged like one step; causes; approvals of many removals at once; deadlines:
//! those that a change brings, and those that are judged with it.

use super::*;
use crate::gate::losses::LaterDecisions;
use crate::state::ledger::Cause;

const TEN: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// Publishes the states one after the other, and returns the index of the first that is held.
fn first_held(states: &[State], change: impl Fn(&mut Case)) -> Option<usize> {
    let mut case = Case::of(states[0].clone(), states[0].clone());
    change(&mut case);
    for (index, state) in states.iter().enumerate().skip(1) {
        case.next = state.clone();
        if !case.publish().held.is_empty() {
            return Some(index);
        }
    }
    None
}

fn edited(_: &mut Case) {}

fn by_itself(case: &mut Case) {
    case.is_edited = false;
}

fn shrinking(sizes: &[usize]) -> Vec<State> {
    sizes.iter().map(|size| state(&TEN, &[("web", MAP, &TEN[..*size])])).collect()
}

#[test]
fn a_removal_in_many_steps_is_held_where_one_step_would_be() {
    let states = shrinking(&[10, 5, 3, 1]);
    assert_eq!(first_held(&states, edited), Some(2), "seven of ten");
    let states = shrinking(&[10, 9, 8, 7, 6, 5, 4, 3]);
    assert_eq!(first_held(&states, edited), Some(6));
    let later = |case: &mut Case| case.limits.window = Span::hours(0);
    assert_eq!(first_held(&states, later), None, "without a window each step counts alone");
}

#[test]
fn evictions_of_many_passes_share_one_budget() {
    let states = shrinking(&[10, 9, 8, 7, 6, 5]);
    assert_eq!(first_held(&states, by_itself), Some(4), "four of ten are more than 30 %");
}

#[test]
fn an_approved_eviction_leaves_the_budget_to_others_at_once() {
    const OTHER: &[(&str, u8)] = &[("ConfigMap db", 1)];
    let fleet = |web: &[&str], db: &[&str]| state(&TEN, &[("db", OTHER, db), ("web", MAP, web)]);
    let mut case = Case::of(fleet(&TEN, &TEN), fleet(&TEN[3..], &TEN[..8]));
    by_itself(&mut case);
    let held = case.judge().held;
    assert_eq!(held.iter().map(|held| &*held.key.name).collect::<Vec<_>>(), ["db", "web"], "five of ten");
    case.approvals.insert(held[1].digest);
    let verdict = case.publish();
    assert_eq!((verdict.held.len(), verdict.approved.len()), (0, 1), "two of ten are within the budget");
    assert_eq!(case.publish().held.len(), 0);
}

#[test]
fn a_cluster_that_comes_back_gives_its_share_back() {
    let states = shrinking(&[10, 5, 10, 5, 10, 5]);
    assert_eq!(first_held(&states, edited), None);
}

#[test]
fn workloads_with_the_same_object_lose_its_places_together() {
    let fleet = |web: &[&str], other: &[&str]| state(&TEN, &[("other", MAP, other), ("web", MAP, web)]);
    let why = |lately| Why::Clusters { lost: 3, of: 4, lately };
    let before = fleet(&["a", "b", "c"], &["d"]);
    let at_once = Case::of(before.clone(), fleet(&["a"], &["e"]));
    assert_eq!(at_once.held(), [("other".to_owned(), why(0)), ("web".to_owned(), why(0))]);
    let mut case = Case::of(before, fleet(&["a"], &["d"]));
    assert!(case.publish().held.is_empty());
    case.next = fleet(&["a"], &["e"]);
    assert_eq!(case.held(), [("other".to_owned(), why(2))], "the same in two steps");
}

#[test]
fn one_cluster_for_another_is_a_move_as_often_as_it_comes() {
    let states: Vec<State> =
        TEN.iter().map(|name| state(&TEN, &[("web", MAP, std::slice::from_ref(name))])).collect();
    assert_eq!(first_held(&states, edited), None);
    let two = [["a", "b"], ["c", "d"]].map(|two| state(&TEN, &[("web", MAP, &two)]));
    assert_eq!(first_held(&two, edited), Some(1), "both of two");
}

#[test]
fn objects_that_get_another_name_each_time_do_not_add_up() {
    let names: Vec<String> = (0..30).map(|n| format!("ConfigMap m{n:02}")).collect();
    let states: Vec<State> = (0..15)
        .map(|step| {
            let objects: Vec<(&str, u8)> =
                names[step..step + 12].iter().map(|name| (name.as_str(), 1)).collect();
            state(&FOUR, &[("many", &objects, &FOUR)])
        })
        .collect();
    // The first six are half; the seventh removes most of the initial objects.
    assert_eq!(first_held(&states, edited), Some(7));
    let churn: Vec<State> = (0..15)
        .map(|step| {
            let mut objects: Vec<(&str, u8)> = names[..11].iter().map(|name| (name.as_str(), 1)).collect();
            objects.push((names[15 + step].as_str(), 1));
            state(&FOUR, &[("many", &objects, &FOUR)])
        })
        .collect();
    assert_eq!(first_held(&churn, edited), None);
}

#[test]
fn ten_objects_of_each_of_many_clusters_are_many() {
    let names: Vec<String> = (0..11).map(|n| format!("ConfigMap m{n:02}")).collect();
    let objects: Vec<(&str, u8)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let clusters: Vec<String> = (0..50).map(|n| format!("c{n:02}")).collect();
    let clusters: Vec<&str> = clusters.iter().map(String::as_str).collect();
    let fleet = |count: usize| {
        let before = state(&clusters, &[("many", &objects, &clusters[..count])]);
        Case::of(before, state(&clusters, &[("many", &objects[..1], &clusters[..count])]))
    };
    assert!(fleet(1).held().is_empty(), "ten go free");
    let held = fleet(50).held();
    assert!(matches!(held[0].1, Why::Objects { lost: 10, of: 11, .. }), "{held:?}");
}

#[test]
fn limits_count_whatever_the_cause() {
    let objects: &[(&str, u8)] = &[("Namespace shop", 1), ("ConfigMap web", 1)];
    let mut case =
        Case::of(state(&FOUR, &[("web", objects, &["a", "b"])]), state(&FOUR, &[("web", objects, &["a"])]));
    case.is_edited = false;
    assert_eq!(case.held(), [("web".to_owned(), Why::Risky { object: object("Namespace shop") })]);
}

#[test]
fn an_edit_that_has_no_part_in_a_removal_is_not_its_cause() {
    let mut case = Case::of(state(&TEN, &[("web", MAP, &TEN)]), state(&TEN, &[("web", MAP, &TEN[..6])]));
    assert!(case.held().is_empty(), "an edit may take four of ten");
    case.edit_alone = vec![case.previous.decisions.clone()];
    let held = case.judge().held;
    assert_eq!(
        (held[0].causes.clone(), &held[0].why[..]),
        (BTreeSet::from([Cause::Time]), &[Why::Evictions { clusters: 4, of: 10 }][..])
    );
    case.edit_alone = vec![state(&TEN, &[("web", MAP, &TEN[..9])]).decisions];
    assert!(case.held().is_empty(), "three of the four are the outside's");
}

#[test]
fn one_approval_lets_everything_pass_that_is_held() {
    let before = state(&FOUR, &[("api", &[("ConfigMap api", 1)], &FOUR), ("web", MAP, &FOUR)]);
    let mut case = Case::of(before, state(&FOUR, &[]));
    let held = case.judge().held;
    assert_eq!(held.len(), 2);
    assert!(held[0].all == held[1].all && held[0].digest != held[1].digest && held[0].all != held[0].digest);
    case.approvals = BTreeSet::from([held[0].all]);
    let first = case.previous.clone();
    let verdict = case.publish();
    assert!(verdict.held.is_empty());
    assert_eq!(verdict.approved[0].digests, BTreeSet::from([held[0].all, held[0].digest]));
    assert!(
        case.previous.ledger.losses.values().all(|loss| loss.exempt),
        "what is approved does not count later"
    );

    case.previous = State { ledger: case.previous.ledger.clone(), ..first.clone() };
    let again = case.judge().held;
    assert_eq!(again.len(), 2, "it counts once");
    assert_ne!(again[0].all, held[0].all);

    case.previous = first;
    case.approvals = BTreeSet::from([held[0].digest]);
    let rest = case.judge().held;
    assert_eq!((rest.len(), rest[0].all), (1, held[1].digest), "one of one is itself");
}

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
