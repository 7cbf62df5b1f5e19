use proptest::collection::btree_set;
use proptest::prelude::*;

use super::properties::states;
use super::*;
use berth_base::model::{ClusterStatus, Map, Shared};

const SHOP: &[(&str, u8)] = &[("ConfigMap web", 1), ("Namespace shop", 1)];

/// Returns a step without an edit, from a state with silent or frozen clusters.
fn step(before: &[&str], after: &[&str], silent: &[&str]) -> Case {
    let next = state(&FOUR, &[("web", SHOP, after)]);
    let mut case = Case::of(state(&FOUR, &[("web", SHOP, before)]), next);
    case.is_edited = false;
    case.next.facts = facts(silent);
    case
}

fn facts(silent: &[&str]) -> Map<String, Shared<ClusterStatus>> {
    let fact = |cluster: &&str| {
        let cluster = (*cluster).to_owned();
        let silent = Some(Timestamp::UNIX_EPOCH);
        (cluster.clone(), ClusterStatus { cluster, silent, ..ClusterStatus::default() }.into())
    };
    silent.iter().map(fact).collect()
}

/// Returns the clusters with copies, and for each held workload whether only its removals are held.
fn outcome(case: &Case) -> (Vec<String>, Vec<bool>) {
    let published = case.published();
    let with_copies = published.folders.iter().filter(|(_, folder)| !folder.is_empty());
    let held = case.judge().held;
    (with_copies.map(|(cluster, _)| cluster.clone()).collect(), held.iter().map(|one| one.goes_on).collect())
}

#[test]
fn a_workload_that_leaves_a_silent_cluster_goes_on_and_only_its_removals_are_held() {
    let mut case = step(&["a", "b"], &["b", "c"], &["a"]);
    for _ in 0..3 {
        assert_eq!(outcome(&case), (["a", "b", "c"].map(str::to_owned).to_vec(), vec![true]));
        let published = case.published();
        let pick = published.decisions[&key("web")].pick("a").expect("it keeps its copies");
        assert!(pick.leaving && pick.held);
        case.publish();
        assert_eq!(case.published().folders, published.folders);
    }
    // The silent cluster reports again.
    case.next.facts = Map::new();
    assert_eq!(outcome(&case).1, [true]);
    case.approvals = case.judge().held.iter().map(|held| held.digest).collect();
    assert_eq!((case.judge().held, case.published().folders), (Vec::new(), case.next.folders.clone()));
}

#[test]
fn nothing_goes_on_where_a_cluster_that_reports_would_lose_something() {
    let same = |case: &Case| assert_eq!(case.published().folders, case.previous.folders);
    let both = step(&["a", "b"], &["c", "d"], &["a"]);
    assert_eq!(outcome(&both).1, [false]);
    same(&both);
    let mut frozen = step(&["a", "b"], &["b", "c"], &["a"]);
    frozen.next.facts.get_mut("a").expect("a fact").frozen = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(outcome(&frozen).1, [false]);
    same(&frozen);
    let mut older = step(&["a", "b"], &["b", "c"], &["a"]);
    older.limits.failover = false;
    assert_eq!(outcome(&older).1, [false]);
    same(&older);
    let mut edited = step(&["a", "b"], &["b", "c"], &["a"]);
    edited.is_edited = true;
    assert_eq!(outcome(&edited).1, [true], "holding the copies back would protect nothing here either");
}

#[test]
fn divided_replicas_wait_with_the_removal() {
    let mut case = step(&["a", "b"], &["b", "c"], &["a"]);
    for state in [&mut case.previous, &mut case.next] {
        let decision = state.decisions.get_mut(&key("web")).expect("a decision");
        let pick = |pick: &Pick| pick.clone().with(|details| details.replicas = Some(3));
        decision.picks = decision.picks.iter().map(pick).collect::<Vec<_>>().into();
    }
    assert_eq!(outcome(&case).1, [false]);
    assert_eq!(case.published().folders, case.previous.folders);
}

#[test]
fn a_removal_from_all_clusters_does_not_slip_through_by_growth() {
    let all = ["a", "b", "c", "d", "e", "f", "g"];
    let of = |clusters: &[&str]| state(&all, &[("web", MAP, clusters)]);
    let mut case = Case::of(of(&["a", "b"]), of(&["c", "d"]));
    case.is_edited = false;
    case.limits.evictions.share = Percent::new(100);
    case.next.facts = facts(&["a", "b"]);
    assert_eq!(case.held(), [("web".to_owned(), Why::Clusters { lost: 2, of: 2, lately: 0 })]);
    assert_eq!(outcome(&case).1, [true]);
    case.publish();
    assert_eq!(outcome(&case).1, [true]);
    case.next = State { facts: case.next.facts, ..of(&["c", "d", "e", "f", "g"]) };
    assert_eq!(outcome(&case), (["a", "b", "c", "d"].map(str::to_owned).to_vec(), vec![false]));
}

#[test]
fn a_copy_of_another_workload_makes_held_losses_no_smaller() {
    let (one, two) = (&[("ConfigMap one", 1)][..], &[("ConfigMap two", 1)][..]);
    let before = state(&["a", "b", "c"], &[("p", one, &["c"]), ("r", one, &["b"])]);
    let mut case = Case::of(before, state(&["a", "b", "c"], &[("q", one, &["a"]), ("r", two, &["a"])]));
    case.is_edited = false;
    case.limits.evictions.share = Percent::new(100);
    let names = |verdict: &Verdict| -> Vec<String> {
        verdict.held.iter().map(|held| held.key.name.to_string()).collect()
    };
    assert_eq!(names(&case.judge()), ["p", "r"]);
    // Now the other workload has its copy.
    case.publish();
    assert_eq!(names(&case.judge()), ["p", "r"]);
}

proptest! {
    #[test]
    fn held_removals_stay_what_they_are_and_the_rest_goes_on(
        previous in states(),
        next in states(),
        silent in btree_set(prop::sample::select(vec!["a", "b", "c", "d", "e"]), 0..4),
    ) {
        let mut case = Case::of(previous, next);
        case.is_edited = false;
        case.limits.evictions.share = Percent::new(100);
        let silent: Vec<&str> = silent.into_iter().collect();
        case.next.facts = facts(&silent);
        let (first, published) = (case.judge(), case.published());
        for held in first.held.iter().filter(|held| held.goes_on) {
            prop_assert!(held.places.iter().all(|(cluster, _)| silent.contains(&cluster.as_str())));
            let decision = &published.decisions[&held.key];
            let picked: Vec<&Pick> = decision.picked().collect();
            prop_assert_eq!(picked, case.next.decisions[&held.key].picks.iter().collect::<Vec<_>>());
        }
        for (cluster, object) in first.held.iter().flat_map(|held| &held.places) {
            let path = path::of_object(object);
            let content = |state: &State| state.folders.get(cluster).and_then(|folder| folder.get(path.as_str())).copied();
            prop_assert_eq!(content(&published), content(&case.previous));
        }
        case.publish();
        let places = |verdict: &Verdict| -> Places {
            verdict.held.iter().flat_map(|held| held.places.clone()).collect()
        };
        prop_assert_eq!(places(&case.judge()), places(&first));
        prop_assert_eq!(case.published().folders, published.folders);
    }
}
