//! A strategy is asked until it has nothing more to give at this moment, so that a second step over the same facts
//! gives nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::model::release::{Health, Releases};
use berth_base::model::rollout::Strategy;
use berth_base::model::staged::{RunState, Standing};
use berth_base::model::{Pick, Timestamp};

use super::course::Course;
use super::sight::Sight;
use super::strategies;
use super::turn::{Has, Step, Turn};

/// A strategy's whole answer for this moment.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) give: BTreeSet<String>,
    pub(super) remove: BTreeSet<String>,
    pub(super) timed_out: BTreeSet<String>,
    /// Too many clusters failed, in plain words.
    pub(super) halted: Option<String>,
    pub(super) waits: BTreeMap<String, Arc<str>>,
    pub(super) notes: BTreeSet<String>,
    pub(super) next: Option<Timestamp>,
    /// The standing of a staged rollout.
    pub(super) standing: Option<Standing>,
}

/// The clusters in which workloads that go together are not in order: with older copies, and by their health. These
/// clusters go on as if each of the workloads were not in order, so that all strategies choose the same ones.
#[derive(Debug, Default)]
pub(super) struct Ailing {
    health: BTreeMap<String, Health>,
    broken: BTreeSet<String>,
}

impl Ailing {
    /// Adds the clusters of one workload.
    pub(super) fn add(&mut self, course: &Course<'_>, sights: &BTreeMap<String, Sight<'_>>) {
        let behind = sights.iter().filter(|(_, sight)| sight.has() == Has::Old);
        for (cluster, sight) in behind.filter(|(_, sight)| sight.health() != Health::Succeeded) {
            let worst = self.health.entry(cluster.clone()).or_insert_with(|| sight.health());
            *worst = worse(*worst, sight.health());
        }
        self.broken.extend(broken(sights, &course.releases).map(str::to_owned));
    }
}

fn worse(one: Health, other: Health) -> Health {
    let order = [Health::Failed, Health::Applying, Health::Progressing];
    order.into_iter().find(|health| [one, other].contains(health)).unwrap_or(Health::Succeeded)
}

/// Asks who may go on now. While the rollout is `closed`, for this reason, nobody may.
pub(super) fn ask(
    course: &mut Course<'_>,
    sights: &BTreeMap<String, Sight<'_>>,
    ailing: &Ailing,
    followed: &[&[Pick]],
    closed: Option<&str>,
    now: Timestamp,
) -> Answer {
    let mut answer = Answer::default();
    let mut turns = turns(sights, course);
    for turn in turns.iter_mut().filter(|turn| turn.has == Has::Old && !turn.removing) {
        turn.health = worse(turn.health, ailing.health.get(turn.cluster).copied().unwrap_or(turn.health));
    }
    if course.target.is_none() {
        let reason = closed.unwrap_or(match *course.strategy {
            Strategy::Stages(_) => "the stages cannot be worked out",
            _ => "it rolls out by staged update runs, and none of them goes on now",
        });
        answer.take(Step::all_wait(&turns, reason));
        return answer;
    }
    if matches!(*course.strategy, Strategy::Rolling(_)) && closed.is_none() {
        let broken = broken(sights, &course.releases);
        let of_others = ailing.broken.iter().map(String::as_str).filter(|cluster| {
            sights.get(*cluster).is_some_and(|sight| sight.picked && sight.has() == Has::Old)
        });
        let broken = broken.chain(of_others).collect();
        go_on(&mut turns, &broken, &mut answer);
    }
    if let (Some(staged), Some(_)) = (&mut course.staged, closed) {
        staged.state = RunState::Stop;
    }
    loop {
        let step = match &mut course.staged {
            Some(staged) => {
                let (step, standing) = staged.step(&turns, now);
                answer.standing = Some(standing);
                step
            }
            None => strategies::step(&course.strategy, &turns, followed, now),
        };
        let (give, remove) = (step.give.clone(), step.remove.clone());
        if let Some(reason) = closed {
            let waits = Step::all_wait(&turns, reason).waits;
            answer.take(Step { waits, ..step });
            break;
        }
        if give.is_empty() && remove.is_empty() {
            answer.take(step);
            break;
        }
        answer.remove.extend(remove.iter().map(|cluster| (*cluster).to_owned()));
        let is_slow = |cluster: &str| {
            course.remembers_removals() && sights.get(cluster).is_some_and(Sight::is_removed_slowly)
        };
        turns.retain(|turn| !remove.contains(turn.cluster) || is_slow(turn.cluster));
        for turn in turns.iter_mut().filter(|turn| remove.contains(turn.cluster)) {
            (turn.removing, turn.health, turn.since) = (true, Health::Applying, None);
        }
        go_on(&mut turns, &give, &mut answer);
        // From now on it is pinned.
        turns.retain(|turn| !give.contains(turn.cluster) || !sights[turn.cluster].keeps);
    }
    for (cluster, _) in sights.iter().filter(|(cluster, sight)| is_on_its_way(cluster, sight, course)) {
        let reason = || "it reports on the proven release first, which it was told".into();
        answer.waits.entry(cluster.clone()).or_insert_with(reason);
    }
    answer
}

