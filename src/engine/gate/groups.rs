//! Groups of workloads that are held or permitted together: an object moves between them, they lose the same
//! place, or a rollout policy puts them together.

use std::collections::{BTreeMap, BTreeSet};

use super::losses::ByWorkload;
use super::question::Question;
use crate::release::policy::Orders;
use crate::state::PlaceOwners;
use crate::state::ledger::Place;
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
        let owners = [&question.states.owners, &on_the_way, &after];
        let holders = owners.into_iter().flat_map(|owners| owners.holders(file.cluster, file.path));
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
