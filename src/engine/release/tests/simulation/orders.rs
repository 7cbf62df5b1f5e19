//! People write orders into rollout policies, and placements pick other clusters.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::Pos;
use berth_base::model::rollout_policy::{Abort, Freeze, OnFailure, Pin, WorkloadPattern};
use berth_base::model::schedule::Schedule;
use berth_base::model::{Key, Map};
use jiff::tz::TimeZone;

use super::super::world::{key, other_key, policy};
use super::{Dice, Simulation};

/// The relation of the second workload to the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Alone,
    /// The first goes after the second.
    After,
    Together,
}

/// People's current orders.
pub(super) struct People {
    /// People change their orders during rollouts.
    pub(super) is_busy: bool,
    pub(super) relation: Relation,
    pub(super) rolls_back: bool,
    /// Four of each ten minutes are frozen.
    freezes: bool,
    paused: bool,
    pub(super) pins: BTreeMap<String, Option<u64>>,
    /// The clusters that were pinned at any time.
    pub(super) once_pinned: BTreeSet<String>,
    aborted: Option<u64>,
}

/// In seconds.
const FREEZE: i64 = 240;
const BETWEEN_FREEZES: i64 = 600;

impl People {
    pub(super) fn new(dice: &mut Dice) -> People {
        let is_busy = dice.one_in(2);
        let relation = match dice.roll(5) {
            0 => Relation::After,
            1 => Relation::Together,
            _ => Relation::Alone,
        };
        People {
            is_busy,
            relation,
            rolls_back: dice.one_in(4),
            freezes: is_busy && dice.one_in(4),
            paused: false,
            pins: BTreeMap::new(),
            once_pinned: BTreeSet::new(),
            aborted: None,
        }
    }

    /// Reports whether no cluster may get anything new.
    pub(super) fn is_closed(&self, now: i64) -> bool {
        self.paused || self.freezes && now.rem_euclid(BETWEEN_FREEZES) < FREEZE
    }
}

fn exactly(key: &Key) -> WorkloadPattern {
    WorkloadPattern { name: Some(key.name.to_string()), ..WorkloadPattern::any() }
}

impl Simulation {
    /// Writes people's orders into the policies.
    pub(super) fn give_orders(&mut self) {
        let People { relation, rolls_back, freezes, paused, pins, aborted, .. } = &self.people;
        let policies = &mut self.world.fleet.rollout_policies;
        *policies = Map::new();
        let orders = policy("orders", |policy| {
            policy.on_failure = rolls_back.then_some(OnFailure::RollBack);
            policy.paused = paused.then(|| "holidays".to_owned());
            policy.freezes.extend(freezes.then(|| Freeze {
                schedule: Schedule::parse("*/10 * * * *").expect("a schedule"),
                zone: TimeZone::UTC,
                zone_name: "UTC".to_owned(),
                seconds: FREEZE,
                reason: String::new(),
            }));
            policy.pins.extend(pins.iter().map(|(cluster, release)| Pin {
                at: Pos::file("rollouts/orders.yaml"),
                clusters: vec![cluster.clone()],
                selector: None,
                release: *release,
                reason: String::new(),
            }));
            let abort =
                |release: &u64| Abort { workload: exactly(&key()), release: *release, reason: String::new() };
            policy.aborted.extend(aborted.as_ref().map(abort));
        });
        policies.insert(orders.key.clone(), orders.into());
        let bound = policy("bound", |policy| match relation {
            Relation::Alone => policy.workloads = Some(Vec::new()),
            Relation::After => {
                policy.workloads = Some(vec![exactly(&key())]);
                policy.after = vec![exactly(&other_key())];
            }
            Relation::Together => {
                policy.workloads = Some(vec![exactly(&key()), exactly(&other_key())]);
                policy.together = true;
            }
        });
        policies.insert(bound.key.clone(), bound.into());
    }

    /// Changes an order.
    pub(super) fn order(&mut self) {
        let releases = self.world.releases_of(&key());
        match self.dice.roll(5) {
            0 | 1 => self.people.paused = !self.people.paused,
            2 => {
                let good = releases.and_then(|releases| releases.good);
                let good = good.filter(|_| self.people.relation == Relation::Alone);
                let release = if self.dice.one_in(2) { good } else { None };
                if let Some(name) = self.dice.pick(self.members.keys()).cloned() {
                    self.people.once_pinned.insert(name.clone());
                    self.people.pins.insert(name, release);
                }
            }
            3 => drop(self.people.pins.pop_first()),
            _ => self.people.aborted = releases.map(|releases| releases.current.number),
        }
        self.give_orders();
    }

    /// Lets a placement drop a cluster, or pick one again.
    pub(super) fn pick_others(&mut self) {
        if self.dice.one_in(2) || self.members.len() - self.world.unpicked.len() < 3 {
            drop(self.world.unpicked.pop_first());
        } else if let Some(name) = self.dice.pick(self.members.keys()).cloned() {
            self.world.unpicked.insert(name);
        }
    }

    /// Ends all orders, and lets all clusters be picked.
    pub(super) fn end_orders(&mut self) {
        (self.people.paused, self.people.freezes, self.people.aborted) = (false, false, None);
        self.people.pins.clear();
        self.world.unpicked.clear();
        self.give_orders();
    }
}
