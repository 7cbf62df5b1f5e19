//! The promise of a plan: after one more edit, while all members are healthy, the fleet ends in exactly the
//! state that the edit's first pass showed.

use std::collections::BTreeSet;

use berth_base::model::{Key, path};

use super::fleet::Order;
use super::pass::published;
use super::{History, Memory};
use crate::gate::Verdict;
use crate::state::{Comparison, PlaceOwners, State};

/// The number of report rounds in which every rollout ends.
const MOST_ROUNDS: usize = 60;

/// Checks that the plan of a random edit comes true.
pub(super) fn come_true(history: &mut History) {
    let now = history.moment().to_string();
    history.fleet.edit(&mut history.dice, &now);
    history.edits += 1;
    if history.fleet.orders.iter().any(|order| matches!(order, Order::Paused(_))) {
        // The end of this order is unknown.
        return;
    }
    let mut contents = history.contents.clone();
    let pass = history.look(&history.fleet, &history.statuses, &mut Memory::default(), &mut contents);
    let planned = pass.verdict();
    let mut end = planned.end.clone();
    pass.built.keep_pins(&mut end);
    let (end, later) = (published(&end), by_deadlines(&end, &planned));
    let before = history.state.clone();
    follow(history, &before, &planned, (&end, &later));
    let files = Comparison::of(&end, &history.state);
    let is_gone = |cluster: &str, path: &str| {
        history.state.folders.get(cluster).is_none_or(|folder| !folder.contains_key(path))
    };
    let came_true = |cluster: &str, path: &str| {
        later.contains(&(cluster.to_owned(), path.to_owned())) && is_gone(cluster, path)
    };
    let differences: Vec<_> = files
        .files()
        .filter(|file| !came_true(file.cluster, file.path))
        .map(|file| format!("{} in {}", file.path, file.cluster))
        .collect();
    history.is_true(differences.is_empty(), || {
        format!(
            "the plan of the last edit did not come true: {differences:?}\n{planned:#?}\n{:?}",
            history.fleet
        )
    });
}

/// Lets members report success while time passes. On the way, nothing is removed that the plan does not
/// remove, and nothing is held that was not held at first.
fn follow(
    history: &mut History,
    before: &State,
    planned: &Verdict,
    (end, later): (&State, &BTreeSet<(String, String)>),
) {
    let held =
        |verdict: &Verdict| verdict.held.iter().map(|held| held.key.clone()).collect::<BTreeSet<Key>>();
    for _ in 0..MOST_ROUNDS {
        let last = history.state.clone();
        let verdict = history.settle();
        history.is_true(held(&verdict) == held(planned), || {
            format!("held at once: {:?}; held later: {:?}", held(planned), held(&verdict))
        });
        for file in Comparison::of(before, &history.state).removed() {
            let stays = end.folders.get(file.cluster).is_some_and(|folder| folder.contains_key(file.path));
            let is_due = later.contains(&(file.cluster.to_owned(), file.path.to_string()));
            history
                .is_true(!stays || is_due, || format!("{} in {} went on the way", file.path, file.cluster));
        }
        if last == history.state {
            break;
        }
        history.now += 16 * 3_600;
        history.all_is_well();
    }
}

/// Returns the files, by cluster and path, that the shown deadlines remove.
fn by_deadlines(end: &State, planned: &Verdict) -> BTreeSet<(String, String)> {
    let owners = PlaceOwners::of(end);
    let mut files = BTreeSet::new();
    for deadline in &planned.deadlines {
        let places = owners.places(&deadline.key, end).into_iter();
        let places = places.filter(|(cluster, _)| deadline.clusters().contains(cluster));
        files.extend(
            places.map(|(cluster, object)| (cluster.to_owned(), path::of_object(object).to_string())),
        );
    }
    files
}
