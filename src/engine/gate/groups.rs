//! Groups of workloads that are held or permitted together: an object moves between them, they lose the same
//! place, or a rollout policy puts them together.
//!
//! Workloads that roll out without their held removals, because only silent clusters lose copies.
//!
//! The gate keeps a held workload unchanged, so that its objects do not run in two places while people
//! decide. That protects nothing in a silent cluster: its member removes nothing now, approved or not. So the
//! gate publishes such a workload at once, and keeps only the copies in the silent clusters. This stays so
//! when a silent cluster reports again, because the other clusters have their copies by then.
//!
//! A workload with divided replicas is held as a whole: with the replicas of the silent cluster there would
//! be too many.

use std::collections::{BTreeMap, BTreeSet};

use super::losses::{ByWorkload, Losses};
use super::verdict::{Question, Why};
use crate::release::policy::Orders;
use crate::state::ledger::{Place, Places, Stage};
use crate::state::{PlaceOwners, State};
use berth_base::model::{Key, Pick, Placement};

/// Returns the groups that contain these workloads.
pub(super) fn of<'k>(
    question: &Question<'_>,
    lost: &ByWorkload,
    keys: impl Iterator<Item = &'k Key>,
) -> Vec<BTreeSet<Key>> {
    let mut keys = keys.peekable();
    if keys.peek().is_none() {
        return Vec::new();
    }
    let mut ties = ties(question);
    for (key, other) in sharing(lost) {
        ties.entry(key.clone()).or_default().insert(other.clone());
        ties.entry(other.clone()).or_default().insert(key.clone());
    }
    let mut groups: Vec<BTreeSet<Key>> = Vec::new();
    for key in keys {
        if groups.iter().any(|group| group.contains(key)) {
            continue;
        }
        let (mut group, mut next) = (BTreeSet::new(), vec![key.clone()]);
        while let Some(one) = next.pop() {
            if group.insert(one.clone()) {
                next.extend(ties.get(&one).into_iter().flatten().cloned());
                next.extend(along(question, &one));
            }
        }
        groups.push(group);
    }
    groups
}

/// Returns the workloads and placements that are held along with a workload: the workloads of its rollout
/// policy, and the placements that it follows and that lose clusters. Other programs may read these
/// placements, and remove their objects in the lost clusters.
fn along(question: &Question<'_>, key: &Key) -> Vec<Key> {
    let Question { states, fleet, .. } = *question;
    let of_policy = Orders::of(fleet, key).together().into_iter().flatten();
    let loses = |placement: &&Placement| {
        let [before, after] = [states.current, states.next].map(|state| state.decisions.get(&placement.key));
        let stays = |pick: &Pick| after.is_some_and(|after| after.has(&pick.cluster));
        before.is_some_and(|before| before.picked().any(|pick| !stays(pick)))
    };
    let followed = fleet.followed_by(key).filter(loses).map(|placement| &placement.key);
    of_policy.chain(followed).cloned().collect()
}

/// Finds the workloads that lose the same place: the workload that gives the place away, and the workload
/// that takes it over. Another workload may have owned the place when its loss was held.
fn sharing(lost: &ByWorkload) -> BTreeSet<(&Key, &Key)> {
    let mut first: BTreeMap<&Place, &Key> = BTreeMap::new();
    let mut sharing = BTreeSet::new();
    for (key, losses) in lost {
        for (place, loss) in &losses.0 {
            let one = *first.entry(place).or_insert(key);
            let others = [one, &loss.owner].into_iter().filter(|other| *other != key);
            sharing.extend(others.map(|other| (other, key)));
        }
    }
    sharing
}

/// Finds the workloads that share a changed file: each of them has the file before the change, in the step,
/// or in the end.
fn ties(question: &Question<'_>) -> BTreeMap<Key, BTreeSet<Key>> {
    let (on_the_way, after) = (PlaceOwners::of(question.step), PlaceOwners::of(question.desired()));
    let mut ties: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
    let mut last: Option<BTreeSet<&Key>> = None;
    for file in question.states.files().filter(|file| file.after.is_some()) {
        let is_in_step = || question.step.folders.get(file.cluster)?.get(file.path);
        let before = file.before.map(|_| &question.states.owners);
        let owners = [before, is_in_step().map(|_| &on_the_way), Some(&after)].into_iter().flatten();
        let holders = owners.flat_map(|owners| owners.holders(file.cluster, file.path));
        let all: BTreeSet<&Key> = holders.map(|owner| owner.key).collect();
        if all.len() < 2 || last.as_ref() == Some(&all) {
            continue;
        }
        for key in &all {
            ties.entry((*key).clone()).or_default().extend(all.iter().map(|key| (*key).clone()));
        }
        last = Some(all);
    }
    ties
}

/// The workloads that are published without their held removals.
pub(super) type Apart<'a> = BTreeMap<&'a Key, Kept>;

/// The held removals of such a workload.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) places: Places,
    /// The workload has more clusters than before.
    grows: bool,
}

/// Finds the workloads that are published without their held removals.
pub(super) fn find_apart<'a>(question: &Question<'_>, lost: &'a ByWorkload) -> Apart<'a> {
    if !question.limits.failover {
        return Apart::new();
    }
    let of_workload = |(key, losses): (&'a Key, &Losses)| {
        // An edit causes a later loss, and a permitted removal happens.
        let waits = losses.0.values().all(|loss| loss.due.is_none() && loss.stage == Stage::Held);
        Some((key, kept(question, key, losses.unpermitted()).filter(|_| waits)?))
    };
    lost.iter().filter_map(of_workload).collect()
}

/// Reports whether a workload that is held for these reasons is published without its removals.
pub(super) fn goes_on(apart: &Apart<'_>, key: &Key, why: &[Why]) -> bool {
    let Some(kept) = apart.get(key) else { return false };
    why.iter().all(|why| match why {
        // With more clusters, the same removal is a smaller share.
        Why::Clusters { .. } => !kept.grows,
        Why::Objects { .. } | Why::Risky { .. } | Why::Still => true,
        // `Evictions`: too many clusters lose something at once. `Policy` and `Along` concern more than
        // removals.
        Why::Evictions { .. } | Why::Policy { .. } | Why::Along { .. } => false,
    })
}

fn kept(question: &Question<'_>, key: &Key, places: Places) -> Option<Kept> {
    let [current, next] = [question.states.current, question.states.next];
    let (before, after) = (current.decisions.get(key)?, next.decisions.get(key)?);
    let is_divided =
        [before, after].into_iter().any(|one| one.picks.iter().any(|pick| pick.replicas.is_some()));
    let waits = |cluster: &str| before.pick(cluster).is_some_and(|pick| pick.held);
    let is_left = |cluster: &str| !after.has(cluster) && (waits(cluster) || is_silent(next, cluster));
    if is_divided
        || !places.iter().all(|(cluster, object)| is_left(cluster) && after.objects.contains(object))
    {
        return None;
    }
    let [had, has] = [before, after].map(|one| one.picks.iter().filter(|pick| !pick.held).count());
    Some(Kept { places, grows: has > had })
}

/// Reports whether a cluster is silent and has not reported again.
fn is_silent(state: &State, cluster: &str) -> bool {
    let silence = state.facts.get(cluster).and_then(|fact| fact.silence());
    silence.is_some_and(|silence| silence.frozen.is_none())
}