/// Marks clusters as told.
fn go_on(turns: &mut [Turn<'_>], give: &BTreeSet<&str>, answer: &mut Answer) {
    for turn in turns.iter_mut().filter(|turn| give.contains(turn.cluster)) {
        (turn.has, turn.health, turn.since) = (Has::New, Health::Applying, None);
    }
    answer.give.extend(give.iter().map(|cluster| (*cluster).to_owned()));
}

impl Answer {
    fn take(&mut self, step: Step<'_>) {
        self.timed_out = step.timed_out.into_iter().map(str::to_owned).collect();
        self.halted = step.halted.map(|failures| failures.words());
        self.waits.extend(step.waits.into_iter().map(|(cluster, reason)| (cluster.to_owned(), reason)));
        self.notes = step.notes;
        self.next = step.next;
    }
}

/// Returns the turns. A cluster that begins with the proven release, and has not reported on it yet, is not asked
/// about: to budgets it counts as one whose copy is under way.
fn turns<'s>(sights: &'s BTreeMap<String, Sight<'_>>, course: &Course<'_>) -> Vec<Turn<'s>> {
    let releases = &course.releases;
    let is_rolling = matches!(*course.strategy, Strategy::Rolling(_));
    let good = releases.good.filter(|good| Some(*good) != course.target);
    let begins = |cluster: &str, sight: &Sight<'_>| match sight.has() {
        Has::Nothing => good.is_some() && sight.removing.is_none(),
        Has::Old => is_on_its_way(cluster, sight, course),
        Has::New => false,
    };
    let turn = |(cluster, sight): (&'s String, &'s Sight<'_>)| {
        let turn = Turn {
            cluster,
            group: sight.group,
            picked: sight.picked,
            has: if sight.begins || begins(cluster, sight) { Has::New } else { sight.has() },
            health: sight.health(),
            since: sight.since(),
            measured: course.is_measured,
            removing: false,
        };
        match sight.removing {
            Some(_) => Turn { has: Has::Old, health: Health::Applying, since: None, removing: true, ..turn },
            None => turn,
        }
    };
    let free = sights.iter().filter(|(_, sight)| sight.counts() && !sight.is_pinned);
    // A newcomer that keeps what it gets first is pinned from then on.
    let asked = free.filter(|(cluster, sight)| match begins(cluster, sight) {
        true => is_rolling && !sight.keeps,
        false => !(sight.begins && sight.keeps),
    });
    asked.map(turn).collect()
}

/// Reports whether a cluster was told of the proven release, which is not the one that clusters go to, and has not
/// reported on it yet.
fn is_on_its_way(cluster: &str, sight: &Sight<'_>, course: &Course<'_>) -> bool {
    let releases = &course.releases;
    let told = releases.told.get(cluster).map(|told| told.release);
    let good = releases.good.filter(|good| Some(*good) != course.target);
    sight.picked
        && !sight.is_pinned
        && sight.has() == Has::Old
        && good.is_some_and(|good| told == Some(good))
        && sight.health() == Health::Applying
}

/// Returns the clusters that are out of order by a release that was never proven. The next one cannot make them worse,
/// so that they need not wait for each other.
fn broken<'s>(sights: &'s BTreeMap<String, Sight<'_>>, releases: &Releases) -> impl Iterator<Item = &'s str> {
    let is_unproven = |cluster: &str| {
        let told = releases.told.get(cluster).map(|told| told.release);
        told.is_some_and(|told| told != releases.current.number && Some(told) != releases.good)
    };
    let broken = sights.iter().filter(move |(cluster, sight)| {
        sight.picked && sight.has() == Has::Old && sight.health() != Health::Succeeded && is_unproven(cluster)
    });
    broken.map(|(cluster, _)| cluster.as_str())
}
