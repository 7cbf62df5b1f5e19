//! Members apply their folders, each by its habit, and report.

use std::collections::BTreeMap;

use berth_base::model::Key;
use berth_base::model::release::Health;

use super::{BAD, Dice, Simulation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
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

pub(super) struct Member {
    pub(super) habit: Habit,
    /// The version that it has applied of each workload, and for how many rounds. `None` once it is removed.
    applied: BTreeMap<Key, (Option<String>, usize)>,
}

impl Member {
    pub(super) fn new(dice: &mut Dice) -> Member {
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
    pub(super) fn members_sync(&mut self) {
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
