//! One loss, one cause, one permit: what the ledger remembers from pass to pass.

use super::*;
use crate::state::ledger::{Cause, CopyOwner, GivenApproval};
use berth_base::diag::Pos;
use berth_base::model::Workload;
use berth_base::model::rollout::Strategy;
use berth_base::model::rollout_policy::{RolloutPolicy, WorkloadPattern};

const NINE: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

fn on(clusters: &[&str]) -> State {
    state(&NINE, &[("web", MAP, clusters)])
}

/// Publishes, and returns the clusters with copies.
fn with_copies(case: &mut Case) -> String {
    case.publish();
    let folders = case.previous.folders.iter().filter(|(_, folder)| !folder.is_empty());
    folders.map(|(cluster, _)| cluster.as_str()).collect()
}

#[test]
fn a_change_is_permitted_as_a_whole_before_its_first_step() {
    let mut case = Case::of(on(&NINE), on(&NINE[..5]));
    for last in [8, 7, 6] {
        case.step = Some(on(&NINE[..last]));
        assert_eq!(with_copies(&mut case), NINE[..last].concat(), "four of nine may go, in steps");
        case.is_edited = false;
    }
    let mut case = Case::of(on(&NINE), on(&NINE[..1]));
    case.step = Some(on(&NINE[..8]));
    assert_eq!(case.held(), [("web".to_owned(), Why::Clusters { lost: 8, of: 9, lately: 0 })]);
    assert_eq!(with_copies(&mut case), NINE.concat(), "held before the first step");
}

#[test]
fn a_workload_that_was_permitted_to_move_is_not_permitted_to_go() {
    let mut case = Case::of(on(&["a"]), on(&["b"]));
    case.step = Some(on(&["a"]));
    assert_eq!(with_copies(&mut case), "a", "it waits for its turn in b, which nobody holds");
    case.next = on(&[]);
    case.step = None;
    assert_eq!(case.held(), [("web".to_owned(), Why::Clusters { lost: 1, of: 1, lately: 0 })]);
    case.is_edited = false;
    assert_eq!(case.publish().held.len(), 1, "nor where a report keeps it from b");
    assert_eq!(with_copies(&mut case), "a");
}

#[test]
fn a_permit_is_judged_again_without_a_place_that_was_to_come() {
    let mut case = Case::of(on(&NINE[..6]), on(&NINE[..4]));
    assert_eq!(with_copies(&mut case), "abcd", "two of six");
    case.next = on(&["c", "d", "e"]);
    let mut step = on(&NINE[..5]);
    step.folders.insert("e".to_owned(), Folder::new());
    let mut web = step.decisions[&key("web")].clone();
    let waiting = |pick: &Pick| pick.clone().with(|details| details.pending = &*pick.cluster == "e");
    web.picks = web.picks.iter().map(waiting).collect::<Vec<_>>().into();
    step.decisions.insert(web.key.clone(), web);
    case.step = Some(step);
    assert_eq!(with_copies(&mut case), "abcd", "three of six, in steps, since the copy in e returns");
    (case.next, case.step) = (on(&["c", "d"]), None);
    assert_eq!(case.held(), [("web".to_owned(), Why::Clusters { lost: 4, of: 6, lately: 2 })]);
}

#[test]
fn steps_that_are_permitted_are_no_losses_by_statuses_or_time() {
    let mut case = Case::of(on(&NINE), on(&NINE[..5]));
    case.step = Some(on(&NINE));
    case.publish();
    case.is_edited = false;
    case.step = None;
    case.limits.evictions.share = Percent::new(0);
    assert!(case.publish().held.is_empty());
    let causes = case.previous.ledger.losses.values().map(|loss| loss.cause.is_edit());
    assert_eq!(causes.collect::<Vec<_>>(), [true; 4]);
}

