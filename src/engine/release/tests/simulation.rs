//! Rollouts under members that are slow, fail, flap, fall silent and lie, lost and late reports, a Git server that is
//! away, a daemon that is killed between any two steps, clusters that join and leave, and edits in the middle.
//!
//! Each schedule is made from its number alone. `BERTH_SCHEDULES=100000 cargo test --release -p berth-engine
//! simulation` runs more of them.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::ClusterStatus;
use berth_base::model::release::Health;
use berth_base::model::rollout::{Amount, Pace, Rolling, Rollout, Strategy};

use super::world::World;

/// A source of numbers that gives the same ones for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % below.max(1) as u64) as usize
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.roll(many) == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    Sound,
    /// Takes a few rounds before it is in order.
    Slow(usize),
    Flaps,
    Silent,
    /// Says that all is well, whatever it has.
    Lies,
}

struct Member {
    habit: Habit,
    /// The version it has applied, and for how many rounds.
    applied: Option<(String, usize)>,
}

/// The versions of an edit end with this where no member can run them.
const BAD: &str = "bad";

struct Simulation {
    seed: u64,
    dice: Dice,
    world: World,
    strategy: Strategy,
    members: BTreeMap<String, Member>,
    /// Reports under way, with the round of their arrival.
    under_way: Vec<(usize, ClusterStatus)>,
    edits: usize,
    round: usize,
    calm: bool,
}

