//! Every strategy behind one question: which clusters of a workload may get the release now?

use std::collections::BTreeMap;
use std::sync::Arc;

use super::turn::{Step, Turn};
use super::{progressive, rolling};
use berth_base::model::rollout::{Rollout, Strategy};
use berth_base::model::{Decision, Fleet, Key, Map, Pick, Timestamp};

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
