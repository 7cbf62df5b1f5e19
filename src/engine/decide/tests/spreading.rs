//! Properties of every fleet in which a number of clusters is picked under spread constraints.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::setup::*;
use berth_base::model::cluster::{Readiness, Report};
use berth_base::model::placement::{
    AS_WRITTEN, EvenConstraint, Policy, Preference, Ranking, Retention, Rule, ScoreRule, Scorer, Selection,
    SpreadConstraint,
};
use berth_base::model::{Cluster, Decision, Key, Map};

/// Clusters with or without the labels `r` and `z`; one in four is not fit.
fn clusters() -> impl Strategy<Value = Vec<Cluster>> {
    let label = || prop::option::weighted(0.9, "[a-d]");
    let one = (label(), label(), prop::bool::weighted(0.25));
    prop::collection::vec(one, 1..14).prop_map(|all| {
        let made = all.into_iter().enumerate().map(|(index, (r, z, unfit))| {
            let mut made = cluster(&format!("c-{index:02}"), &[]);
            made.labels.extend(r.map(|value| ("r".to_owned(), value)));
            made.labels.extend(z.map(|value| ("z".to_owned(), value)));
            if unfit {
                make_unfit(&mut made);
            }
            made
        });
        made.collect()
    })
}

fn make_unfit(cluster: &mut Cluster) {
    cluster.standing = Readiness::Reported(Report { ready: Some(false), ..Report::default() });
}

fn is_fit(cluster: &Cluster) -> bool {
    cluster.standing == Readiness::Assumed
}

fn constraints() -> impl Strategy<Value = Vec<SpreadConstraint>> {
    let one = |key: &'static str| {
        (1..4_i64, any::<bool>()).prop_map(move |(max_skew, required)| SpreadConstraint {
            key: key.to_owned(),
            max_skew,
            required,
        })
    };
    prop_oneof![
        one("r").prop_map(|r| vec![r]),
        (one("r"), one("z")).prop_map(|(r, z)| vec![r, z]),
        (one("z"), one("r")).prop_map(|(z, r)| vec![z, r]),
    ]
}

fn pick_n(count: usize, constraints: &[SpreadConstraint]) -> Policy {
    let preferred = vec![Preference { weight: 3, term: term(&["z=a"]), sorter: None }];
    let scorer = |name: &str, rule| Scorer { name: name.to_owned(), weight: 1, rule };
    Policy {
        scorers: vec![
            scorer("spread", ScoreRule::Spread(constraints.to_vec())),
            scorer("affinity", ScoreRule::Preferred(preferred)),
            scorer("", ScoreRule::Steady),
        ],
        ranking: Ranking::PartsThenNameDescending,
        selection: Selection::First(count),
        retention: Retention::SamePolicy(AS_WRITTEN),
        ..policy(vec![Rule::Ready])
    }
}

fn picks(
    clusters: &[Cluster],
    policy: Policy,
    before: &Map<Key, Decision>,
) -> (BTreeSet<String>, Map<Key, Decision>) {
    let decided = run(&fleet(clusters.to_vec(), vec![placement("p", policy)]), before);
    (picked(&decided, "p").into_iter().collect(), decided.decisions)
}

/// Counts the picks of each value of a label, over all clusters.
fn counts(clusters: &[Cluster], key: &str, picks: &BTreeSet<String>) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for cluster in clusters {
        if let Some(value) = cluster.labels.get(key) {
            *counts.entry(value.clone()).or_default() += i64::from(picks.contains(&*cluster.name));
        }
    }
    counts
}

