//! Properties of every fleet.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::setup::*;
use crate::decide::{decide, explain};
use berth_base::diag::Diagnostics;
use berth_base::model::placement::{
    AS_WRITTEN, GroupSize, Grouping, Placement, Policy, Ranking, Retention, ScoreRule, Selection,
};
use berth_base::model::{Cluster, ClusterStatus, Decision, Effect, Map, Source};
use berth_base::packed::Packed;

pub(crate) fn some_cluster(name: String) -> impl Strategy<Value = Cluster> {
    let labels = btree_map("[kl]", "[uvw]", 0..3);
    let marked = prop::option::of((0..3_usize, prop::option::of(900..1100_i64)));
    (labels, marked, -100..100_i64).prop_map(move |(labels, marked, points)| {
        let effects = [Effect::Refuse, Effect::RefuseNew, Effect::Prefer];
        Cluster {
            name: name.as_str().into(),
            labels,
            taints: marked.map(|(effect, since)| taint("t", effects[effect], since)).into_iter().collect(),
            scores: score(points, None),
            ..Cluster::default()
        }
    })
}

pub(crate) fn some_status() -> impl Strategy<Value = ClusterStatus> {
    let texts = || btree_map("[klm]", "[uvw]", 0..3);
    let points = prop::option::of((-100..100_i64, prop::option::of(900..1100_i64)));
    (texts(), texts(), texts(), points).prop_map(|(labels, claims, properties, points)| ClusterStatus {
        labels,
        claims,
        properties,
        scores: points.map(|(value, until)| score(value, until)).unwrap_or_default(),
        ..ClusterStatus::default()
    })
}

pub(crate) fn some_policy() -> impl Strategy<Value = Policy> {
    let wanted = vec(prop::sample::select(vec!["k", "l", "k=u", "k=v", "l=w"]), 0..2);
    let seconds = prop::option::of(0..200_i64);
    let count = prop::option::of(0..5_usize);
    let group = prop::option::of((1..4_usize, prop::sample::select(vec!["k", "l=u"])));
    (wanted, seconds, count, any::<[bool; 4]>(), group).prop_map(|(wanted, seconds, count, yes, group)| {
        let mut scorers = vec![scorer(ScoreRule::Steady), scorer(ScoreRule::Balance), add_on()];
        scorers.truncate(if yes[0] { 3 } else { 1 });
        Policy {
            scorers: if yes[3] { scorers } else { Vec::new() },
            ranking: if yes[1] { Ranking::SumThenName } else { Ranking::PartsThenNameDescending },
            retention: if yes[2] { Retention::SamePolicy(AS_WRITTEN) } else { Retention::None },
            selection: count.map_or(Selection::All, Selection::First),
            groups: group.map(|(size, key)| Grouping {
                size: GroupSize::Count(size),
                named: vec![("named".to_owned(), term(&[key]))],
            }),
            ..policy(vec![labels(&wanted), tolerates("t", seconds)])
        }
    })
}

