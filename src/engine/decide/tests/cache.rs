//! Tests that a pass with a cache decides the same as a pass without one.

use proptest::collection::vec;
use proptest::prelude::*;

use super::properties::{some_cluster, some_fleet, some_policy, some_status};
use super::setup::*;
use crate::decide::{DecisionCache, decide, decide_after};
use berth_base::model::placement::{Rule, ScoreRule, Selection};
use berth_base::model::{Cluster, ClusterStatus, Decision, Fleet, Key, Map, Policy, Shared, Timestamp};

/// A change between two passes.
#[derive(Clone, Debug)]
enum Change {
    Time(i64),
    Cluster(usize, Cluster),
    Label(usize, String, Option<String>),
    Policy(usize, Policy),
    /// A placement gets the policy of another one.
    Alike(usize, usize),
    Gone(usize),
    Status(usize, ClusterStatus),
    /// The decision of the last pass was not published: the one before stays current.
    Held(usize),
    /// Some of the decision's clusters wait for their turn, and others keep their copies.
    Turns(usize),
    Doubt(bool),
    Left(usize),
}

fn some_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..60_i64).prop_map(Change::Time),
        3 => (0..12_usize, some_cluster("c".to_owned())).prop_map(|(at, one)| Change::Cluster(at, one)),
        2 => (0..8_usize, "[klm]", prop::option::of("[uvw]"))
            .prop_map(|(at, key, value)| Change::Label(at, key, value)),
        2 => (0..4_usize, some_policy()).prop_map(|(at, one)| Change::Policy(at, one)),
        1 => (0..4_usize, 0..4_usize).prop_map(|(at, of)| Change::Alike(at, of)),
        1 => (0..4_usize).prop_map(Change::Gone),
        1 => (0..8_usize, some_status()).prop_map(|(at, one)| Change::Status(at, one)),
        1 => (0..4_usize).prop_map(Change::Held),
        1 => (0..4_usize).prop_map(Change::Turns),
        1 => any::<bool>().prop_map(Change::Doubt),
        1 => (0..12_usize).prop_map(Change::Left),
    ]
}

/// The inputs of a pass.
struct World {
    fleet: Shared<Fleet>,
    statuses: Map<String, Shared<ClusterStatus>>,
    now: i64,
    is_current: Map<Key, Decision>,
    /// The decisions of the pass before.
    before: Map<Key, Decision>,
}

impl World {
    fn make(&mut self, change: Change) {
        let World { fleet, statuses, now, is_current, before } = self;
        let nth = |at: usize| key(&format!("p-{at}"));
        match change {
            Change::Time(passed) => *now += passed,
            Change::Cluster(at, one) => {
                let name = format!("c-{at}");
                fleet.clusters.insert(name.clone(), Cluster { name: name.into(), ..one }.into());
            }
            Change::Label(at, key, value) => {
                let Some(cluster) = fleet.clusters.get_mut(&format!("c-{at}")) else { return };
                match value {
                    Some(value) => drop(cluster.labels.insert(key, value)),
                    None => drop(cluster.labels.remove(&key)),
                }
            }
            Change::Policy(at, one) => {
                let one = placement(&format!("p-{at}"), one);
                fleet.placements.insert(one.key.clone(), one.into());
            }
            Change::Alike(at, of) => {
                let Some(source) = fleet.placements.get(&nth(of)).map(|one| one.source.clone()) else {
                    return;
                };
                if let Some(one) = fleet.placements.get_mut(&nth(at)) {
                    one.source = source;
                }
            }
            Change::Gone(at) => _ = fleet.placements.remove(&nth(at)),
            Change::Status(at, one) => {
                let cluster = format!("c-{at}");
                statuses.insert(cluster.clone(), ClusterStatus { cluster, ..one }.into());
            }
            Change::Held(at) => match before.get(&nth(at)) {
                Some(older) => _ = is_current.insert(nth(at), older.clone()),
                None => _ = is_current.remove(&nth(at)),
            },
            Change::Turns(at) => {
                let Some(decision) = is_current.get_mut(&nth(at)) else { return };
                for (place, pick) in decision.picks.iter_mut().enumerate() {
                    (pick.pending, pick.leaving) = (place % 3 == 1, place % 3 == 2);
                }
            }
            Change::Doubt(doubt) => fleet.doubt.everything = doubt,
            Change::Left(at) => _ = fleet.clusters.remove(&format!("c-{at}")),
        }
    }

