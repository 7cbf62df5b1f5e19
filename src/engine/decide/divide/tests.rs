//! Properties of every division, and the numbers of some.

use proptest::collection::vec;
use proptest::prelude::*;

use super::planner::{Contender, Portion, Request, hash, plan, plan_round_by_round};
use berth_base::model::placement::Share;

const NAMES: [&str; 7] = ["amber", "beryl", "coral", "dune", "ember", "flint", "garnet"];

fn share(floor: i64, ceiling: Option<i64>, weight: i64) -> Option<Share> {
    Some(Share { floor, ceiling, weight })
}

fn divide(total: i32, rebalance: bool, contenders: &[Contender<'_>]) -> Vec<Portion> {
    plan(Request { total, rebalance, key: "shop/web" }, contenders)
}

fn numbers(portions: &[Portion]) -> Vec<i64> {
    portions.iter().map(Portion::replicas).collect()
}

#[test]
fn the_hash_is_fnv_1_over_name_and_key_without_anything_between() {
    // Published values of 32-bit FNV-1.
    assert_eq!(hash("", ""), 0x811c_9dc5);
    assert_eq!(hash("a", ""), 0x050c_5d7e);
    assert_eq!(hash("foo", "bar"), 0x31f0_b262);
    assert_eq!(hash("fo", "obar"), hash("foo", "bar"));
}

#[test]
fn floors_come_on_top_of_weights() {
    let of = |floor, weight, cluster| Contender {
        cluster,
        share: share(floor, None, weight),
        ..Contender::default()
    };
    assert_eq!(numbers(&divide(10, false, &[of(2, 2, "a"), of(4, 3, "b")])), [3, 7], "4 and 6 it is not");
    assert_eq!(numbers(&divide(11, false, &[of(2, 2, "a"), of(4, 3, "b")])), [4, 7]);
}

#[test]
fn what_has_no_room_is_asked_for_there_and_elsewhere_when_rebalancing() {
    let with = |cluster, weight, capacity| Contender {
        cluster,
        share: share(0, None, weight),
        current: None,
        capacity,
    };
    let both = [with("a", 1, None), with("b", 2, Some(10))];
    assert_eq!(numbers(&divide(60, true, &both)), [50, 40]);
    assert_eq!(numbers(&divide(60, false, &both)), [50, 10]);
}

#[test]
fn a_portion_says_what_it_is_made_of() {
    let one = Contender { cluster: "a", share: share(2, Some(6), 1), current: Some(4), capacity: None };
    let two = Contender { cluster: "b", share: share(0, None, 1), ..Contender::default() };
    let portions = divide(20, false, &[one, two, Contender { cluster: "c", ..Contender::default() }]);
    let [a, b, c] = portions[..] else { panic!("there are three") };
    assert_eq!((a.floor, a.kept, a.shared, a.at_ceiling), (2, 2, 2, true));
    assert_eq!((b.floor, b.kept, b.shared, b.at_ceiling), (0, 0, 14, false));
    assert_eq!(c, Portion::default());
}

/// Generates a contender with plausible numbers: no floor above a ceiling, nothing negative.
fn sensible(index: usize, limited: bool) -> impl Strategy<Value = Contender<'static>> {
    let number = || 0..40_i64;
    let limit = prop::option::weighted(0.3, number()).prop_map(move |limit| limit.filter(|_| limited));
    (number(), prop::option::of(number()), 0..5_i64, prop::option::of(0..60_i64), limit, 0..8).prop_map(
        move |(floor, more, weight, current, capacity, no_share)| Contender {
            cluster: NAMES[index],
            share: (no_share > 0).then_some(Share { floor, ceiling: more.map(|more| floor + more), weight }),
            current,
            capacity,
        },
    )
}

fn contenders(limited: bool) -> impl Strategy<Value = Vec<Contender<'static>>> {
    (1..=NAMES.len())
        .prop_flat_map(move |count| (0..count).map(|index| sensible(index, limited)).collect::<Vec<_>>())
}

fn any_contender(index: usize) -> impl Strategy<Value = Contender<'static>> {
    let number = || prop_oneof![any::<i64>(), -3..10_i64, Just(i64::MIN), Just(i64::MAX)];
    let share = (number(), prop::option::of(number()), number());
    (share, prop::option::of(number()), prop::option::of(number())).prop_map(
        move |((floor, ceiling, weight), current, capacity)| Contender {
            cluster: NAMES[index],
            share: Some(Share { floor, ceiling, weight }),
            current,
            capacity,
        },
    )
}

/// Numbers for which rounds repeat: large kept numbers with small rests.
fn any_keeper(index: usize) -> impl Strategy<Value = Contender<'static>> {
    let large = || prop_oneof![0..10_i64, 0..40_000_i64];
    let weight = prop_oneof![4 => 0..5_i64, 1 => -3..0_i64, 1 => 0..100_000_i64];
    let share = (prop_oneof![0..3_i64, -2..50_i64], prop::option::weighted(0.4, large()), weight);
    (share, prop::option::weighted(0.8, large()), prop::option::weighted(0.3, large())).prop_map(
        move |((floor, ceiling, weight), current, capacity)| Contender {
            cluster: NAMES[index],
            share: Some(Share { floor, ceiling, weight }),
            current,
            capacity,
        },
    )
}

