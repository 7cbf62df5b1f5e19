//! A run that goes on from an earlier one decides what a run that begins with nothing does.

use proptest::collection::vec;
use proptest::prelude::*;

use super::properties::{some_cluster, some_fleet, some_policy, some_status};
use super::setup::*;
use crate::decide::{DecisionCache, StoredDecisions, decide, decide_after};
use crate::state::{State, decision_differences};
use berth_base::codec::file::{File, to_bytes};
use berth_base::model::{Cluster, ClusterStatus, Decision, DecisionFormat, Fleet, Key, Map, Policy, Shared};

/// A change between two passes.
#[derive(Clone, Debug)]
enum Change {
    Time(i64),
    Cluster(usize, Cluster),
    Label(usize, String, Option<String>),
    Policy(usize, Policy),
    Gone(usize),
    Status(usize, ClusterStatus),
    /// The decision of the last run was not published: the one before stays in force.
    Held(usize),
    /// Some of the decision's clusters wait for their turn, and others keep their copies.
    Turns(usize),
    Doubt(bool),
    Left(usize),
    /// The decisions in force are an earlier version's.
    Older,
}

fn some_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..60_i64).prop_map(Change::Time),
        3 => (0..12_usize, some_cluster("c".to_owned())).prop_map(|(at, one)| Change::Cluster(at, one)),
        2 => (0..8_usize, "[klm]", prop::option::of("[uvw]"))
            .prop_map(|(at, key, value)| Change::Label(at, key, value)),
        2 => (0..4_usize, some_policy()).prop_map(|(at, one)| Change::Policy(at, one)),
        1 => (0..4_usize).prop_map(Change::Gone),
        1 => (0..8_usize, some_status()).prop_map(|(at, one)| Change::Status(at, one)),
        1 => (0..4_usize).prop_map(Change::Held),
        1 => (0..4_usize).prop_map(Change::Turns),
        1 => any::<bool>().prop_map(Change::Doubt),
        1 => (0..12_usize).prop_map(Change::Left),
        1 => Just(Change::Older),
    ]
}

/// The cache as another process finds it, beside the decisions that its own became.
fn in_another_process(
    cache: &DecisionCache,
    fleet: &Shared<Fleet>,
    current: &Map<Key, Decision>,
) -> DecisionCache {
    let current = State {
        decisions: current.clone(),
        facts: cache.facts.clone().unwrap_or_default(),
        ..State::default()
    };
    let bare = decision_differences::without_objects(&current.decisions);
    let bytes = to_bytes(None, |encoder| {
        decision_differences::put(encoder, &bare, &cache.results.decisions);
        cache.encode(encoder, &current);
    });
    let file = File::read(bytes).expect("it is a file");
    let mut decoder = file.decoder();
    let differences = decision_differences::get(&mut decoder).expect("it is readable");
    let stored = StoredDecisions::decode(&mut decoder).expect("it is readable");
    stored.restore(fleet, &decision_differences::apply(&bare, &differences), &current)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_remembered_changes_no_decision(
        (clusters, placements) in some_fleet(),
        changes in vec(some_change(), 1..12),
    ) {
        let mut fleet = Shared::from(fleet(clusters, placements));
        let (mut statuses, mut now) = (Map::new(), 950);
        let (mut is_current, mut before): (Map<Key, Decision>, Map<Key, Decision>) = Default::default();
        let mut cache: Option<DecisionCache> = None;
        let mut kept = 0;
        for (step, change) in [Change::Time(0), Change::Time(0)].into_iter().chain(changes).enumerate() {
            let earlier = fleet.clone();
            match change {
                Change::Time(passed) => now += passed,
                Change::Cluster(at, one) => {
                    let name = format!("c-{at}");
                    fleet.clusters.insert(name.clone(), Cluster { name: name.into(), ..one }.into());
                }
                Change::Label(at, key, value) => {
                    if let Some(cluster) = fleet.clusters.get_mut(&format!("c-{at}")) {
                        match value {
                            Some(value) => drop(cluster.labels.insert(key, value)),
                            None => drop(cluster.labels.remove(&key)),
                        }
                    }
                }
                Change::Policy(at, one) => {
                    let one = placement(&format!("p-{at}"), one);
                    fleet.placements.insert(one.key.clone(), one.into());
                }
                Change::Gone(at) => _ = fleet.placements.remove(&key(&format!("p-{at}"))),
                Change::Status(at, one) => {
                    let cluster = format!("c-{at}");
                    statuses.insert(cluster.clone(), ClusterStatus { cluster, ..one }.into());
                }
                Change::Held(at) => {
                    let key = key(&format!("p-{at}"));
                    match before.get(&key) {
                        Some(older) => _ = is_current.insert(key, older.clone()),
                        None => _ = is_current.remove(&key),
                    }
                }
                Change::Turns(at) => {
                    if let Some(decision) = is_current.get_mut(&key(&format!("p-{at}"))) {
                        for (place, pick) in decision.picks.iter_mut().enumerate() {
                            (pick.pending, pick.leaving) = (place % 3 == 1, place % 3 == 2);
                        }
                    }
                }
                Change::Doubt(doubt) => fleet.doubt.everything = doubt,
                Change::Left(at) => _ = fleet.clusters.remove(&format!("c-{at}")),
                Change::Older => {
                    let (by, at) = (DecisionFormat::First, second(now));
                    is_current = decide_after(None, &fleet, &Map::new(), &statuses, at, by).0.decisions;
                }
            }
            let fresh = decide(&fleet, &is_current, &statuses, second(now));
            // Every other pass is one of another process.
            if step % 2 == 1 {
                cache = cache.map(|cache| in_another_process(&cache, &earlier, &is_current));
            }
            let (went_on, next) = decide_after(cache.as_ref(), &fleet, &is_current, &statuses, second(now), DecisionFormat::NEWEST);
            prop_assert_eq!(&went_on.decisions, &fresh.decisions);
            prop_assert_eq!(&went_on.diagnostics, &fresh.diagnostics);
            prop_assert_eq!(&went_on.facts, &fresh.facts);
            prop_assert_eq!(went_on.next_change, fresh.next_change);
            kept += went_on.sticky;
            cache = next;
            before = std::mem::replace(&mut is_current, went_on.decisions);
        }
        prop_assert!(kept > 0);
    }
}
