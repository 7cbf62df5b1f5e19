//! The promises of each pass, after any history; and the promise of a plan: after one more edit, while all
//! members are healthy, the fleet ends in exactly the state that the edit's first pass showed.

use std::collections::BTreeSet;

use super::fleet::Order;
use super::pass::{Pass, published};
use super::{History, Memory};
use crate::gate::Verdict;
use crate::state::ledger::{Place, Stage};
use crate::state::{Comparison, PlaceOwners, State, placement_decision};
use berth_base::model::{Folder, Key, ObjectId, path};

pub(super) fn hold(pass: &Pass<'_>, verdict: &Verdict) {
    if pass.history.processed.is_none() {
        return;
    }
    everything_has_an_owner(pass, &verdict.state);
    nothing_goes_without_a_permit(pass, verdict);
    units_stay_together(pass, verdict);
    held_workloads_stay(pass, verdict);
    limits_hold(pass, verdict);
    stages_change_when_and_never_whether(pass, verdict);
}

/// Checks that each copy belongs to a workload, so that its removal is a loss.
fn everything_has_an_owner(pass: &Pass<'_>, state: &State) {
    let owners = PlaceOwners::of(state);
    for (cluster, folder) in &state.folders {
        for path in folder.keys() {
            pass.history.is_true(!owners.holders(cluster, path).is_empty(), || {
                format!("{path} in {cluster} belongs to no workload: {:?}", state.ledger)
            });
        }
    }
}

/// Checks that each lost place was permitted: by the pass that found its loss, or by an earlier one.
fn nothing_goes_without_a_permit(pass: &Pass<'_>, verdict: &Verdict) {
    let (history, before) = (pass.history, &pass.history.state);
    let states = Comparison::of(before, &verdict.state);
    let gone = states.removed().flat_map(|file| {
        let owners = states.owners.holders(file.cluster, file.path).into_iter();
        owners.map(move |owner| (file.cluster.to_owned(), owner.object.clone()))
    });
    for place in gone.chain(unnamed(pass, &verdict.state)) {
        let record = verdict.state.ledger.losses.get(&place);
        let known = before.ledger.losses.get(&place).filter(|loss| loss.is_pending());
        // A loss that was permitted before the window no longer counts when it is carried out.
        let day = history.limits.window.before(history.moment());
        let is_old = known.is_some_and(|known| known.stage == Stage::Permitted && known.since <= day);
        let is_gone = record.is_some_and(|record| matches!(record.stage, Stage::Gone { .. }));
        history.is_true(is_gone || is_old, || {
            format!("{place:?} went, and the ledger does not say so: {known:?}, {record:?}")
        });
        let is_new = record.is_some_and(|record| record.since == history.moment());
        let is_approved = record.is_some_and(|record| record.exempt);
        let is_permitted = match known {
            // Another edit or a report can change a held loss.
            Some(known) => {
                known.stage == Stage::Permitted
                    || is_approved
                    || pass.is_edited
                    || !known.cause.is_edit()
                    || held(before, &known.owner) != held_or_gone(pass, verdict, &known.owner)
            }
            None => is_new || passed_its_deadline(pass, &place),
        };
        history.is_true(is_permitted, || {
            let now = &verdict.state.ledger.losses;
            format!("{place:?} went though it was held: {now:?} after {:?}", before.ledger.losses)
        });
    }
}

/// Returns the clusters that decisions without workloads no longer name: the consumers of a decision remove
/// their objects there.
fn unnamed(pass: &Pass<'_>, after: &State) -> Vec<Place> {
    let is_followed = |key: &Key| {
        let work =
            Key::new("work.open-cluster-management.io", "ManifestWorkReplicaSet", &key.namespace, &key.name);
        [&pass.history.state, after].iter().any(|state| state.decisions.contains_key(&work))
    };
    let bare =
        pass.history.state.decisions.values().filter(|decision| {
            placement_decision::is_placement(&decision.key) && !is_followed(&decision.key)
        });
    let lost = bare.flat_map(|decision| {
        let key = &decision.key;
        let object = ObjectId::new(&key.group, &key.kind, &key.namespace, &key.name);
        let names = |cluster: &str| after.decisions.get(key).is_some_and(|after| after.has(cluster));
        let gone = decision.picked().filter(move |pick| !names(&pick.cluster));
        gone.map(move |pick| (pick.cluster.to_string(), object.clone()))
    });
    lost.collect()
}

