//! Every strategy behind one question: which clusters of a workload may get the release now?
//!
//! A strategy knows neither files nor reports. It sees the content and health of each cluster, and selects
//! the clusters that get the release now, with the next moment at which its answer changes by time alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;

use super::{progressive, rolling};
use berth_base::model::release::Health;
use berth_base::model::rollout::{Rollout, Strategy};
use berth_base::model::{Decision, Fleet, Group, Key, Map, Pick, Timestamp};
use berth_base::text::{counted, some_of};

/// Returns the picks for each rollout of a progressive strategy: those of the placement that it names, or the
/// workload's own. Empty for other strategies.
pub fn followed<'d>(
    fleet: &Fleet,
    decisions: &'d Map<Key, Decision>,
    workload: &Key,
    strategy: &Strategy,
) -> Vec<&'d [Pick]> {
    let Strategy::Progressive(rollouts) = strategy else { return Vec::new() };
    let picks = |rollout: &Rollout| {
        let key = match &rollout.placement {
            Some(placement) => &fleet.find(placement)?.key,
            None => workload,
        };
        Some(&**decisions.get(key)?.picks)
    };
    rollouts.iter().map(|rollout| picks(rollout).unwrap_or_default()).collect()
}

/// Merges a decision's picked clusters and the existing copies into one list by name. `copies` need not mark
/// the picked clusters.
pub fn turns<'a>(
    decision: Option<&'a Decision>,
    copies: impl IntoIterator<Item = Turn<'a>>,
) -> Vec<Turn<'a>> {
    let mut turns: BTreeMap<&str, Turn<'a>> =
        copies.into_iter().map(|turn| (turn.cluster, Turn { picked: false, ..turn })).collect();
    for pick in decision.into_iter().flat_map(Decision::picked) {
        let turn = turns.entry(&pick.cluster).or_default();
        (turn.cluster, turn.picked, turn.group) = (&pick.cluster, true, pick.group.as_ref());
    }
    turns.into_values().collect()
}

/// Returns the clusters that may get the release now. `turns` ascend by name; `followed` is the result of
/// [`followed`].
pub fn step<'a>(
    strategy: &Strategy,
    turns: &[Turn<'a>],
    followed: &[&'a [Pick]],
    now: Timestamp,
) -> Step<'a> {
    match strategy {
        Strategy::AtOnce => Step {
            give: turns.iter().filter(|turn| turn.wants()).map(|turn| turn.cluster).collect(),
            ..removals(turns)
        },
        Strategy::Progressive(rollouts) => of_all(rollouts, turns, followed, now),
        Strategy::Rolling(budgets) => rolling::step(budgets, turns, now),
        Strategy::Stages(_) | Strategy::Runs => Step::all_wait(turns, "no staged rollout is active"),
    }
}

/// Each rollout is independent over its own clusters. A cluster of several rollouts is assigned as soon as
/// one of them lets it.
fn of_all<'a>(rollouts: &[Rollout], turns: &[Turn<'a>], followed: &[&'a [Pick]], now: Timestamp) -> Step<'a> {
    let mut all = removals(turns);
    for (rollout, picks) in rollouts.iter().zip(followed) {
        let own = of_one(turns, picks);
        let step = progressive::step(rollout, &own, now);
        all.give.extend(step.give);
        all.timed_out.extend(step.timed_out);
        all.notes.extend(step.notes);
        all.halted = all.halted.or(step.halted);
        all.next = all.next.into_iter().chain(step.next).min();
        match all.waits.is_empty() {
            true => all.waits = step.waits,
            false => step.waits.into_iter().for_each(|(cluster, reason)| {
                all.waits.entry(cluster).or_insert(reason);
            }),
        }
    }
    for turn in turns.iter().filter(|turn| turn.wants()) {
        if all.give.contains(turn.cluster) {
            all.waits.remove(turn.cluster);
        } else {
            let reason = || "no placement of the strategy picks the cluster".into();
            all.waits.entry(turn.cluster).or_insert_with(reason);
        }
    }
    all
}

/// Returns the turns of one placement's clusters, with their groups there. Both lists ascend by name.
fn of_one<'a>(turns: &[Turn<'a>], picks: &'a [Pick]) -> Vec<Turn<'a>> {
    let mut picks = picks.iter().filter(|pick| !pick.leaving).peekable();
    let own = turns.iter().filter(|turn| turn.picked).filter_map(|turn| {
        while picks.next_if(|pick| &*pick.cluster < turn.cluster).is_some() {}
        let pick = picks.next_if(|pick| *pick.cluster == *turn.cluster)?;
        Some(Turn { group: pick.group.as_ref(), ..turn.clone() })
    });
    own.collect()
}