pub(crate) fn some_fleet() -> impl Strategy<Value = (Vec<Cluster>, Vec<Placement>)> {
    let clusters: Vec<_> = (0..8).map(|index| some_cluster(format!("c-{index}"))).collect();
    let placements = vec(some_policy(), 1..5).prop_map(|policies| {
        let named = policies.into_iter().enumerate();
        let mut placements: Vec<_> =
            named.map(|(index, policy)| placement(&format!("p-{index}"), policy)).collect();
        placements.push(follows("work", &["p-0"]));
        placements
    });
    (clusters, placements)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_of_input_never_shows((clusters, placements) in some_fleet()) {
        let forward = run(&fleet(clusters.clone(), placements.clone()), &Map::new());
        let turned = fleet(clusters.into_iter().rev().collect(), placements.into_iter().rev().collect());
        let backward = run(&turned, &Map::new());
        prop_assert_eq!(forward.decisions, backward.decisions);
        prop_assert_eq!(forward.diagnostics, backward.diagnostics);
    }

    #[test]
    fn a_second_run_changes_nothing((clusters, placements) in some_fleet()) {
        let fleet = fleet(clusters, placements);
        let first = run(&fleet, &Map::new());
        let second = run(&fleet, &first.decisions);
        prop_assert_eq!(second.decided, 0);
        prop_assert_eq!(&second.decisions, &first.decisions);
        prop_assert_eq!(second.next_change, first.next_change);
        prop_assert_eq!(second.diagnostics, first.diagnostics);
    }

    /// Of equal placements only one is computed.
    #[test]
    fn a_placement_is_decided_as_it_would_be_alone(
        (clusters, placements) in some_fleet(),
        twins in vec(0..4_usize, 1..6),
        changed in vec((0..8_usize, some_cluster("c".to_owned())), 0..3),
        other_policy in prop::option::of(some_policy()),
        is_left in any::<bool>(),
    ) {
        let mut own: Vec<Placement> =
            placements.into_iter().filter(|one| one.own_policy().is_some()).collect();
        for one in &mut own {
            let Source::Own(policy) = &mut one.source else { continue };
            // Placements that count the load read each other's decisions.
            policy.scorers.retain(|scorer| scorer.rule != ScoreRule::Balance);
        }
        for (index, of) in twins.into_iter().enumerate() {
            let source = own[of % own.len()].source.clone();
            own.push(Placement { source, ..placement(&format!("twin-{index}"), policy(Vec::new())) });
        }
        let before = run(&fleet(clusters.clone(), own.clone()), &Map::new()).decisions;
        let mut clusters = clusters;
        for (at, cluster) in changed {
            let name = clusters[at].name.clone();
            clusters[at] = Cluster { name, ..cluster };
        }
        if is_left {
            clusters.remove(0);
        }
        if let (Some(policy), Some(first)) = (other_policy, own.first_mut()) {
            let scorers = policy.scorers.iter().filter(|one| one.rule != ScoreRule::Balance);
            first.source = Source::Own(Box::new(Policy { scorers: scorers.cloned().collect(), ..policy }));
        }
        let together = run(&fleet(clusters.clone(), own.clone()), &before);
        let mut diagnostics = Diagnostics::new();
        for one in own {
            let key = one.key.clone();
            let alone = run(&fleet(clusters.clone(), vec![one]), &before);
            prop_assert_eq!(&together.decisions[&key], &alone.decisions[&key]);
            diagnostics.extend(alone.diagnostics);
        }
        let sorted = |all: Diagnostics| all.into_iter().map(|one| format!("{one:?}")).collect::<BTreeSet<_>>();
        prop_assert_eq!(sorted(together.diagnostics), sorted(diagnostics));
    }

    #[test]
    fn facts_say_all_that_was_read_of_the_statuses(
        (clusters, placements) in some_fleet(),
        statuses in vec(prop::option::of(some_status()), 8),
    ) {
        let fleet = fleet(clusters, placements);
        let named = statuses.into_iter().enumerate().filter_map(|(index, status)| Some((index, status?)));
        let statuses: Map<_, _> = named
            .map(|(index, status)| (format!("c-{index}"), ClusterStatus { cluster: format!("c-{index}"), ..status }.into()))
            .collect();
        let live = decide(&fleet, &Map::new(), &statuses, second(1000));
        let proof = decide(&fleet, &Map::new(), &live.facts, second(1000));
        prop_assert_eq!(proof.decisions, live.decisions);
        prop_assert_eq!(proof.facts, live.facts);
        prop_assert_eq!(proof.diagnostics, live.diagnostics);
    }

    #[test]
    fn picks_are_what_the_trace_lets_through((clusters, placements) in some_fleet()) {
        let fleet = fleet(clusters, placements);
        let decided = run(&fleet, &Map::new());
        for (key, placement) in &fleet.placements {
            let trace = explain(&fleet, &Map::new(), &Map::new(), second(1000), key).expect("it is there");
            let all = matches!(&placement.source, Source::Own(policy) if policy.selection == Selection::All);
            for one in trace.clusters {
                let passed = one.steps.iter().all(|step| step.passed);
                prop_assert_eq!(one.picked, decided.decisions[key].has(&one.cluster));
                prop_assert!(passed || !one.picked, "a refused cluster is picked");
                prop_assert!(!all || passed == one.picked, "a cluster that passes is not picked");
                prop_assert!(!one.reason.is_empty());
            }
        }
    }

    #[test]
    fn where_clusters_lack_picks_and_refused_ones_are_all_there_are((clusters, placements) in some_fleet()) {
        let count = clusters.len();
        let decided = run(&fleet(clusters, placements), &Map::new());
        for decision in decided.decisions.values().filter(|one| *one.key.kind == *"Placement") {
            let refused: usize = decision.refused.iter().map(|one| one.clusters).sum();
            let lacks_some = decision.picks.is_empty() || !decision.refused.is_empty();
            prop_assert!(!lacks_some || decision.picks.len() + refused == count);
        }
    }

    /// Clusters that could not be picked may join and leave.
    #[test]
    fn what_stands_after_a_change_would_be_decided_again(
        (clusters, placements) in some_fleet(),
        (at, other) in (0..9_usize, some_cluster("c".to_owned())),
        leaves in any::<bool>(),
    ) {
        let mut fleet = fleet(clusters, placements);
        let first = run(&fleet, &Map::new());
        let name = format!("c-{at}");
        match leaves {
            true => drop(fleet.clusters.remove(&name)),
            false => drop(fleet.clusters.insert(name.clone(), Cluster { name: name.into(), ..other }.into())),
        }
        let second = run(&fleet, &first.decisions);
        let balances = |policy: &Policy| policy.scorers.iter().any(|one| one.rule == ScoreRule::Balance);
        for (key, decision) in &first.decisions {
            let policy = fleet.placements[key].own_policy();
            if second.decisions[key] != *decision || policy.is_none_or(balances) {
                continue;
            }
            let before = Decision { digest: None, ..decision.clone() };
            let anew = run(&fleet, &[(key.clone(), before)].into());
            let clusters = |one: &Decision| -> Vec<String> {
                one.picks.iter().map(|pick| pick.cluster.to_string()).collect()
            };
            prop_assert_eq!(clusters(&anew.decisions[key]), clusters(decision));
            prop_assert_eq!(&anew.decisions[key].condition, &decision.condition);
        }
    }

    #[test]
    fn groups_partition_the_picks((clusters, placements) in some_fleet()) {
        let decided = run(&fleet(clusters, placements.clone()), &Map::new());
        for placement in placements {
            let Source::Own(policy) = placement.source else { continue };
            let Some(grouping) = policy.groups else { continue };
            let GroupSize::Count(size) = grouping.size else { continue };
            let picks = &decided.decisions[&placement.key].picks;
            let mut groups: BTreeMap<usize, usize> = BTreeMap::new();
            for pick in picks {
                *groups.entry(pick.group.as_ref().expect("every pick has a group").index).or_default() += 1;
            }
            prop_assert!(groups.keys().copied().eq(0..groups.len()));
            prop_assert!(size > picks.len() || groups.values().all(|count| *count <= size));
        }
    }

    #[test]
    fn built_in_scores_stay_within_a_hundred((clusters, placements) in some_fleet()) {
        let fleet = fleet(clusters, placements);
        let first = run(&fleet, &Map::new());
        for (key, placement) in &fleet.placements {
            let Source::Own(policy) = &placement.source else { continue };
            let trace = explain(&fleet, &first.decisions, &Map::new(), second(1000), key).expect("it is there");
            for part in trace.clusters.iter().flat_map(|one| &one.scores) {
                let rule = policy.scorers.iter().find(|scorer| scorer.name == part.name).map(|scorer| &scorer.rule);
                let built_in = matches!(rule, Some(ScoreRule::Steady | ScoreRule::Balance | ScoreRule::Allocatable(_)));
                prop_assert!(!built_in || (-100..=100).contains(&part.score), "{part:?}");
            }
        }
    }

    #[test]
    fn an_edit_of_one_placement_decides_only_that_one_again((clusters, placements) in some_fleet(), edited in 0_usize..4) {
        let mut fleet = fleet(clusters, placements);
        let first = run(&fleet, &Map::new());
        let own = |placement: &Placement| matches!(placement.source, Source::Own(_));
        let keys: Vec<_> = fleet.placements.values().filter(|one| own(one)).map(|one| one.key.clone()).collect();
        let Some(key) = keys.get(edited % keys.len().max(1)) else { return Ok(()) };
        if let Some(placement) = fleet.placements.get_mut(key)
            && let Source::Own(policy) = &mut placement.source
        {
            policy.text = Packed::of(&serde_json::json!({"edited": true}));
        }
        let second = run(&fleet, &first.decisions);
        for other in keys.iter().filter(|other| *other != key) {
            prop_assert_eq!(&second.decisions[other], &first.decisions[other]);
        }
        let follows = fleet.placements.len() - keys.len();
        prop_assert!(second.decided <= 1 + follows);
    }

    #[test]
    fn doubt_takes_nothing_away((clusters, placements) in some_fleet(), held in vec("c-[0-9]", 0..4)) {
        let mut fleet = fleet(clusters, placements);
        fleet.doubt.everything = true;
        fleet.doubt.objects = true;
        let mut held: Vec<&str> = held.iter().map(String::as_str).collect();
        held.sort_unstable();
        held.dedup();
        let previous = earlier(&[("p-0", &held), ("gone", &held)]);
        let decided = run(&fleet, &previous);
        for (key, earlier) in &previous {
            prop_assert!(earlier.picks.iter().all(|pick| decided.decisions[key].has(&pick.cluster)));
        }
        prop_assert_eq!(run(&fleet, &decided.decisions).decisions, decided.decisions);
    }
}