/// Computes the picks as documented, over all clusters for each pick.
fn by_hand(clusters: &[Cluster], count: usize, constraints: &[SpreadConstraint]) -> BTreeSet<String> {
    let mut picks = BTreeSet::new();
    while picks.len() < count {
        let score = |cluster: &Cluster| -> Option<i64> {
            let mut score = 0;
            for one in constraints {
                let Some(value) = cluster.labels.get(&one.key) else { continue };
                let counts = counts(clusters, &one.key, &picks);
                let mut sorted: Vec<i64> = counts.values().copied().collect();
                sorted.sort_unstable();
                let (smallest, second, largest) =
                    (sorted[0], *sorted.get(1).unwrap_or(&sorted[0]), sorted[sorted.len() - 1]);
                let here = counts[value];
                let change = if largest == smallest {
                    1
                } else if here == smallest && smallest != second {
                    -1
                } else if here == largest {
                    1
                } else {
                    0
                };
                match (largest - smallest + change > one.max_skew, one.required) {
                    (true, true) => return None,
                    (true, false) => score -= 1000,
                    (false, _) => score -= change,
                }
            }
            Some(score)
        };
        let fit = clusters.iter().filter(|one| is_fit(one) && !picks.contains(&*one.name));
        let affinity = |one: &Cluster| if one.labels.get("z").is_some_and(|z| z == "a") { 3 } else { 0 };
        let best = fit.filter_map(|one| Some((score(one)?, affinity(one), &one.name))).max();
        let Some((_, _, name)) = best else { break };
        picks.insert(name.to_string());
    }
    picks
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn picks_are_those_of_the_arithmetic((all, constraints, count) in (clusters(), constraints(), 0..8_usize)) {
        let (found, _) = picks(&all, pick_n(count, &constraints), &Map::new());
        prop_assert_eq!(found, by_hand(&all, count, &constraints));
    }

    #[test]
    fn what_is_required_holds_from_an_even_start((all, constraints, count) in (clusters(), constraints(), 0..8_usize)) {
        let (found, _) = picks(&all, pick_n(count, &constraints), &Map::new());
        for one in constraints.iter().filter(|one| one.required) {
            let counts = counts(&all, &one.key, &found);
            let skew = counts.values().max().unwrap_or(&0) - counts.values().min().unwrap_or(&0);
            prop_assert!(skew <= one.max_skew, "{} is {skew} over {}", one.max_skew, one.key);
        }
    }

    #[test]
    fn a_placed_cluster_stays_whatever_becomes_of_it((all, constraints, count) in (clusters(), constraints(), 0..8_usize), later in clusters()) {
        let (before, decisions) = picks(&all, pick_n(count, &constraints), &Map::new());
        // Labels and health of the same clusters change; further clusters join.
        let mut now: BTreeMap<String, Cluster> = all.iter().map(|one| (one.name.to_string(), one.clone())).collect();
        now.extend(later.into_iter().map(|one| (one.name.to_string(), one)));
        let now: Vec<Cluster> = now.into_values().collect();
        let (after, _) = picks(&now, pick_n(count, &constraints), &decisions);
        prop_assert!(before.is_subset(&after), "{before:?} {after:?}");
    }

    #[test]
    fn growing_only_adds((all, constraints, count) in (clusters(), constraints(), 0..6_usize), more in 1..4_usize) {
        let (before, decisions) = picks(&all, pick_n(count, &constraints), &Map::new());
        let (after, decisions) = picks(&all, pick_n(count + more, &constraints), &decisions);
        prop_assert!(before.is_subset(&after), "{before:?} {after:?}");
        let (fewer, _) = picks(&all, pick_n(count, &constraints), &decisions);
        prop_assert!(fewer.is_subset(&after) && fewer.len() == count.min(after.len()));
    }

    #[test]
    fn the_order_of_clusters_never_shows((all, constraints, count) in (clusters(), constraints(), 0..8_usize)) {
        let turned: Vec<Cluster> = all.iter().rev().cloned().collect();
        let one = picks(&all, pick_n(count, &constraints), &Map::new());
        let other = picks(&turned, pick_n(count, &constraints), &Map::new());
        prop_assert_eq!(one, other);
    }

    #[test]
    fn an_unfit_cluster_changes_nothing_unless_it_brings_a_new_domain((all, constraints, count) in (clusters(), constraints(), 0..8_usize), like in any::<prop::sample::Index>()) {
        let mut unfit = Cluster { name: "c-unfit".into(), ..all[like.index(all.len())].clone() };
        make_unfit(&mut unfit);
        let (before, _) = picks(&all, pick_n(count, &constraints), &Map::new());
        let with: Vec<Cluster> = all.iter().cloned().chain([unfit]).collect();
        let (after, _) = picks(&with, pick_n(count, &constraints), &Map::new());
        prop_assert_eq!(before, after);
    }
}

#[test]
fn an_unfit_cluster_in_a_domain_of_its_own_holds_the_others_back() {
    let mut alone = cluster("c-alone", &["r=d"]);
    make_unfit(&mut alone);
    let fit = ["c-0", "c-1", "c-2", "c-3"].map(|name| cluster(name, &["r=a"]));
    let constraint = SpreadConstraint { key: "r".to_owned(), max_skew: 2, required: true };
    let (free, _) = picks(&fit, pick_n(4, std::slice::from_ref(&constraint)), &Map::new());
    // With a single domain there is no skew.
    assert_eq!(free.len(), 4);
    let all: Vec<Cluster> = fit.into_iter().chain([alone]).collect();
    let (held, _) = picks(&all, pick_n(4, &[constraint]), &Map::new());
    assert_eq!(held.len(), 2);
}

