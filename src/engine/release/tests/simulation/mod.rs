//! Rollouts under hard conditions: members that are slow, fail, flap, fall silent and lie; lost and late
//! reports; a Git server that is away; a daemon that is killed between any two steps; clusters that join,
//! leave, and are picked again; edits in the middle of a rollout; and people's orders: pins, pauses, freezes,
//! aborts, rollbacks, and workloads that go after or together with another one.
//!
//! Each schedule is made from its number alone. `BERTH_SCHEDULES=100000 cargo test --release -p
//! berth-engine simulation` runs more of them. Members apply their folders, each by
//! its habit, and report. [`orders`]: people's orders.
//! [`promises`]: the checks after each pass.

mod orders;
mod promises;

use std::collections::{BTreeMap, BTreeSet};

use super::world::{World, key, other_key};
use crate::testing::Dice;
use berth_base::model::release::Health;
use berth_base::model::rollout::{Amount, Pace, Rolling, Rollout, Strategy};
use berth_base::model::{ClusterStatus, Key};
use orders::{People, Relation};
use promises::Before;

/// The suffix of a version that no member can run.
const BAD: &str = "bad";

struct Simulation {
    seed: u64,
    dice: Dice,
    world: World,
    strategy: Strategy,
    /// The workloads.
    keys: Vec<Key>,
    people: People,
    members: BTreeMap<String, Member>,
    /// Reports under way, with the round of their arrival.
    under_way: Vec<(usize, ClusterStatus)>,
    edits: usize,
    round: usize,
    calm: bool,
}

impl Simulation {
    fn new(seed: u64) -> Simulation {
        let mut dice = Dice(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let strategy = match dice.roll(3) {
            0 => Strategy::Rolling(Rolling {
                max_unavailable: Amount::Count(1 + dice.roll(3)),
                max_surge: Amount::Count(dice.roll(3)),
                period_seconds: 60,
                wanted: None,
                asked: true,
            }),
            1 => Strategy::Progressive(vec![Rollout { pace: Pace::ByGroup, ..Rollout::TOGETHER }]),
            _ => Strategy::Progressive(vec![Rollout {
                pace: Pace::ByCluster(Some(Amount::Count(1 + dice.roll(3)))),
                soak_seconds: 30 * dice.roll(3) as i64,
                ..Rollout::TOGETHER
            }]),
        };
        let people = People::new(&mut dice);
        let mut world = World::new(strategy.clone(), &[]);
        let mut keys = vec![key()];
        if people.relation != Relation::Alone {
            world.add(other_key(), strategy.clone());
            keys.push(other_key());
        }
        let mut simulation = Simulation {
            seed,
            dice,
            world,
            strategy,
            keys,
            people,
            members: BTreeMap::new(),
            under_way: Vec::new(),
            edits: 0,
            round: 0,
            calm: false,
        };
        simulation.give_orders();
        // Most fleets are small, a few have hundreds of members.
        let clusters = match simulation.dice.roll(100) {
            0 => 200,
            1..=9 => 30,
            _ => 3 + simulation.dice.roll(6),
        };
        (0..clusters).for_each(|_| simulation.join());
        simulation
    }

    fn join(&mut self) {
        let name = format!("c{:03}", self.members.len() + 1_000 * self.round);
        self.world.join(&name);
        self.world.groups.insert(name.clone(), self.dice.roll(3));
        let member = Member::new(&mut self.dice);
        self.members.insert(name, member);
    }

    fn leave(&mut self) {
        let Some(name) = self.dice.pick(self.members.keys()).cloned() else { return };
        self.members.remove(&name);
        self.world.leave(&name);
        self.world.unpicked.remove(&name);
        self.people.pins.remove(&name);
        self.give_orders();
    }

    /// Edits one workload, or all of them.
    fn edit(&mut self) {
        let all = self.dice.one_in(3);
        let one = self.dice.roll(self.keys.len());
        for (index, key) in self.keys.iter().enumerate() {
            if all || index == one {
                self.edits += 1;
                let version = match self.dice.roll(4) {
                    0 => format!("{}-{BAD}", self.edits),
                    // A revert to an earlier version.
                    1 if self.edits > 2 => format!("{}", self.edits - 2),
                    _ => self.edits.to_string(),
                };
                self.world.edit_of(key, &version);
            }
        }
    }

    fn step(&mut self) {
        self.round += 1;
        self.world.now += 20 + self.dice.roll(40) as i64;
        self.members_sync();
        self.world.now += 1;
        let is_git_down = !self.calm && self.dice.one_in(8);
        if !is_git_down {
            self.deliver();
            self.pass();
        }
    }

    fn deliver(&mut self) {
        let round = self.round;
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.under_way).into_iter().partition(|(at, _)| *at <= round);
        self.under_way = later;
        for (_, status) in now {
            if self.world.fleet.clusters.contains_key(&status.cluster) {
                self.world.statuses.insert(status.cluster.clone(), status.into());
            }
        }
    }

    /// Runs one pass of the daemon, which may be killed before it publishes, any number of times.
    fn pass(&mut self) {
        if self.dice.one_in(4) {
            let unpublished = self.world.next_state();
            assert_eq!(unpublished, self.world.next_state(), "{}: a step has two results", self.seed);
        }
        let before: Vec<Before> = self.keys.iter().map(|key| self.before(key)).collect();
        self.world.pass();
        self.check(&before);
        let (now, again) = (&self.world.state.clone(), &self.world.next_state());
        let differs = [
            ("decisions", now.decisions != again.decisions),
            ("folders", now.folders != again.folders),
            ("releases", now.releases != again.releases),
            ("facts", now.facts != again.facts),
        ];
        let differs: Vec<&str> =
            differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect();
        if now != again {
            let of_releases = (&now.releases, &again.releases);
            panic!("{}: a second pass changed {differs:?}: {of_releases:#?}", self.seed);
        }
    }