/// Returns a step that removes all copies without a picked cluster.
fn removals<'a>(turns: &[Turn<'a>]) -> Step<'a> {
    let remove = turns.iter().filter(|turn| turn.is_left_over()).map(|turn| turn.cluster).collect();
    Step { remove, ..Step::default() }
}

impl<'a> Step<'a> {
    /// Returns a step in which all clusters wait for one reason.
    pub(super) fn all_wait(turns: &[Turn<'a>], reason: &str) -> Step<'a> {
        let reason: Arc<str> = reason.into();
        let waiting = turns.iter().filter(|turn| turn.wants() || turn.is_left_over());
        Step { waits: waiting.map(|turn| (turn.cluster, reason.clone())).collect(), ..Step::default() }
    }
}

/// A cluster's content of a workload, compared with the wanted content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    #[default]
    Nothing,
    Old,
    New,
}

/// One cluster of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn<'a> {
    pub cluster: &'a str,
    /// The cluster's decision group in the placement that is rolled out.
    pub group: Option<&'a Group>,
    /// False for a cluster that has a copy and is no longer picked.
    pub picked: bool,
    pub has: Version,
    /// The health of the cluster's copy.
    pub health: Health,
    /// The moment at which that health began; `None` without a report on the copy.
    pub since: Option<Timestamp>,
    /// The health was measured. Otherwise the objects' kinds have no measure, and only time counts.
    pub measured: bool,
    /// The folder no longer has the copy, but the member still does.
    pub removing: bool,
}

impl Turn<'_> {
    /// Reports whether the cluster should have the wanted content and does not have it yet.
    pub fn wants(&self) -> bool {
        self.picked && self.has != Version::New
    }

    /// Reports whether the cluster has a copy without being picked, and no removal is under way.
    pub fn is_left_over(&self) -> bool {
        !self.picked && self.has != Version::Nothing && !self.removing
    }
}

/// A strategy's answer for this moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step<'a> {
    /// The picked clusters that get the wanted content now.
    pub give: BTreeSet<&'a str>,
    /// The clusters whose copy may be removed now, without those whose removal is under way.
    pub remove: BTreeSet<&'a str>,
    /// The clusters with the wanted content that took too long.
    pub timed_out: BTreeSet<&'a str>,
    /// Too many clusters failed, so no further wave begins. In OCM's groups, the clusters of the failed group
    /// still get the content.
    pub halted: Option<Failures<'a>>,
    /// The reason for each cluster that waits, for people. It waits for the wanted content or, where it is no
    /// longer picked, for the removal of its copy.
    pub waits: BTreeMap<&'a str, Arc<str>>,
    /// The next moment at which the answer changes by time alone, apart from its words. With several
    /// placements, the earliest.
    pub next: Option<Timestamp>,
    /// Parts of the strategy that have no effect, against what their author may expect.
    pub notes: BTreeSet<String>,
}

/// The failures that halt a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures<'a> {
    /// The clusters that failed, by name.
    pub failed: Vec<&'a str>,
    /// The clusters that took too long, by name.
    pub timed_out: Vec<&'a str>,
    pub allowed: usize,
    /// The group whose failures are counted; `None` for all clusters.
    pub group: Option<&'a Group>,
}

impl Failures<'_> {
    /// Returns the failures in plain words: `eu-2 failed; no failures are allowed in group canary`.
    pub fn words(&self) -> String {
        let some = |names: &[&str], verb: &str| match names {
            [] => None,
            names => Some(format!("{} {verb}", some_of(names, MOST_NAMES))),
        };
        let parts = [some(&self.failed, "failed"), some(&self.timed_out, "took too long")];
        let what = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let place = self.group.map(|group| format!(" in {}", group_name(group))).unwrap_or_default();
        match self.allowed {
            0 => format!("{what}; no failures are allowed{place}"),
            allowed => format!("{what}; at most {} may fail{place}", counted(allowed, "cluster")),
        }
    }
}

/// The maximal number of clusters that a reason names.
pub(super) const MOST_NAMES: usize = 5;

/// Returns `group canary`, or `group 2` for a group without a name.
pub(super) fn group_name(group: &Group) -> String {
    if group.name.is_empty() { format!("group {}", group.index) } else { format!("group {}", group.name) }
}

/// Returns the moment this many seconds after another; `None` beyond the end of the calendar.
pub(super) fn seconds_after(since: Timestamp, seconds: i64) -> Option<Timestamp> {
    since.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// Returns the first of the moments at which `is_changed` holds. If it holds at one moment, it must hold at
/// all later ones.
pub(super) fn first_change(
    mut moments: Vec<Timestamp>,
    is_changed: impl Fn(Timestamp) -> bool,
) -> Option<Timestamp> {
    moments.sort_unstable();
    moments.dedup();
    let at = moments.partition_point(|moment| !is_changed(*moment));
    moments.get(at).copied()
}
