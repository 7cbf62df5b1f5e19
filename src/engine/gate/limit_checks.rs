//! The checks of the gate: each looks at the removals and names the workloads that it holds.
//!
//! A workload's clusters, a cluster's objects and risky kinds count whatever the cause, together with
//! removals within the window. Removals that statuses or time cause have a budget over the whole fleet as
//! well.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::held_record::HeldRecord;
use super::question::Question;
use super::removal::{Cause, Pairs};
use super::verdict::Why;
use super::weighing::Removal;
use super::window::{self, Place, Since};
use crate::state::State;
use berth_base::model::{Key, ObjectId, path};

type Removals<'a> = BTreeMap<&'a Key, Removal>;
type Reasons<'a> = BTreeMap<&'a Key, Vec<Why>>;

pub(super) fn reasons<'a>(question: &Question<'a>, removals: &Removals<'a>) -> Reasons<'a> {
    let since = window::since(question.pasts);
    let after = after(question.states.next, removals);
    let case = Case { question, since: &since, after: &after, removals };
    let mut reasons = Reasons::new();
    let removing = || removals.iter().filter(|(_, removal)| !removal.pairs.is_empty());
    for (key, removal) in removing().filter(|(_, removal)| counts(question, removal)) {
        let found = [clusters(&case, key, removal), risky(question, removal)];
        reasons.entry(*key).or_default().extend(found.into_iter().flatten());
    }
    objects(&case, &mut reasons);
    for (key, failed) in question.failing {
        let why = |(test, message): (&String, &String)| Why::Policy {
            test: test.clone(),
            message: message.clone(),
        };
        reasons.entry(key).or_default().extend(failed.iter().map(why));
    }
    still(question, removals, &mut reasons);
    evictions(&case, &mut reasons);
    reasons.retain(|_, why| !why.is_empty());
    reasons
}

/// The inputs of the rails.
#[derive(Clone, Copy)]
struct Case<'c, 'a> {
    question: &'c Question<'c>,
    since: &'c [Since<'c>],
    /// The next state, without the removals of deadlines.
    after: &'c State,
    removals: &'c Removals<'a>,
}

/// Returns the next state as of the last deadline of the change.
fn after<'n>(next: &'n State, removals: &Removals<'_>) -> Cow<'n, State> {
    let mut after = Cow::Borrowed(next);
    for (cluster, object) in removals.values().flat_map(|removal| removal.due.keys()) {
        if let Some(folder) = after.to_mut().folders.get_mut(cluster) {
            folder.take(path::of_object(object).as_str());
        }
    }
    after
}

/// Reports whether the limits of workloads and clusters are for this removal. The first version of the gate
/// had them for edits only.
fn counts(question: &Question<'_>, removal: &Removal) -> bool {
    question.limits.recall.is_some() || removal.cause == Cause::Source
}

fn clusters(case: &Case<'_, '_>, key: &Key, removal: &Removal) -> Option<Why> {
    let question = case.question;
    let mut has: BTreeMap<&str, usize> = BTreeMap::new();
    for (cluster, _) in question.states.owners.places(key, question.states.current) {
        *has.entry(cluster).or_default() += 1;
    }
    let mut loses: BTreeMap<&str, usize> = BTreeMap::new();
    for (cluster, _) in &removal.pairs {
        *loses.entry(cluster).or_default() += 1;
    }
    // Where the workload went on without a held removal, nothing that came since makes the removal smaller: neither
    // its copies elsewhere, nor others' objects that it has as well by now.
    let decision = question.states.current.decisions.get(key);
    let waits = |cluster: &str| decision.and_then(|one| one.pick(cluster)).is_some_and(|pick| pick.held);
    let is_lost = |(cluster, had): &(&&str, &usize)| {
        loses.get(**cluster).is_some_and(|loses| loses == *had || waits(cluster))
    };
    let lost = has.iter().filter(is_lost).count();
    let of = has.keys().filter(|cluster| !waits(cluster)).count().max(lost);
    let limit = question.limits.clusters;
    let moves = question.limits.recall.is_some() && goes_elsewhere(question, key, removal);
    // One cluster for one other is a move, and no mass removal.
    let is_all = |lost: usize, of: usize| lost == of && !(moves && of == 1);
    let exceeded = |lost: usize, of: usize| {
        limit.is_exceeded(lost, of) || (is_all(lost, of) && limit.share_is_exceeded(lost, of))
    };
    if exceeded(lost, of) {
        return Some(Why::Clusters { lost, of, lately: 0 });
    }
    let mut earlier = case.since.iter().filter_map(|since| since.clusters(key, case.after));
    let (total, of) = earlier.find(|(total, of)| exceeded(*total, *of))?;
    Some(Why::Clusters { lost: total, of, lately: total.saturating_sub(lost) })
}

/// Reports whether the workload is placed anywhere afterwards.
fn goes_elsewhere(question: &Question<'_>, key: &Key, removal: &Removal) -> bool {
    let last = question.outlook.with_change.last().filter(|_| !removal.due.is_empty());
    let decision =
        last.map_or_else(|| question.states.next.decisions.get(key), |last| last.decisions.get(key));
    decision.is_some_and(|one| !one.objects.is_empty() && one.picks.iter().any(|pick| !pick.pending))
}