fn even(key: &str, required: bool) -> EvenConstraint {
    EvenConstraint { key: key.to_owned(), of_claims: false, max_skew: 1, required }
}

fn evenly(constraints: Vec<EvenConstraint>, selection: Selection) -> Policy {
    let scorer = Scorer { name: "Spread".to_owned(), weight: 0, rule: ScoreRule::Even(constraints) };
    Policy { scorers: vec![scorer], selection, ..policy(Vec::new()) }
}

fn of(clusters: &[(&str, &str)], policy: Policy) -> Vec<String> {
    let clusters = clusters.iter().map(|(name, label)| match *label {
        "" => cluster(name, &[]),
        label => cluster(name, &[label]),
    });
    picked(&run(&fleet(clusters.collect(), vec![placement("p", policy)]), &Map::new()), "p")
}

const TWO_ZONES: [(&str, &str); 5] =
    [("a1", "z=a"), ("a2", "z=a"), ("a3", "z=a"), ("b1", "z=b"), ("b2", "z=b")];

#[test]
fn picks_are_even_over_the_values_of_a_label() {
    assert_eq!(of(&TWO_ZONES, evenly(vec![even("z", false)], Selection::First(4))), ["a1", "a2", "b1", "b2"]);
    assert_eq!(
        of(&TWO_ZONES, Policy { selection: Selection::First(4), ..policy(Vec::new()) }),
        ["a1", "a2", "a3", "b1"]
    );
}

#[test]
fn what_must_be_even_leaves_out_what_is_too_much() {
    let clusters = [("a1", "z=a"), ("a2", "z=a"), ("a3", "z=a"), ("b1", "z=b"), ("c", "")];
    assert_eq!(of(&clusters, evenly(vec![even("z", true)], Selection::All)), ["a1", "a2", "b1"]);
    assert_eq!(of(&clusters, evenly(vec![even("z", true)], Selection::First(5))), ["a1", "a2", "b1"]);
    // A constraint that is not required only orders: in the end all are picked.
    assert_eq!(of(&clusters, evenly(vec![even("z", false)], Selection::First(4))), ["a1", "a2", "a3", "b1"]);
}

#[test]
fn a_value_that_nobody_can_be_picked_from_holds_nobody_back() {
    let mut only_a = evenly(vec![even("z", true)], Selection::All);
    only_a.filters = policy(vec![labels(&["z=a"])]).filters;
    assert_eq!(of(&TWO_ZONES, only_a), ["a1", "a2", "a3"]);
}

proptest! {
    #[test]
    fn required_constraints_hold_for_any_fleet(zones in prop::collection::vec(0_usize..4, 0..14), count in 0_usize..14) {
        let names: Vec<String> = (0..zones.len()).map(|n| format!("c{n:02}")).collect();
        let labels: Vec<String> = zones.iter().map(|zone| format!("z={zone}")).collect();
        let clusters: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(labels.iter().map(String::as_str)).collect();
        let picked = of(&clusters, evenly(vec![even("z", true)], Selection::First(count)));
        let mut counts: BTreeMap<&str, usize> = clusters.iter().map(|(_, zone)| (*zone, 0)).collect();
        for (name, zone) in &clusters {
            *counts.get_mut(zone).expect("a zone") += usize::from(picked.iter().any(|one| one == name));
        }
        let (least, most) = (counts.values().min().copied(), counts.values().max().copied());
        prop_assert!(most.unwrap_or(0) <= least.unwrap_or(0) + 1, "{counts:?}");
        prop_assert!(picked.len() <= count);
        // No cluster is left out that would have fitted.
        if picked.len() < count.min(zones.len()) {
            let smallest = least.unwrap_or(0);
            prop_assert!(clusters.iter().all(|(name, zone)| picked.iter().any(|one| one == name) || counts[zone] > smallest));
        }
    }
}

#[test]
fn as_many_values_as_clusters_are_no_burden() {
    let names: Vec<String> = (0..2_000).map(|n| format!("c{n:04}")).collect();
    let labels: Vec<String> = (0..2_000).map(|n| format!("z={n}")).collect();
    let clusters: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(labels.iter().map(String::as_str)).collect();
    assert_eq!(of(&clusters, evenly(vec![even("z", false)], Selection::First(1_999))).len(), 1_999);
}