    /// Decides with and without the cache, which must give the same result, and returns the next cache.
    fn decide(
        &mut self,
        cache: Option<&DecisionCache>,
    ) -> Result<(Option<DecisionCache>, usize), TestCaseError> {
        let World { fleet, statuses, now, is_current, .. } = self;
        let now = second(*now);
        let fresh = decide(fleet, is_current, statuses, now);
        let (went_on, next) = decide_after(cache, fleet, is_current, statuses, now);
        prop_assert_eq!(&went_on.decisions, &fresh.decisions);
        prop_assert_eq!(&went_on.diagnostics, &fresh.diagnostics);
        prop_assert_eq!(&went_on.facts, &fresh.facts);
        prop_assert_eq!(went_on.next_change, fresh.next_change);
        self.before = std::mem::replace(&mut self.is_current, went_on.decisions);
        Ok((next, went_on.sticky))
    }
}

#[test]
fn an_edited_placement_says_nothing_of_one_that_was_like_it() -> Result<(), TestCaseError> {
    let prod = || policy(vec![labels(&["env=prod"])]);
    let clusters = vec![cluster("c-0", &["env=prod"]), cluster("c-1", &[]), cluster("c-2", &[])];
    let fleet = fleet(clusters, vec![placement("p-0", prod()), placement("p-1", prod())]);
    let (is_current, before) = Default::default();
    let mut world = World { fleet: fleet.into(), statuses: Map::new(), now: 950, is_current, before };
    let (cache, _) = world.decide(None)?;
    let (cache, _) = world.decide(cache.as_ref())?;
    world.make(Change::Policy(0, policy(vec![labels(&["env=dev"])])));
    world.make(Change::Label(1, "env".to_owned(), Some("prod".to_owned())));
    world.decide(cache.as_ref())?;
    assert_eq!(world.is_current[&key("p-1")].picks.len(), 2);
    Ok(())
}

#[test]
fn a_decision_that_was_held_gives_way_where_the_one_in_force_holds_again() -> Result<(), TestCaseError> {
    let clusters = vec![cluster("c-0", &["k=v"]), cluster("c-1", &[])];
    let fleet = fleet(clusters, vec![placement("p-0", policy(vec![labels(&["k=v"])]))]);
    let (is_current, before) = Default::default();
    let mut world = World { fleet: fleet.into(), statuses: Map::new(), now: 950, is_current, before };
    let (cache, _) = world.decide(None)?;
    let older = world.is_current[&key("p-0")].digest;
    world.make(Change::Cluster(8, cluster("c-8", &["k=v"])));
    let (cache, _) = world.decide(cache.as_ref())?;
    assert_ne!(world.is_current[&key("p-0")].digest, older);
    world.make(Change::Held(0));
    world.make(Change::Left(8));
    world.decide(cache.as_ref())?;
    assert_eq!(world.is_current[&key("p-0")].digest, older);
    Ok(())
}

#[test]
fn the_first_decision_that_reads_the_load_counts_decisions_that_were_not_published() {
    let on = |name: &str| policy(vec![Rule::Named(names(&[name]))]);
    let clusters = ["c-0", "c-1"].map(|name| cluster(name, &[]));
    let one = |name: &str| fleet(clusters.to_vec(), vec![placement("p-0", on(name))]);
    let decide = |cache: Option<&DecisionCache>, fleet: Fleet, current: &Map<Key, Decision>| {
        let now = Timestamp::UNIX_EPOCH;
        decide_after(cache, &fleet.into(), current, &Map::new(), now)
    };
    let current = decide(None, one("c-0"), &Map::new()).0.decisions;
    let (_, cache) = decide(None, one("c-1"), &current);
    let balanced = Policy {
        scorers: vec![scorer(ScoreRule::Balance)],
        selection: Selection::First(1),
        ..policy(Vec::new())
    };
    let mut both = one("c-1");
    both.placements.insert(key("p-1"), placement("p-1", balanced).into());
    let warm = decide(cache.as_ref(), both.clone(), &current).0.decisions;
    assert!(warm[&key("p-1")].has("c-0"));
    assert_eq!(warm, decide(None, both, &current).0.decisions);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_remembered_changes_no_decision(
        (clusters, placements) in some_fleet(),
        steps in vec(vec(some_change(), 1..4), 1..12),
    ) {
        let fleet = Shared::from(fleet(clusters, placements));
        let (is_current, before) = Default::default();
        let mut world = World { fleet, statuses: Map::new(), now: 950, is_current, before };
        let mut cache: Option<DecisionCache> = None;
        let mut kept = 0;
        for changes in [vec![], vec![]].into_iter().chain(steps) {
            changes.into_iter().for_each(|change| world.make(change));
            let (next, sticky) = world.decide(cache.as_ref())?;
            cache = next;
            kept += sticky;
        }
        prop_assert!(kept > 0);
    }
}