fn risky(question: &Question<'_>, removal: &Removal) -> Option<Why> {
    let risky = removal.pairs.iter().map(|(_, object)| object).find(|object| object.takes_more_along())?;
    (!question.limits.allow_risky).then(|| Why::Risky { object: risky.clone() })
}

/// Objects lost, and objects there were.
type Share = (usize, usize);

/// Holds every workload that removes objects from a cluster with too many losses. The free number does not
/// apply to a cluster that leaves the inventory.
fn objects<'a>(case: &Case<'_, 'a>, reasons: &mut Reasons<'a>) {
    let Case { question, removals, .. } = *case;
    let mut lost: BTreeMap<&str, BTreeSet<&ObjectId>> = BTreeMap::new();
    let counting = || removals.iter().filter(|(_, removal)| counts(question, removal));
    for (cluster, object) in counting().flat_map(|(_, removal)| &removal.pairs) {
        lost.entry(cluster).or_default().insert(object);
    }
    let of = |cluster: &str| question.states.current.folders.get(cluster).map_or(0, |folder| folder.len());
    let now: BTreeMap<&str, Share> =
        lost.into_iter().map(|(cluster, objects)| (cluster, (objects.len(), of(cluster)))).collect();
    let mut full = full(question, &now);
    for since in case.since {
        // Losses now and since then together.
        let mut shares = since.objects(case.after);
        for (cluster, share) in &now {
            shares.entry(cluster).or_insert(*share);
        }
        for (cluster, share) in self::full(question, &shares) {
            full.entry(cluster).or_insert(share);
        }
    }
    for (key, removal) in counting() {
        let takes: BTreeSet<&str> = removal.pairs.iter().map(|(cluster, _)| cluster.as_str()).collect();
        let worst =
            takes.into_iter().filter_map(|cluster| full.get_key_value(cluster)).max_by_key(|one| one.1.0);
        if let Some((cluster, (lost, of))) = worst {
            let at_once = now.get(cluster).map_or(0, |(lost, _)| *lost);
            let lately = lost.saturating_sub(at_once);
            let why = Why::Objects { cluster: (*cluster).to_owned(), lost: *lost, of: *of, lately };
            reasons.entry(*key).or_default().push(why);
        }
    }
}

/// Returns the clusters that would lose too much. The free number is counted over all clusters together: ten
/// objects of each of fifty clusters are many.
fn full<'s>(question: &Question<'_>, shares: &BTreeMap<&'s str, Share>) -> BTreeMap<&'s str, Share> {
    let limit = question.limits.objects;
    let most = || shares.iter().filter(|(_, (lost, of))| limit.share_is_exceeded(*lost, *of));
    let total: usize = most().map(|(_, (lost, _))| lost).sum();
    let is_full = |cluster: &str, (lost, of): Share| {
        let counted = if question.limits.recall.is_some() { total } else { lost };
        limit.is_exceeded(lost, of)
            || limit.free < counted
            || !question.states.next.folders.contains_key(cluster)
    };
    most()
        .filter(|(cluster, share)| is_full(cluster, **share))
        .map(|(cluster, share)| (*cluster, *share))
        .collect()
}

/// Workloads held together do not slip through one by one: the same removal stays held until approved.
fn still<'a>(question: &Question<'_>, removals: &Removals<'a>, reasons: &mut Reasons<'a>) {
    if question.limits.objects.is_off() {
        return;
    }
    for (key, removal) in removals {
        let same = |held: &&HeldRecord| held.together && held.key == **key && held.digest == removal.digest;
        let why = reasons.entry(*key).or_default();
        if why.is_empty() && question.retried.iter().any(|held| same(&held)) {
            why.push(Why::Still);
        }
    }
}

/// Checks the budget of removals without an edit: beyond it, none of them happens.
fn evictions<'a>(case: &Case<'_, 'a>, reasons: &mut Reasons<'a>) {
    let Case { question, removals, .. } = *case;
    let by_itself = || removals.iter().filter(|(_, removal)| !removal.by_itself.is_empty());
    let now: Vec<Place> = by_itself().flat_map(|(_, removal)| places(&removal.by_itself)).collect();
    let mut losing = clusters_of(now.iter()).len();
    for since in case.since {
        let is_gone = |(cluster, path): &Place| {
            question.states.next.folders.get(cluster).is_none_or(|folder| !folder.contains_key(path))
        };
        let earlier = since.by_itself.iter().copied().filter(|place| is_gone(place));
        let all = now.iter().chain(earlier).filter(|place| since.had(place));
        losing = losing.max(clusters_of(all).len());
    }
    let fleet: BTreeSet<&String> =
        question.states.current.folders.keys().chain(question.states.next.folders.keys()).collect();
    if !question.limits.evictions.is_exceeded(losing, fleet.len()) {
        return;
    }
    let (clusters, of) = (losing, fleet.len());
    let why = match question.limits.recall {
        Some(_) => Why::Evictions { clusters, of },
        None => Why::Unedited { clusters, of },
    };
    for (key, _) in by_itself() {
        reasons.entry(*key).or_default().push(why.clone());
    }
}

fn places(pairs: &Pairs) -> impl Iterator<Item = Place> {
    pairs.iter().map(|(cluster, object)| (cluster.clone(), path::of_object(object).into()))
}

fn clusters_of<'p>(places: impl Iterator<Item = &'p Place>) -> BTreeSet<&'p str> {
    places.map(|(cluster, _)| cluster.as_str()).collect()
}