fn passed_its_deadline(pass: &Pass<'_>, (cluster, _): &Place) -> bool {
    let moment = pass.history.moment();
    let mut pending = pass.history.state.ledger.pending();
    pending.any(|((other, _), loss)| other == cluster && loss.due.is_some_and(|at| at <= moment))
}

/// Checks that workloads which a policy puts together are held together.
fn units_stay_together(pass: &Pass<'_>, verdict: &Verdict) {
    let held: BTreeSet<&Key> =
        verdict.held.iter().filter(|held| !held.goes_on).map(|held| &held.key).collect();
    for key in &held {
        let orders = crate::release::policy::Orders::of(&pass.built.fleet, key);
        for other in orders.together().into_iter().flatten() {
            pass.history.is_true(held.contains(other), || format!("{key} is held, and {other} is not"));
        }
    }
}

/// Checks that a held workload keeps each of its copies unchanged.
fn held_workloads_stay(pass: &Pass<'_>, verdict: &Verdict) {
    let states = Comparison::of(&pass.history.state, &verdict.state);
    for held in verdict.held.iter().filter(|held| !held.goes_on) {
        for (cluster, object) in states.owners.places(&held.key, states.current) {
            let path = path::of_object(object);
            let sides =
                [states.current, states.next].map(|state| state.folders.get(cluster)?.get(path.as_str()));
            pass.history.is_true(sides[0] == sides[1], || {
                format!("{} is held, and lost {path} in {cluster}", held.key)
            });
        }
    }
}

/// Checks that without an approval or a rollback, no object leaves all or most of its clusters within a day,
/// whatever the names of its workloads and the number of edits. Reads the published states, not the gate's
/// records.
fn limits_hold(pass: &Pass<'_>, verdict: &Verdict) {
    let history = pass.history;
    let removed = Comparison::of(&history.state, &verdict.state);
    if removed.removed().next().is_none() {
        return;
    }
    let day = history.limits.window.before(history.moment());
    let all: Vec<&State> = history.before.iter().map(|past| &past.state).chain([&history.state]).collect();
    // Only objects that shrank and have not returned since count. An object that grew first ran in more places
    // when it shrank.
    let is_back = |later: &[&State], cluster: &str, path: &str| {
        later.iter().filter_map(|state| state.folders.get(cluster)).any(|folder| folder.contains_key(path))
    };
    let lost = |first: usize, pair: &[&State]| -> BTreeSet<String> {
        let states = Comparison::of(pair[0], pair[1]);
        let later = &all[first + 2..];
        let gone = states.removed().filter(|file| !is_back(later, file.cluster, file.path));
        gone.map(|file| file.path.to_string()).collect()
    };
    let lately = history.before.iter().rev().take_while(|past| past.until > day).count();
    let pasts = all.windows(2).enumerate().rev().take(lately);
    let pasts = pasts.map(|(first, pair)| (pair[0], lost(first, pair)));
    let now = (&history.state, removed.removed().map(|file| file.path.to_string()).collect());
    for (before, lost) in std::iter::once(now).chain(pasts.filter(|(state, _)| !state.decisions.is_empty())) {
        for path in &lost {
            let has = |(_, folder): &(&String, &Folder)| folder.contains_key(path.as_str());
            let had = before.folders.iter().filter(has).map(|(cluster, _)| cluster.as_str()).collect();
            limit_holds(pass, verdict, before, path, &had);
        }
    }
}