    fn run(mut self) {
        for key in &self.keys {
            self.edits += 1;
            self.world.edit_of(key, &self.edits.to_string());
        }
        for _ in 0..12 + self.dice.roll(12) {
            match self.dice.roll(10) {
                0 | 1 => self.edit(),
                2 => self.join(),
                3 if self.members.len() > 2 => self.leave(),
                4 if self.people.is_busy => self.order(),
                5 if self.people.is_busy => self.pick_others(),
                _ => {}
            }
            self.step();
            self.bad_release_is_kept_back();
        }
        self.calm = true;
        self.end_orders();
        for key in &self.keys {
            self.world.edit_of(key, "last");
        }
        let rounds = (6 * self.members.len() + 20) * self.keys.len();
        for _ in 0..rounds {
            self.step();
            if self.keys.iter().all(|key| self.is_done(key)) {
                break;
            }
        }
        for key in &self.keys {
            let is_behind = |name: &&String| self.world.version_of(name, key).as_deref() != Some("last");
            let behind = self.members.keys().find(is_behind);
            let (seed, waits) = (self.seed, self.world.waits.get(key));
            let releases = self.world.releases_of(key);
            assert_eq!(
                behind, None,
                "{seed}: {key} did not converge in a healthy fleet: {waits:?} {releases:#?}"
            );
            assert!(self.is_done(key), "{seed}: {key}: {releases:#?}");
        }
    }

    /// Reports whether all clusters have the newest release, which is proven.
    fn is_done(&self, key: &Key) -> bool {
        let releases = self.world.releases_of(key);
        releases.is_some_and(|releases| releases.is_proven() && releases.assigned.is_empty())
    }

    /// Returns the clusters that strategies are asked about: picked and not pinned.
    fn turns(&self) -> BTreeSet<&String> {
        let is_free = |name: &&String| self.is_picked(name) && !self.people.pins.contains_key(*name);
        self.members.keys().filter(is_free).collect()
    }

    fn is_picked(&self, name: &str) -> bool {
        !self.world.unpicked.contains(name)
    }
}

#[test]
fn every_schedule_keeps_the_promises() {
    let schedules = std::env::var("BERTH_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let schedules: u64 = schedules.unwrap_or(150);
    let begin: u64 = std::env::var("BERTH_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in begin..begin + schedules {
        Simulation::new(seed).run();
    }
    println!("{schedules} schedules, from seed {begin}");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    Sound,
    /// Takes a few rounds until it is healthy, or until its copies are gone.
    Slow(usize),
    Flaps,
    Silent,
    /// Reports success, whatever it has.
    Lies,
    /// Leaves its copies out of some reports, as a suspended member does.
    Pauses,
}

struct Member {
    habit: Habit,
    /// The version that it has applied of each workload, and for how many rounds. `None` once it is removed.
    applied: BTreeMap<Key, (Option<String>, usize)>,
}

impl Member {
    fn new(dice: &mut Dice) -> Member {
        let habit = match dice.roll(13) {
            0 => Habit::Slow(1 + dice.roll(4)),
            1 => Habit::Flaps,
            2 => Habit::Silent,
            3 => Habit::Lies,
            4 => Habit::Pauses,
            _ => Habit::Sound,
        };
        Member { habit, applied: BTreeMap::new() }
    }

    /// Applies the folder's copy of a workload. `None` if the cluster never had any copy of it.
    fn apply(&mut self, key: &Key, version: Option<&str>, habit: Habit, flips: bool) -> Option<Health> {
        let rounds = match self.applied.get_mut(key) {
            None if version.is_none() => return None,
            Some((applied, rounds)) if applied.as_deref() == version => {
                *rounds += 1;
                *rounds
            }
            _ => {
                self.applied.insert(key.clone(), (version.map(str::to_owned), 0));
                0
            }
        };
        Some(match habit {
            Habit::Lies => Health::Succeeded,
            _ if version.is_some_and(|version| version.ends_with(BAD)) => Health::Failed,
            Habit::Slow(needs) if rounds < needs => Health::Progressing,
            Habit::Flaps if flips && version.is_some() => Health::Failed,
            Habit::Flaps if flips => Health::Progressing,
            _ => Health::Succeeded,
        })
    }
}

impl Simulation {
    /// Lets members read their folders and report.
    fn members_sync(&mut self) {
        let names: Vec<String> = self.members.keys().cloned().collect();
        for name in names {
            let is_late = !self.calm && self.dice.one_in(3);
            let is_lost = !self.calm && self.dice.one_in(5);
            let delay = if is_late { 1 + self.dice.roll(3) } else { 0 };
            let Some(member) = self.members.get_mut(&name) else { continue };
            if !self.calm && member.habit == Habit::Silent {
                continue;
            }
            let habit = if self.calm { Habit::Sound } else { member.habit };
            let mut healths: BTreeMap<Key, Health> = BTreeMap::new();
            for key in &self.keys {
                let version = self.world.version_of(&name, key);
                let flips = self.dice.one_in(3);
                let health = member.apply(key, version.as_deref(), habit, flips);
                healths.extend(health.map(|health| (key.clone(), health)));
            }
            let is_empty = healths.is_empty();
            if habit == Habit::Pauses && self.dice.one_in(3) {
                healths.clear();
            }
            if !is_lost && !is_empty {
                let status = self.world.status_of(&name, &healths, "it does not start");
                self.under_way.push((self.round + delay, status));
            }
        }
    }
}
