//! Random fleets, drawn by proptest, and fleets that apply what they get.

use std::collections::BTreeSet;

use super::{NOW, after};
use crate::release::strategies::{self, Step, Turn, Version};
use crate::release::{progressive, rolling};
use berth_base::model::release::Health::{self, Applying, Failed, Progressing, Succeeded};
use berth_base::model::rollout::{Amount, GroupRef, Pace, Rolling, Rollout, Strategy as RolloutStrategy};
use berth_base::model::{Group, Timestamp};
use proptest::prelude::*;

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// A cluster's facts; its name comes with its place.
#[derive(Clone, Copy, Debug)]
struct Facts {
    picked: bool,
    has: Version,
    health: Health,
    seconds: i64,
    measured: bool,
    removing: bool,
    group: usize,
}

fn facts() -> impl Strategy<Value = Vec<Facts>> {
    let has = prop::sample::select(vec![Version::Nothing, Version::Old, Version::New, Version::New]);
    let health = prop::sample::select(vec![Applying, Progressing, Succeeded, Succeeded, Failed]);
    let one = (0..8_u8, has, health, 0_i64..90, any::<bool>(), 0..12_u8, 0_usize..3);
    let one = one.prop_map(|(picked, has, health, seconds, measured, removing, group)| Facts {
        picked: picked > 0,
        has,
        health,
        seconds,
        measured,
        removing: picked == 0 && removing < 4,
        group,
    });
    prop::collection::vec(one, 0..=NAMES.len())
}

fn groups() -> Vec<Group> {
    (0..3).map(|index| Group { index, name: format!("g{}", index / 2) }).collect()
}

fn turns<'a>(facts: &[Facts], groups: &'a [Group]) -> Vec<Turn<'a>> {
    let turn = |(facts, cluster): (&Facts, &&'static str)| Turn {
        cluster,
        group: groups.get(facts.group),
        picked: facts.picked,
        has: facts.has,
        health: facts.health,
        since: (facts.health != Applying).then(|| after(-facts.seconds)),
        measured: facts.measured,
        removing: facts.removing,
    };
    facts.iter().zip(&NAMES).map(turn).collect()
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![(0_usize..6).prop_map(Amount::Count), (0_u32..=100).prop_map(Amount::Percent)]
}

fn rollout() -> impl Strategy<Value = Rollout> {
    let pace = prop_oneof![
        Just(Pace::Together),
        prop::option::of(amount()).prop_map(Pace::ByCluster),
        Just(Pace::ByGroup),
    ];
    let first = prop::option::of(prop_oneof![
        Just(GroupRef::Name("g0".to_owned())),
        (0_usize..4).prop_map(GroupRef::Index)
    ]);
    let deadline = prop::option::of(0_i64..90);
    (pace, first, 0_i64..90, deadline, prop::option::of(amount())).prop_map(
        |(pace, first, soak_seconds, deadline_seconds, max_failures)| Rollout {
            placement: None,
            pace,
            first: first.into_iter().collect(),
            soak_seconds,
            deadline_seconds,
            max_failures,
        },
    )
}

fn budgets() -> impl Strategy<Value = Rolling> {
    (amount(), amount(), 0_i64..90, prop::option::of(0_usize..10)).prop_map(
        |(max_unavailable, max_surge, period_seconds, wanted)| Rolling {
            max_unavailable,
            max_surge,
            period_seconds,
            wanted,
            asked: true,
        },
    )
}

/// Returns the parts of an answer that change something.
fn told<'a>(step: &Step<'a>) -> [BTreeSet<&'a str>; 3] {
    [step.give.clone(), step.remove.clone(), step.timed_out.clone()]
}

/// Checks every second for which an answer is valid.
fn check_next<'a>(ask: impl Fn(Timestamp) -> Step<'a>) -> Result<(), TestCaseError> {
    let now = ask(NOW);
    let is_same = |at| {
        let then = ask(at);
        told(&then) == told(&now) && then.halted.is_some() == now.halted.is_some()
    };
    for seconds in 0..200 {
        let at = after(seconds);
        match now.next {
            Some(next) if at == next => {
                prop_assert!(!is_same(at), "nothing changes at {next}");
                return Ok(());
            }
            _ => prop_assert!(is_same(at), "the answer changes at {at}, not at {:?}", now.next),
        }
    }
    prop_assert!(now.next.is_none());
    Ok(())
}