fn limit_holds(pass: &Pass<'_>, verdict: &Verdict, before: &State, path: &str, had: &BTreeSet<&str>) {
    let (history, after) = (pass.history, &verdict.state);
    // A copy that returns at its turn is not lost.
    let has = |cluster: &str| {
        let folders = [after, &pass.built.desired].map(|state| state.folders.get(cluster));
        folders.into_iter().flatten().any(|folder| folder.contains_key(path))
    };
    let loss_in = |cluster: &str| {
        let mut losses = after.ledger.losses.iter();
        losses.find(|((other, object), _)| other == cluster && path::of_object(object) == path)
    };
    let is_gone = |cluster: &&&str| !has(cluster) && loss_in(cluster).is_none_or(|(_, loss)| !loss.exempt);
    // Losses that were permitted before the window were judged then.
    let is_lately = |cluster: &&str| {
        let day = history.limits.window.before(history.moment());
        loss_in(cluster).is_some_and(|(_, loss)| loss.since > day)
    };
    let gone: Vec<&str> = had.iter().filter(is_gone).copied().filter(is_lately).collect();
    // A place whose loss was approved later existed when the others were judged.
    let last = gone.iter().filter_map(|cluster| Some(loss_in(cluster)?.1.since)).max();
    let was_there =
        |cluster: &&&str| loss_in(cluster).is_none_or(|(_, loss)| !loss.exempt || Some(loss.since) > last);
    let counting: Vec<&str> =
        had.iter().filter(|cluster| has(cluster) || was_there(cluster)).copied().collect();
    let lost_now = |cluster: &&str| {
        let folder = history.state.folders.get(*cluster);
        folder.is_some_and(|folder| folder.contains_key(path))
    };
    let stays =
        |cluster: &&str| [before, &history.state].iter().any(|state| others_stay(state, cluster, path));
    if !gone.iter().any(lost_now) || gone.iter().any(stays) {
        return;
    }
    // A move is judged by its end: the new clusters may wait for their turn, as on a hub.
    let folders = [after, &pass.built.desired].into_iter().flat_map(|state| state.folders.values());
    let stays_somewhere = folders.into_iter().any(|folder| folder.contains_key(path));
    let is_move = counting.len() == 1 && stays_somewhere;
    // Clusters that got the object in between also ran it.
    let came = history.state.folders.iter().filter(|(_, folder)| folder.contains_key(path));
    let came = came.filter(|(cluster, _)| !had.contains(cluster.as_str())).count();
    let is_most = gone.len() > 2 && gone.len() * 2 > counting.len() + came;
    let is_all = gone.len() == counting.len() && !is_move;
    history.is_true(!is_most && !is_all, || {
        format!("{path} left {gone:?} of {counting:?} within a day: {:?}", after.ledger)
    });
}

/// Checks that the same edit loses the same places, each within the limits or not, if nothing waits for its
/// turn.
fn stages_change_when_and_never_whether(pass: &Pass<'_>, verdict: &Verdict) {
    let Some(at_once) = &pass.at_once else { return };
    let lost = |verdict: &Verdict| {
        // All current places that nobody has in the end.
        let states = Comparison::of(&pass.history.state, &pass.built.desired);
        let places = states.removed().flat_map(|file| {
            let owners = states.owners.holders(file.cluster, file.path).into_iter();
            owners.map(|owner| (file.cluster.to_owned(), owner.object.clone())).collect::<Vec<_>>()
        });
        let losses = &verdict.state.ledger.losses;
        let is_held = |place: &Place| losses.get(place).is_some_and(|loss| loss.stage == Stage::Held);
        // An approval names all losses of a group, including those on the way of a release, so it fits only
        // one of the two.
        let is_approved = |place: &Place| verdict.approved.iter().any(|one| one.places.contains(place));
        places.map(|place| (is_held(&place) || is_approved(&place), place)).collect::<BTreeSet<_>>()
    };
    let (in_steps, at_once) = (lost(verdict), lost(&at_once.verdict()));
    pass.history.is_true(in_steps == at_once, || {
        format!("{in_steps:?} is lost in steps, and {at_once:?} at once; true for what needs a permit")
    });
}

/// Reports whether the workload of an object keeps another one in the cluster.
fn others_stay(state: &State, cluster: &str, path: &str) -> bool {
    PlaceOwners::of(state).holders(cluster, path).iter().any(|owner| {
        let decision = state.decisions.get(owner.key);
        decision.is_some_and(|decision| decision.objects.len() > 1)
    })
}

/// Returns the held losses of a workload.
fn held(state: &State, owner: &Key) -> BTreeSet<Place> {
    let held =
        state.ledger.losses.iter().filter(|(_, loss)| loss.stage == Stage::Held && loss.owner == *owner);
    held.map(|(place, _)| place.clone()).collect()
}

/// Returns the losses of a workload that are still held, and those that this pass permits.
fn held_or_gone(pass: &Pass<'_>, verdict: &Verdict, owner: &Key) -> BTreeSet<Place> {
    let now = pass.history.moment();
    let losses = verdict.state.ledger.losses.iter().filter(|(_, loss)| loss.owner == *owner);
    losses
        .filter(|(_, loss)| loss.stage == Stage::Held || loss.since == now)
        .map(|(place, _)| place.clone())
        .collect()
}

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