/// The limits that a strategy promises.
fn most_in_flight(strategy: &Strategy, clusters: usize) -> usize {
    match strategy {
        Strategy::Progressive(rollouts) => {
            rollouts[0].at_a_time().map_or(clusters, |most| most.of(clusters).max(1))
        }
        Strategy::Rolling(rolling) => rolling.max_unavailable.of(clusters),
        _ => clusters,
    }
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
        let world = World::new(strategy.clone(), &[]);
        let mut simulation = Simulation {
            seed,
            dice,
            world,
            strategy,
            members: BTreeMap::new(),
            under_way: Vec::new(),
            edits: 0,
            round: 0,
            calm: false,
        };
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
        let habit = match self.dice.roll(12) {
            0 => Habit::Slow(1 + self.dice.roll(4)),
            1 => Habit::Flaps,
            2 => Habit::Silent,
            3 => Habit::Lies,
            _ => Habit::Sound,
        };
        self.members.insert(name, Member { habit, applied: None });
    }

    fn edit(&mut self) {
        self.edits += 1;
        let version = match self.dice.roll(4) {
            0 => format!("{}-{BAD}", self.edits),
            // A revert to what was wanted earlier.
            1 if self.edits > 2 => format!("{}", self.edits - 2),
            _ => self.edits.to_string(),
        };
        self.world.edit(&version);
    }

    /// Members look at their folders and report.
    fn members_sync(&mut self) {
        let names: Vec<String> = self.members.keys().cloned().collect();
        for name in names {
            let version = self.world.version(&name);
            let flips = self.dice.one_in(3);
            let is_late = !self.calm && self.dice.one_in(3);
            let is_lost = !self.calm && self.dice.one_in(5);
            let delay = if is_late { 1 + self.dice.roll(3) } else { 0 };
            let Some(member) = self.members.get_mut(&name) else { continue };
            let Some(version) = version else { continue };
            if !self.calm && member.habit == Habit::Silent {
                continue;
            }
            let rounds = match &mut member.applied {
                Some((applied, rounds)) if *applied == version => {
                    *rounds += 1;
                    *rounds
                }
                other => {
                    *other = Some((version.clone(), 0));
                    0
                }
            };
            let habit = if self.calm { Habit::Sound } else { member.habit };
            let health = match habit {
                Habit::Lies => Health::Succeeded,
                _ if version.ends_with(BAD) => Health::Failed,
                Habit::Slow(needs) if rounds < needs => Health::Progressing,
                Habit::Flaps if flips => Health::Failed,
                _ => Health::Succeeded,
            };
            if !is_lost {
                let status = self.world.status(&name, health, "it does not start");
                self.under_way.push((self.round + delay, status));
            }
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

    /// One pass of the daemon, which may be killed before it publishes any number of times.
    fn pass(&mut self) {
        let before: BTreeMap<String, Option<String>> =
            self.members.keys().map(|name| (name.clone(), self.world.version(name))).collect();
        let good = self.good_version();
        if self.dice.one_in(4) {
            let unpublished = self.world.next_state();
            assert_eq!(unpublished, self.world.next_state(), "{}: a step has two results", self.seed);
        }
        let available = self.available();
        self.world.pass();
        self.check(&before, good.as_deref(), &available);
        let again = self.world.next_state();
        if again != self.world.state {
            let shown = (self.world.shown(), self.world.releases().clone());
            self.world.pass();
            let then = (self.world.shown(), self.world.releases());
            panic!("{}: a second pass changed something: {shown:?}\n{then:?}", self.seed);
        }
    }

    /// The version of the proven release, as some cluster that was never told anything else has it.
    fn good_version(&self) -> Option<String> {
        let releases = self.world.state.releases.get(&super::world::key())?;
        releases.good?;
        let holder = |name: &&String| {
            releases.told.get(*name).is_none_or(|told| Some(told.release) == releases.good)
                && self.world.version(name).is_some()
        };
        let name = self.members.keys().find(holder)?;
        self.world.version(name)
    }

    /// The clusters whose reports say that their present copies are in order, or that keep a proven release.
    fn available(&self) -> BTreeSet<String> {
        let releases = self.world.state.releases.get(&super::world::key());
        let is_available = |name: &&String| {
            let name = *name;
            let status = self.world.statuses.get(name);
            let report = status.and_then(|status| status.copies.values().next());
            let now = self.world.status(name, Health::Succeeded, "");
            let digest = now.copies.values().next().map(|copy| copy.digest);
            let holds_good = releases.is_some_and(|all| all.good.is_some() && !all.told.contains_key(name));
            let told = releases.and_then(|all| all.told.get(name));
            let reported = status.and_then(|status| status.reported);
            let is_fresh = told.is_none_or(|told| reported.is_some_and(|at| at >= told.at));
            match report.filter(|report| is_fresh && Some(report.digest) == digest) {
                Some(report) => report.health == Health::Succeeded,
                None => holds_good,
            }
        };
        self.members
            .keys()
            .filter(|name| self.world.version(name).is_some())
            .filter(is_available)
            .cloned()
            .collect()
    }

    fn check(
        &self,
        before: &BTreeMap<String, Option<String>>,
        good: Option<&str>,
        available: &BTreeSet<String>,
    ) {
        let seed = self.seed;
        let releases = self.world.releases();
        let mut given: Vec<&String> = Vec::new();
        for (name, earlier) in before {
            let version = self.world.version(name);
            let says = self.world.version_by_record(name).or(version.clone());
            assert!(version.is_none() || says == version, "{seed}: {name} has not what the record says");
            if version == *earlier {
                continue;
            }
            let told = releases.told.get(name).map(|told| told.release);
            match earlier {
                None if good.is_some() && releases.good != Some(releases.current.number) => {
                    assert_eq!(version.as_deref(), good, "{seed}: {name} joined with an unproven release");
                }
                _ if told == Some(releases.current.number) => given.push(name),
                _ => {}
            }
        }
        if given.is_empty() || releases.is_proven() {
            return;
        }
        let most = most_in_flight(&self.strategy, before.len());
        match &self.strategy {
            Strategy::Rolling(_) => {
                let lost = given.iter().filter(|name| available.contains(**name)).count();
                assert!(
                    lost == 0 || available.len() - lost + most >= before.len(),
                    "{seed}: {lost} of {} available copies were taken, {most} of {} may be missing",
                    available.len(),
                    before.len()
                );
            }
            Strategy::Progressive(rollouts) if rollouts[0].pace == Pace::ByGroup => {
                let group = |name: &String| self.world.groups[name];
                let highest = given.iter().map(|name| group(name)).max().unwrap_or_default();
                let newest = releases.current.number;
                let behind = before.keys().filter(|name| group(name) < highest).find(|name| {
                    let has_it = releases.told.get(*name).is_some_and(|told| told.release == newest);
                    // A cluster that begins with the proven release holds nobody up.
                    let begins = releases.told.get(*name).map(|told| told.release) == releases.good;
                    !(begins || has_it && available.contains(*name))
                });
                let ok = behind.is_none_or(|name| self.world.version(name) == self.newest_version());
                assert!(ok, "{seed}: group {highest} went before {behind:?}");
            }
            _ => {
                let newest = releases.current.number;
                let in_flight = before.keys().filter(|name| {
                    releases.told.get(*name).is_some_and(|told| told.release == newest)
                        && (given.contains(name) || !available.contains(*name))
                });
                let in_flight = in_flight.count();
                assert!(in_flight <= most, "{seed}: {in_flight} under way, {most} may be");
            }
        }
    }

    fn newest_version(&self) -> Option<String> {
        let workload = &self.world.fleet.workloads[&super::world::key()];
        let version = workload.templates.first()?.object.content.pointer("/data/version")?;
        Some(version.as_str()?.to_owned())
    }

    fn run(mut self) {
        self.edit();
        for _ in 0..12 + self.dice.roll(12) {
            match self.dice.roll(10) {
                0 | 1 => self.edit(),
                2 => self.join(),
                3 if self.members.len() > 2 => {
                    let at = self.dice.roll(self.members.len());
                    let name = self.members.keys().nth(at).cloned().unwrap_or_default();
                    self.members.remove(&name);
                    self.world.leave(&name);
                }
                _ => {}
            }
            self.step();
            self.bad_release_is_kept_back();
        }
        self.calm = true;
        self.world.edit("last");
        let rounds = 6 * self.members.len() + 20;
        for _ in 0..rounds {
            self.step();
            if self.world.releases().is_proven() && self.world.releases().told.is_empty() {
                break;
            }
        }
        let behind = self.members.keys().find(|name| self.world.version(name).as_deref() != Some("last"));
        assert_eq!(
            behind,
            None,
            "{}: a healthy fleet did not converge: {} {:?}",
            self.seed,
            self.world.shown(),
            self.world.releases()
        );
        assert!(self.world.releases().is_proven(), "{}: {:?}", self.seed, self.world.releases());
    }

    /// No more honest members than may be under way at a time hold a release that fails everywhere.
    fn bad_release_is_kept_back(&self) {
        let Some(newest) = self.newest_version().filter(|version| version.ends_with(BAD)) else { return };
        let releases = self.world.state.releases.get(&super::world::key());
        if releases.is_none_or(|releases| releases.good.is_none()) {
            return;
        }
        let honest = self.members.iter().filter(|(_, member)| member.habit != Habit::Lies);
        let holds = honest.filter(|(name, _)| self.world.version(name).as_ref() == Some(&newest)).count();
        let most = match &self.strategy {
            Strategy::Progressive(rollouts) if rollouts[0].pace != Pace::ByGroup => {
                most_in_flight(&self.strategy, self.members.len())
            }
            // Groups go as wholes, and copies that were out of order before are renewed at once.
            _ => return,
        };
        assert!(holds <= most, "{}: {holds} members have a release that fails, {most} may", self.seed);
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
