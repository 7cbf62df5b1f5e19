//! The promises of each pass, whatever came before it.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::{Key, path};

use super::pass::Pass;
use crate::gate::Verdict;
use crate::state::ledger::{Place, Stage};
use crate::state::{Comparison, State};

pub(super) fn hold(pass: &Pass<'_>, verdict: &Verdict) {
    if pass.history.processed.is_none() {
        return;
    }
    nothing_goes_without_a_permit(pass, verdict);
    units_stay_together(pass, verdict);
    held_workloads_stay(pass, verdict);
    limits_hold(pass, verdict);
}

/// Each place that is lost was permitted: by the pass that found its loss, or by an earlier one.
fn nothing_goes_without_a_permit(pass: &Pass<'_>, verdict: &Verdict) {
    let (history, before) = (pass.history, &pass.history.state);
    let states = Comparison::of(before, &verdict.state);
    for file in states.removed() {
        for owner in states.owners.holders(file.cluster, file.path) {
            let place = (file.cluster.to_owned(), owner.object.clone());
            let record = verdict.state.ledger.losses.get(&place);
            let known = before.ledger.losses.get(&place).filter(|loss| loss.is_pending());
            // A loss that was permitted before the window counts against nothing any more when it is carried out.
            let day = history.limits.window.before(history.moment());
            let is_old = known.is_some_and(|known| known.stage == Stage::Permitted && known.since <= day);
            let is_gone = record.is_some_and(|record| matches!(record.stage, Stage::Gone { .. }));
            history.is_true(is_gone || is_old, || {
                format!("{place:?} went, and the ledger does not say so: {known:?}, {record:?}")
            });
            let is_new = record.is_some_and(|record| record.since == history.moment());
            let is_approved = record.is_some_and(|record| record.exempt);
            let is_permitted = match known {
                // Another edit, or a report, can make another change of a held one.
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
                format!("{place:?} went though it was held: {known:?}, {record:?}")
            });
        }
    }
}

fn passed_its_deadline(pass: &Pass<'_>, (cluster, _): &Place) -> bool {
    let moment = pass.history.moment();
    let mut pending = pass.history.state.ledger.pending();
    pending.any(|((other, _), loss)| other == cluster && loss.due.is_some_and(|at| at <= moment))
}

/// Workloads that a policy puts together are held together.
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

/// A held workload keeps each of its copies as it is.
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

/// Without an approval or a rollback, no object leaves all or most of its clusters within a day, whatever its workloads
/// are called, however often they are edited. Judged by the states that were published, not by what the gate wrote down.
fn limits_hold(pass: &Pass<'_>, verdict: &Verdict) {
    let history = pass.history;
    let mut had: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (cluster, folder) in &history.state.folders {
        for path in folder.keys() {
            had.entry(path.to_string()).or_default().insert(cluster.clone());
        }
    }
    for (path, clusters) in had {
        let has = |cluster: &String| {
            verdict.state.folders.get(cluster).is_some_and(|folder| folder.contains_key(path.as_str()))
        };
        let goes: Vec<&String> = clusters.iter().filter(|cluster| !has(cluster)).collect();
        // What a permit of some days ago carries out now was judged then.
        let is_counted = |cluster: &&&String| {
            let record = verdict
                .state
                .ledger
                .losses
                .iter()
                .find(|((other, object), _)| other == **cluster && path::of_object(object) == path);
            record.is_some_and(|(_, loss)| !loss.exempt && loss.since == history.moment())
        };
        let counted = goes.iter().filter(is_counted).count();
        if goes.iter().any(|cluster| others_stay(pass, verdict, cluster, &path)) {
            continue;
        }
        let stays_somewhere = verdict.state.folders.values().any(|folder| folder.contains_key(path.as_str()));
        let is_move = clusters.len() == 1 && stays_somewhere;
        let is_most = counted > 2 && counted * 2 > clusters.len();
        let is_all = counted == clusters.len() && !is_move;
        history.is_true(!is_most && !is_all, || {
            format!(
                "{path} left {counted} of {} clusters at once: {:?}",
                clusters.len(),
                verdict.state.ledger
            )
        });
    }
}

/// Reports whether the workload of an object keeps another one in the cluster.
fn others_stay(pass: &Pass<'_>, verdict: &Verdict, cluster: &str, path: &str) -> bool {
    let states = Comparison::of(&pass.history.state, &verdict.state);
    states.owners.holders(cluster, path).iter().any(|owner| {
        let decision = states.current.decisions.get(owner.key);
        decision.is_some_and(|decision| decision.objects.len() > 1)
    })
}

/// The held losses of a workload.
fn held(state: &State, owner: &Key) -> BTreeSet<Place> {
    let held =
        state.ledger.losses.iter().filter(|(_, loss)| loss.stage == Stage::Held && loss.owner == *owner);
    held.map(|(place, _)| place.clone()).collect()
}

/// The losses of a workload that are held still, and those that this pass permits.
fn held_or_gone(pass: &Pass<'_>, verdict: &Verdict, owner: &Key) -> BTreeSet<Place> {
    let now = pass.history.moment();
    let losses = verdict.state.ledger.losses.iter().filter(|(_, loss)| loss.owner == *owner);
    losses
        .filter(|(_, loss)| loss.stage == Stage::Held || loss.since == now)
        .map(|(place, _)| place.clone())
        .collect()
}