#[test]
fn two_billion_kept_replicas_take_no_time() {
    let kept = Contender { cluster: "a", share: share(0, None, 1), current: Some(i64::MAX), capacity: None };
    let full = Contender { cluster: "b", share: share(0, Some(0), 1), ..Contender::default() };
    let kept = Contender { current: Some(i64::from(i32::MAX) - 1), ..kept };
    assert_eq!(numbers(&divide(i32::MAX, false, &[kept, full])), [i64::from(i32::MAX), 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn equal_rounds_at_once_give_what_one_after_the_other_gives(
        contenders in (1..=NAMES.len()).prop_flat_map(|count| (0..count).map(any_keeper).collect::<Vec<_>>()),
        kept in 0..3_i32, more in -3..40_i32, rebalance in prop::bool::weighted(0.1),
    ) {
        // The total is about the number of kept replicas: then a small rest meets large credits.
        let current: i64 = contenders.iter().filter_map(|one| one.current).sum();
        let total = i32::try_from(current).unwrap() / (kept + 1) + more;
        let request = Request { total, rebalance, key: "shop/web" };
        prop_assert_eq!(plan(request, &contenders), plan_round_by_round(request, &contenders));
    }
}

proptest! {
    #[test]
    fn without_capacities_the_sum_never_exceeds_the_total(
        contenders in contenders(false), total in 0..200_i32, rebalance: bool,
    ) {
        let portions = divide(total, rebalance, &contenders);
        prop_assert!(numbers(&portions).iter().sum::<i64>() <= i64::from(total));
        // Nothing is held back while a cluster with a weight may still take it.
        let may_take = contenders.iter().zip(&portions).any(|(one, portion)| {
            one.share.is_some_and(|share| {
                share.weight > 0 && share.ceiling.is_none_or(|ceiling| portion.planned() < ceiling)
            })
        });
        prop_assert!(!may_take || numbers(&portions).iter().sum::<i64>() == i64::from(total));
    }

    #[test]
    fn floors_hold_unless_there_is_too_little_and_ceilings_always(
        contenders in contenders(true), total in 0..300_i32, rebalance: bool,
    ) {
        let portions = divide(total, rebalance, &contenders);
        let within = |number: i64, limit: Option<i64>| limit.map_or(number, |limit| number.min(limit));
        let floors: i64 = contenders.iter().filter_map(|one| Some(within(one.share?.floor, one.capacity))).sum();
        for (one, portion) in contenders.iter().zip(&portions) {
            let Some(share) = one.share else {
                prop_assert_eq!(portion.replicas(), 0);
                continue;
            };
            prop_assert!(share.ceiling.is_none_or(|ceiling| portion.planned() <= ceiling));
            prop_assert!(one.capacity.is_none_or(|capacity| portion.planned() <= capacity));
            if floors <= i64::from(total) {
                prop_assert!(portion.planned() >= within(share.floor, one.capacity));
            }
        }
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(
        (contenders, shuffled) in contenders(true).prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        total in -5..200_i32, rebalance: bool,
    ) {
        let by_name = |contenders: &[Contender<'static>]| {
            let mut all: Vec<_> =
                contenders.iter().map(|one| one.cluster).zip(divide(total, rebalance, contenders)).collect();
            all.sort_by_key(|(name, _)| *name);
            all
        };
        prop_assert_eq!(by_name(&contenders), by_name(&shuffled));
    }

    #[test]
    fn without_rebalance_as_few_replicas_as_possible_move(contenders in contenders(true), total in 0..300_i32) {
        let portions = divide(total, false, &contenders);
        let total = i64::from(total);
        let (mut taken, mut forced, mut floors, mut needed) = (0, 0, 0, 0);
        for (one, portion) in contenders.iter().zip(&portions) {
            let Some(share) = one.share else { continue };
            let within = |number: i64| {
                let number = share.ceiling.map_or(number, |ceiling| number.min(ceiling));
                one.capacity.map_or(number, |capacity| number.min(capacity))
            };
            let current = one.current.unwrap_or(0);
            taken += (current - portion.planned()).max(0);
            forced += current - within(current);
            floors += within(share.floor);
            needed += within(share.floor).max(within(current));
        }
        prop_assume!(floors <= total);
        prop_assert_eq!(taken, forced + (needed - total).max(0));
    }

    #[test]
    fn no_numbers_make_it_panic_or_hang(
        contenders in vec(0..NAMES.len(), 1..6).prop_flat_map(|indexes| {
            indexes.into_iter().map(any_contender).collect::<Vec<_>>()
        }),
        total: i32, rebalance: bool,
    ) {
        prop_assert_eq!(divide(total, rebalance, &contenders).len(), contenders.len());
    }

    #[test]
    fn dividing_what_was_divided_changes_nothing_without_capacities(
        contenders in contenders(false), total in 0..200_i32,
    ) {
        let first = divide(total, false, &contenders);
        let again: Vec<_> = contenders
            .iter()
            .zip(&first)
            .map(|(one, portion)| Contender { current: Some(portion.replicas()), ..*one })
            .collect();
        prop_assert_eq!(numbers(&divide(total, false, &again)), numbers(&first));
    }
}
