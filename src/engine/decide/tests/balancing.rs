//! Properties of many placements that read each other's load, and of OCM's scores and groups.

use std::collections::BTreeMap;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::setup::*;
use crate::decide::explain;
use berth_base::model::placement::{GroupSize, Grouping, Placement, ScoreRule, Selection};
use berth_base::model::{Cluster, Decision, Key, Map, Policy};

/// Returns a cluster that may report its memory.
fn sized(name: String, memory: Option<i64>) -> Cluster {
    let amount = memory.map(|memory| ("memory".to_owned(), memory.to_string())).into_iter();
    let amounts: BTreeMap<String, String> = amount.collect();
    Cluster { name: name.into(), allocatable: amounts.clone(), capacity: amounts, ..Cluster::default() }
}

/// Returns OCM's default policy, optionally with a score for memory.
fn ranked(wanted: usize, memory: bool) -> Policy {
    let mut scorers = vec![scorer(ScoreRule::Balance), scorer(ScoreRule::Steady)];
    scorers.extend(memory.then(|| scorer(ScoreRule::Allocatable("memory".to_owned()))));
    Policy { scorers, selection: Selection::First(wanted), ..policy(Vec::new()) }
}

fn some_fleet() -> impl Strategy<Value = (Vec<Cluster>, Vec<Placement>)> {
    let memory = || prop::option::weighted(0.8, prop::sample::select(vec![0, 1, 7, 1000, i64::MAX]));
    let clusters = vec(memory(), 1..9).prop_map(|all| {
        all.into_iter()
            .enumerate()
            .map(|(index, memory)| sized(format!("c-{index}"), memory))
            .collect::<Vec<_>>()
    });
    let placements = vec((0..5_usize, any::<bool>()), 1..40).prop_map(|all| {
        let one = |(index, (wanted, memory))| placement(&format!("p-{index:02}"), ranked(wanted, memory));
        all.into_iter().enumerate().map(one).collect::<Vec<_>>()
    });
    (clusters, placements)
}

fn undigested(decisions: &Map<Key, Decision>) -> Map<Key, Decision> {
    decisions.iter().map(|(key, one)| (key.clone(), Decision { digest: None, ..one.clone() })).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_that_balance_stay_where_they_are_however_often_they_run((clusters, placements) in some_fleet()) {
        let fleet = fleet(clusters, placements);
        let first = run(&fleet, &Map::new());
        let second = run(&fleet, &first.decisions);
        prop_assert_eq!(second.decided, 0);
        prop_assert_eq!(&second.decisions, &first.decisions);
        // New decisions over equal inputs are equal, whatever the earlier decisions.
        let anew = run(&fleet, &undigested(&first.decisions));
        prop_assert_eq!(&run(&fleet, &undigested(&first.decisions)).decisions, &anew.decisions);
        prop_assert_eq!(run(&fleet, &anew.decisions).decided, 0);
    }

    #[test]
    fn one_placement_more_moves_none_of_the_others((clusters, placements) in some_fleet(), wanted in 0..5_usize) {
        let mut fleet = fleet(clusters, placements);
        let first = run(&fleet, &Map::new());
        let new = placement("a-new-one", ranked(wanted, true));
        fleet.placements.insert(new.key.clone(), new.into());
        let second = run(&fleet, &first.decisions);
        prop_assert_eq!(second.decided, 1);
        for (key, decision) in &first.decisions {
            prop_assert_eq!(&second.decisions[key], decision);
        }
    }

    #[test]
    fn scores_of_many_stay_within_a_hundred((clusters, placements) in some_fleet()) {
        let fleet = fleet(clusters, placements);
        let first = run(&fleet, &Map::new());
        for previous in [Map::new(), first.decisions] {
            for key in fleet.placements.keys().step_by(5) {
                let trace = explain(&fleet, &previous, &Map::new(), second(1000), key).expect("it is there");
                for part in trace.clusters.iter().flat_map(|one| &one.scores) {
                    prop_assert!((-100..=100).contains(&part.score), "{part:?}");
                }
            }
        }
    }

    #[test]
    fn the_picks_are_the_best_of_a_whole_order((clusters, placements) in some_fleet()) {
        let fleet = fleet(clusters, placements);
        let decided = run(&fleet, &Map::new());
        // A separate run explains each placement.
        for (key, placement) in fleet.placements.iter().step_by(5) {
            let berth_base::model::Source::Own(policy) = &placement.source else { continue };
            let Selection::First(wanted) = policy.selection else { continue };
            let trace = explain(&fleet, &Map::new(), &Map::new(), second(1000), key).expect("it is there");
            for one in trace.clusters {
                let best = one.rank.expect("all are ranked") <= wanted;
                prop_assert_eq!(decided.decisions[key].has(&one.cluster), best);
            }
        }
    }

    #[test]
    fn named_groups_partition_the_picks_in_shares_of_a_hundred(
        (clusters, _) in some_fleet(),
        percent in 0..101_u32,
        tiers in vec(btree_set(0..9_usize, 0..5), 0..3),
    ) {
        let mut clusters = clusters;
        for (tier, members) in tiers.iter().enumerate() {
            for index in members {
                if let Some(cluster) = clusters.get_mut(*index) {
                    cluster.labels.insert(format!("tier-{tier}"), "yes".to_owned());
                }
            }
        }
        let named = (0..tiers.len()).map(|tier| (format!("tier-{tier}"), term(&[&format!("tier-{tier}")]))).collect();
        let groups = Some(Grouping { size: GroupSize::Percent(percent), named });
        let count = clusters.len();
        let decided = run(&fleet(clusters.clone(), vec![placement("p", Policy { groups, ..policy(Vec::new()) })]), &Map::new());
        let picks = &decided.decisions[&key("p")].picks;
        prop_assert_eq!(picks.len(), count, "without a number every cluster that fits is in");
        let size = (count * percent as usize).div_ceil(100);
        let mut by_group: BTreeMap<usize, Vec<(&str, &str)>> = BTreeMap::new();
        for pick in picks {
            let group = pick.group.as_ref().expect("every pick has a group");
            by_group.entry(group.index).or_default().push((&group.name, &pick.cluster));
        }
        prop_assert!(by_group.keys().copied().eq(0..by_group.len()));
        for members in by_group.values() {
            prop_assert!(members.iter().all(|(name, _)| *name == members[0].0), "one name a group");
            prop_assert!(size == 0 || members.len() <= size);
            prop_assert!(members.is_sorted_by_key(|(_, cluster)| *cluster), "in the order of names");
        }
        for (tier, cluster) in clusters.iter().filter_map(|cluster| {
            Some(((0..tiers.len()).find(|tier| cluster.labels.contains_key(&format!("tier-{tier}")))?, &cluster.name))
        }) {
            let pick = picks.iter().find(|pick| pick.cluster == *cluster).expect("it is picked");
            prop_assert_eq!(&pick.group.as_ref().expect("a group").name, &format!("tier-{tier}"), "the first that fits has it");
        }
    }
}