#[test]
fn an_object_that_moves_keeps_its_copy_until_the_turn_of_its_heir() {
    let moved = |clusters: &[&str]| state(&NINE, &[("heir", MAP, clusters)]);
    let mut case = Case::of(on(&NINE), moved(&NINE));
    for turns in [0, 1, 5, 5] {
        case.step = Some(moved(&NINE[..turns]));
        let verdict = case.publish();
        assert!(verdict.held.is_empty());
        assert!(case.previous.folders.values().all(|folder| folder.len() == 1), "{turns} turns");
        assert_eq!(case.previous.ledger.owners.len(), NINE.len() - turns);
        let web = CopyOwner::until_handed_over(key("web"));
        assert!(case.previous.ledger.owners.values().all(|owner| *owner == web));
        case.is_edited = false;
    }
    case.step = None;
    case.publish();
    assert!(case.previous.ledger.owners.is_empty());
    assert_eq!(case.previous.folders, case.next.folders);
}

#[test]
fn an_heir_that_is_deleted_before_its_turn_takes_nothing_with_it() {
    let other: [Given<'_>; 1] = [("other", &[("ConfigMap other", 1)], &NINE)];
    let with = |name| state(&NINE, &[(name, MAP, &NINE), other[0]]);
    let mut case = Case::of(with("web"), with("heir"));
    case.step = Some(State { folders: state(&NINE, &other).folders, ..with("heir") });
    case.publish();
    (case.next, case.step) = (state(&NINE, &other), None);
    let all = Why::Clusters { lost: 9, of: 9, lately: 0 };
    assert_eq!(case.held(), [("heir".to_owned(), all.clone()), ("web".to_owned(), all)]);
    let held = case.judge().held;
    assert_eq!(held[0].digest, held[1].digest, "one approval for both");
}

#[test]
fn a_workload_that_comes_back_before_it_has_handed_over_keeps_its_copies() {
    let mut case = Case::of(on(&NINE), state(&NINE, &[("heir", MAP, &NINE)]));
    case.step = Some(state(&NINE, &[("heir", MAP, &[])]));
    case.publish();
    // The rollout starts again, and no cluster has its turn yet.
    (case.next, case.step) = (on(&NINE), Some(on(&[])));
    assert_eq!(case.held(), []);
    case.publish();
    assert!(case.previous.folders.values().all(|folder| folder.len() == 1));
}

#[test]
fn an_heir_that_goes_away_leaves_a_loss_of_the_old_owner() {
    let mut case = Case::of(on(&NINE), state(&NINE, &[("heir", MAP, &NINE)]));
    case.step = Some(on(&[]));
    case.publish();
    (case.next, case.step) = (on(&[]), None);
    assert_eq!(case.held(), [("web".to_owned(), Why::Clusters { lost: 9, of: 9, lately: 0 })]);
}

#[test]
fn a_rollback_exempts_what_an_edit_takes_and_nothing_else() {
    let mut case = Case::of(on(&NINE), on(&[]));
    case.is_rollback = true;
    assert!(case.judge().is_rollback && case.held().is_empty());
    case.is_edited = false;
    assert_eq!(case.held().len(), 1, "no edit takes it");
    case.is_edited = true;
    case.edit_alone = vec![case.previous.decisions.clone()];
    assert_eq!(case.held().len(), 1, "the edit alone takes nothing");
}

#[test]
fn a_held_edit_is_in_nobodys_budget() {
    let other = |clusters: &[&str], more: &[&str]| {
        state(&NINE, &[("web", MAP, clusters), ("more", &[("ConfigMap more", 1)], more)])
    };
    let mut case = Case::of(other(&NINE, &NINE), other(&NINE[..1], &NINE));
    assert_eq!(case.publish().held.len(), 1);
    // A status changes.
    case.is_edited = false;
    case.next = other(&NINE[..1], &NINE[..8]);
    let verdict = case.publish();
    assert_eq!(verdict.held.len(), 1, "{:?}", verdict.held);
    assert!(!case.previous.folders["i"].contains_key("shop/ConfigMap_more.yaml"), "the failover goes on");
}

/// Adds a policy that puts these workloads together.
fn go_together(fleet: &mut Fleet, names: &[&str]) {
    for name in names {
        let workload = Workload {
            key: key(name),
            origin: Pos::default(),
            templates: Vec::new(),
            overrides: Vec::new().into(),
            replicas: None,
            frozen: false,
            strategy: Strategy::AtOnce,
        };
        fleet.workloads.insert(key(name), workload.into());
    }
    let workloads = Some(vec![WorkloadPattern::any()]);
    let policy = RolloutPolicy { key: key("pair"), workloads, together: true, ..RolloutPolicy::default() };
    fleet.rollout_policies.insert(policy.key.clone(), policy.into());
}

#[test]
fn workloads_that_go_together_are_held_and_approved_as_one() {
    let pair = |clusters: &[&str], content: u8| {
        state(&NINE, &[("api", &[("ConfigMap api", content)], &NINE), ("web", MAP, clusters)])
    };
    let mut case = Case::of(pair(&NINE, 1), pair(&NINE[..1], 2));
    go_together(&mut case.fleet, &["api", "web"]);
    let held = case.judge().held;
    assert_eq!(held.iter().map(|held| &*held.key.name).collect::<Vec<_>>(), ["api", "web"]);
    assert_eq!(case.published(), case.previous);
    case.approvals.insert(held[0].digest);
    assert_eq!(case.published(), case.next);
}

#[test]
fn losses_add_up_under_whatever_name() {
    let named = |name: &'static str, clusters: &[&str]| state(&NINE, &[(name, MAP, clusters)]);
    let mut case = Case::of(named("one", &NINE), named("two", &NINE[..5]));
    assert!(case.publish().held.is_empty());
    case.next = named("three", &NINE[..3]);
    assert_eq!(case.held(), [("two".to_owned(), Why::Clusters { lost: 6, of: 9, lately: 4 })]);
}

#[test]
fn nothing_goes_by_waiting() {
    let mut case = Case::of(on(&NINE), on(&NINE[..5]));
    case.publish();
    case.next = on(&NINE[..3]);
    assert_eq!(case.publish().held.len(), 1);
    case.is_edited = false;
    case.now = Span::hours(72).after(case.now);
    assert_eq!(case.publish().held.len(), 1, "the window has passed");
    case.limits.clusters.share = Percent::new(100);
    assert_eq!(case.held(), [("web".to_owned(), Why::Still)]);
    case.limits_stay = false;
    assert_eq!(case.held(), [], "the daemon has other limits now");
}

#[test]
fn an_approval_in_a_message_counts_until_it_is_used() {
    let mut case = Case::of(on(&NINE), on(&NINE));
    let digest = Case::of(on(&NINE), on(&[])).judge().held[0].digest;
    let given = GivenApproval { commit: "earlier".to_owned(), until: Span::hours(1).after(case.now) };
    case.previous.ledger.approvals.insert(digest, given);
    case.publish();
    case.next = on(&[]);
    let late = Case { now: Span::hours(2).after(case.now), ..case.clone() };
    assert_eq!(late.held().len(), 1, "it has expired");
    assert!(case.publish().held.is_empty());
    assert!(case.previous.ledger.approvals.is_empty() && case.previous.ledger.used.contains_key(&digest));
    case.previous = State { ledger: case.previous.ledger.clone(), ..on(&NINE) };
    assert_eq!(case.held().len(), 1, "it counts once");
}

#[test]
fn clusters_that_a_decision_names_for_others_are_places() {
    let placement = |clusters: &[&str]| {
        let mut state = state(&NINE, &[]);
        let key = Key::new("cluster.open-cluster-management.io", "Placement", "shop", "web");
        let picks: Vec<Pick> = clusters.iter().map(|cluster| Pick::of(*cluster)).collect();
        let decision = Decision { picks: picks.into(), ..Decision::new(key, "web.yaml") };
        state.decisions.insert(decision.key.clone(), decision);
        state
    };
    let mut case = Case::of(placement(&NINE), placement(&[]));
    assert_eq!(case.held(), [("web".to_owned(), Why::Clusters { lost: 9, of: 9, lately: 0 })]);
    assert_eq!(case.published(), case.previous);
    case.approvals.insert(case.judge().held[0].digest);
    case.publish();
    assert!(case.previous.decisions.values().all(|decision| decision.picks.is_empty()));
    let all_gone = case.previous.ledger.losses.values().all(|loss| matches!(loss.stage, Stage::Gone { .. }));
    assert!(
        all_gone && case.previous.ledger.losses.values().all(|loss| matches!(loss.cause, Cause::Edit { .. }))
    );
}