fn check_sets(turns: &[Turn<'_>], step: &Step<'_>) -> Result<(), TestCaseError> {
    for turn in turns {
        let (given, removed) = (step.give.contains(turn.cluster), step.remove.contains(turn.cluster));
        let waits = step.waits.contains_key(turn.cluster);
        prop_assert!(usize::from(given) + usize::from(removed) + usize::from(waits) <= 1);
        prop_assert_eq!(given || (waits && turn.picked), turn.wants());
        prop_assert!(!removed || turn.is_left_over());
    }
    Ok(())
}

/// Lets members apply what they get, with one report a second.
fn obey(facts: &mut [Facts], step: &Step<'_>) {
    for (facts, name) in facts.iter_mut().zip(NAMES) {
        facts.seconds += 1;
        let next = match facts.health {
            _ if step.give.contains(name) => {
                facts.has = Version::New;
                Some(Applying)
            }
            Applying if facts.has != Version::Nothing => Some(Progressing),
            Progressing => Some(Succeeded),
            _ => None,
        };
        if let Some(health) = next {
            (facts.health, facts.seconds) = (health, 0);
        }
        if facts.removing {
            (facts.removing, facts.has) = (false, Version::Nothing);
        } else {
            facts.removing = step.remove.contains(name);
        }
    }
}

fn converges(mut facts: Vec<Facts>, way: &RolloutStrategy) -> Result<(), TestCaseError> {
    let groups = groups();
    for facts in &mut facts {
        // The old content may have failed; the wanted one is healthy everywhere.
        facts.health = if facts.has == Version::New { Succeeded } else { facts.health };
    }
    for _ in 0..2_000 {
        let turns = turns(&facts, &groups);
        let picks: Vec<_> = turns.iter().filter(|turn| turn.picked).map(pick).collect();
        let step = strategies::step(way, &turns, &[&picks], NOW);
        check_sets(&turns, &step)?;
        if turns.iter().all(|turn| !turn.wants() && !turn.is_left_over() && !turn.removing) {
            return Ok(());
        }
        obey(&mut facts, &step);
    }
    Err(TestCaseError::fail(format!("it does not end: {facts:?}")))
}

fn pick(turn: &Turn<'_>) -> berth_base::model::Pick {
    berth_base::model::Pick::of(turn.cluster).with(|details| details.group = turn.group.cloned())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_next_change_of_waves_is_exact(facts in facts(), rollout in rollout()) {
        let groups = groups();
        let turns = turns(&facts, &groups);
        check_next(|at| progressive::step(&rollout, &turns, at))?;
    }

    #[test]
    fn the_next_change_of_budgets_is_exact(facts in facts(), rolling in budgets()) {
        let groups = groups();
        let turns = turns(&facts, &groups);
        check_next(|at| rolling::step(&rolling, &turns, at))?;
    }

    #[test]
    fn a_wave_is_never_larger_than_its_limit(facts in facts(), rollout in rollout()) {
        let groups = groups();
        let turns = turns(&facts, &groups);
        let step = progressive::step(&rollout, &turns, NOW);
        let Pace::ByCluster(Some(most)) = rollout.pace else { return Ok(()) };
        let picked = || turns.iter().filter(|turn| turn.picked);
        let is_first = |turn: &Turn<'_>| rollout.first.iter().any(|first| match first {
            GroupRef::Name(name) => turn.group.is_some_and(|group| group.name == *name),
            GroupRef::Index(index) => turn.group.is_some_and(|group| group.index == *index),
        });
        let rest = picked().filter(|turn| !is_first(turn)).count();
        let most = most.of(rest);
        if most == 0 || most > rest {
            return Ok(());
        }
        let given = turns.iter().filter(|turn| step.give.contains(turn.cluster));
        let (first, others): (Vec<_>, Vec<_>) = given.partition(|turn| is_first(turn));
        // A mandatory group goes alone, and as a whole.
        prop_assert!(first.is_empty() || others.is_empty());
        let open = |turn: &&Turn<'_>| {
            turn.has == Version::New && (turn.health == Applying || turn.health == Progressing)
                && !step.timed_out.contains(turn.cluster)
        };
        prop_assert!(others.is_empty() || others.len() + picked().filter(open).count() <= most);
    }

    #[test]
    fn a_group_never_goes_before_an_earlier_one(facts in facts(), rollout in rollout()) {
        let groups = groups();
        let turns = turns(&facts, &groups);
        let step = progressive::step(&rollout, &turns, NOW);
        let is_first = |index: usize| rollout.first.iter().any(|first| match first {
            GroupRef::Name(name) => groups[index].name == *name,
            GroupRef::Index(one) => *one == index,
        });
        let rank = |turn: &Turn<'_>| {
            let index = turn.group.map_or(0, |group| group.index);
            match rollout.pace {
                Pace::Together => (false, 0),
                _ if is_first(index) => (false, index),
                Pace::ByGroup => (true, index),
                Pace::ByCluster(_) => (true, 0),
            }
        };
        let given = |turn: &&Turn<'_>| step.give.contains(turn.cluster);
        for late in turns.iter().filter(given) {
            for early in turns.iter().filter(|turn| turn.picked && rank(turn) < rank(late)) {
                // A group holds nobody back if its unfinished clusters do not exceed its allowed failures.
                prop_assert!(early.has == Version::New || rollout.max_failures.is_some() && given(&early));
                // An unfinished, unfailed cluster in a mandatory group holds all others back.
                prop_assert!(!rank(late).0 || rank(early).0 || early.health == Succeeded);
            }
        }
    }

    #[test]
    fn a_halted_rollout_of_waves_tells_nobody(facts in facts(), rollout in rollout()) {
        let groups = groups();
        let turns = turns(&facts, &groups);
        let step = progressive::step(&rollout, &turns, NOW);
        if let Some(failures) = step.halted {
            let counted = failures.failed.len() + failures.timed_out.len();
            prop_assert!(counted > failures.allowed);
            let own = |cluster: &&str| {
                let turn = turns.iter().find(|turn| turn.cluster == *cluster);
                failures.group.is_some() && turn.and_then(|turn| turn.group) == failures.group
                    || failures.group.is_some_and(|group| {
                        turn.and_then(|turn| turn.group).is_some_and(|own| own.index < group.index)
                    })
            };
            prop_assert!(step.give.iter().all(own));
        }
    }

    #[test]
    fn budgets_are_never_exceeded(facts in facts(), rolling in budgets()) {
        let groups = groups();
        let turns = turns(&facts, &groups);
        let step = rolling::step(&rolling, &turns, NOW);
        check_sets(&turns, &step)?;
        let wanted = rolling.wanted.unwrap_or(turns.iter().filter(|turn| turn.picked).count());
        let is_available = |turn: &Turn<'_>| turn.has != Version::Nothing && turn.health == Succeeded && !turn.removing
            && (turn.measured || turn.since.is_some_and(|since| since < after(-rolling.period_seconds)));
        let is_touched = |turn: &Turn<'_>| step.give.contains(turn.cluster) || step.remove.contains(turn.cluster);
        let before = turns.iter().filter(|turn| is_available(turn)).count();
        let left = turns.iter().filter(|turn| is_available(turn) && !is_touched(turn)).count();
        let fewest = wanted.saturating_sub(rolling.max_unavailable.rounded_up(wanted));
        prop_assert!(left >= fewest.min(before), "{left} of {before} are left, {fewest} must be");
        let joins = turns.iter().filter(|turn| turn.has == Version::Nothing && step.give.contains(turn.cluster)).count();
        let hopeful = turns.iter().filter(|turn| turn.has != Version::Nothing && turn.health != Failed).count();
        prop_assert!(joins == 0 || hopeful + joins <= wanted + rolling.max_surge.rounded_up(wanted));
    }

    #[test]
    fn a_healthy_fleet_takes_every_wave(facts in facts(), rollout in rollout()) {
        converges(facts, &RolloutStrategy::Progressive(vec![Rollout { deadline_seconds: None, ..rollout }]))?;
    }

    #[test]
    fn a_healthy_fleet_takes_every_update(facts in facts(), rolling in budgets(), unavailable in 1_usize..4) {
        let max_unavailable = Amount::Count(unavailable);
        converges(facts, &RolloutStrategy::Rolling(Rolling { max_unavailable, wanted: None, ..rolling }))?;
    }
}
