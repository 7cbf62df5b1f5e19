//! The checks of the gate: each looks at the losses and names the workloads to hold.
//!
//! The limits of a workload's clusters, of a cluster's objects and of risky kinds count every loss whatever
//! its cause, and the losses of the window. Losses without an edit also have a budget over the whole fleet.
//! Permitted losses that are not carried out yet count like new ones, but only new ones can be held.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::losses::{self, ByWorkload, Losses};
use super::verdict::{Question, Why};
use super::window::{Share, Window};
use crate::state::ledger::{Loss, Place, Stage};
use crate::state::{PlaceOwners, State};
use berth_base::model::{Key, ObjectId, path};

pub(super) type Reasons = BTreeMap<Key, Vec<Why>>;

pub(super) fn reasons(question: &Question<'_>, lost: &ByWorkload, window: &Window<'_>) -> Reasons {
    let after = after_deadlines(question.desired(), lost);
    let heirs = PlaceOwners::of(question.desired());
    let shared = shared_objects(lost);
    let case = Case { question, window, after: &after, heirs: &heirs, lost, shared: &shared };
    let mut reasons = Reasons::new();
    for (key, losses) in lost.iter().filter(|(_, losses)| !losses.unpermitted().is_empty()) {
        let found = [clusters(&case, key, losses), risky(question, losses)];
        reasons.entry(key.clone()).or_default().extend(found.into_iter().flatten());
    }
    objects(&case, &mut reasons);
    for (key, failed) in question.failing {
        let why = |(test, message): (&String, &String)| Why::Policy {
            test: test.clone(),
            message: message.clone(),
        };
        reasons.entry(key.clone()).or_default().extend(failed.iter().map(why));
    }
    still(question, lost, &mut reasons);
    evictions(&case, &mut reasons);
    reasons.retain(|_, why| !why.is_empty());
    reasons
}

/// The inputs of the checks.
#[derive(Clone, Copy)]
struct Case<'c> {
    question: &'c Question<'c>,
    window: &'c Window<'c>,
    /// The desired state after all deadlines.
    after: &'c State,
    heirs: &'c PlaceOwners<'c>,
    lost: &'c ByWorkload,
    shared: &'c BTreeMap<&'c ObjectId, SharedObject<'c>>,
}

/// An object that several workloads lose.
#[derive(Debug, Default)]
struct SharedObject<'l> {
    losers: BTreeSet<&'l Key>,
    /// The clusters that lose the object.
    clusters: BTreeSet<&'l str>,
    /// The clusters whose loss counts against no limit.
    exempt: BTreeSet<&'l str>,
}

/// Finds the objects that several workloads lose, each in clusters of its own.
fn shared_objects(lost: &ByWorkload) -> BTreeMap<&ObjectId, SharedObject<'_>> {
    let mut shared: BTreeMap<&ObjectId, SharedObject<'_>> = BTreeMap::new();
    for (key, losses) in lost {
        for ((cluster, object), loss) in &losses.0 {
            let one = shared.entry(object).or_default();
            one.losers.insert(key);
            if loss.exempt { &mut one.exempt } else { &mut one.clusters }.insert(cluster);
        }
    }
    shared.retain(|_, one| one.losers.len() > 1 && one.clusters.len() > 1);
    shared
}

/// Returns the desired state after all deadlines.
fn after_deadlines<'n>(desired: &'n State, lost: &ByWorkload) -> Cow<'n, State> {
    let mut after = Cow::Borrowed(desired);
    let due = lost.values().flat_map(|losses| &losses.0).filter(|(_, loss)| loss.due.is_some());
    for ((cluster, object), _) in due {
        if let Some(folder) = after.to_mut().folders.get_mut(cluster) {
            folder.take(path::of_object(object).as_str());
        }
    }
    after
}

fn clusters(case: &Case<'_>, key: &Key, losses: &Losses) -> Option<Why> {
    let question = case.question;
    let current = question.states.current;
    let exempt = |place: &(String, ObjectId)| losses.0.get(place).is_some_and(|loss| loss.exempt);
    // The workload's clusters, each with the number of its copies there that no other workload takes over.
    let (mut has, mut paths) = (BTreeMap::<String, usize>::new(), BTreeSet::new());
    for (cluster, object) in losses::places_of(&question.states.owners, key, current) {
        let place = (cluster.to_owned(), object);
        let hands_over = current.ledger.owners.get(&place);
        let hands_over = hands_over.is_some_and(|owner| owner.is_handed_over && owner.workload == *key);
        if hands_over && !losses.0.contains_key(&place) {
            continue;
        }
        let path = path::of_object(&place.1);
        let heirs = case.heirs.holders(&place.0, &path);
        let is_taken_over = !heirs.is_empty() && heirs.iter().all(|heir| heir.key != key);
        paths.insert(path);
        if !exempt(&place) {
            *has.entry(place.0).or_default() += usize::from(!is_taken_over);
        }
    }
    let mut loses: BTreeMap<&str, usize> = BTreeMap::new();
    for ((cluster, _), _) in losses.counting() {
        *loses.entry(cluster).or_default() += 1;
    }
    // If the workload was published without a held removal, nothing makes that removal smaller later: neither
    // its new copies in other clusters, nor objects that it took over since.
    let decision = current.decisions.get(key);
    let waits = |cluster: &str| decision.and_then(|one| one.pick(cluster)).is_some_and(|pick| pick.held);
    let is_lost = |(cluster, had): &(&String, &usize)| {
        loses.get(cluster.as_str()).is_some_and(|loses| loses == *had || waits(cluster))
    };
    let lost = has.iter().filter(is_lost).count();
    let of = has.keys().filter(|cluster| !waits(cluster)).count().max(lost);
    let limit = question.limits.clusters;
    let moves = losses::is_placed(question, key, losses.0.values().find_map(|loss| loss.due));
    // Moving from one cluster to one other is no mass removal.
    let is_all = |lost: usize, of: usize| lost == of && !(moves && of == 1);
    let exceeded = |lost: usize, of: usize| {
        limit.is_exceeded(lost, of) || (of > 0 && is_all(lost, of) && limit.share_is_exceeded(lost, of))
    };
    if exceeded(lost, of) {
        return Some(Why::Clusters { lost, of, lately: 0 });
    }
    let mut together = shares_of_objects(case, losses);
    if let Some((lost, of)) = together.find(|(lost, of)| exceeded(*lost, *of)) {
        return Some(Why::Clusters { lost, of, lately: 0 });
    }
    let mut earlier = case.window.clusters(&paths, case.after);
    let (total, of) = earlier.find(|(total, of)| exceeded(*total, *of))?;
    Some(Why::Clusters { lost: total, of, lately: total.saturating_sub(lost) })
}

/// Returns for each object that the workload and others lose how many of their clusters with it lose it.
fn shares_of_objects<'c>(case: &'c Case<'_>, losses: &'c Losses) -> impl Iterator<Item = Share> + 'c {
    let objects: BTreeSet<&ObjectId> = losses.unpermitted_losses().map(|((_, object), _)| object).collect();
    objects.into_iter().filter_map(|object| {
        let shared = case.shared.get(object)?;
        let path = path::of_object(object);
        let folders = case.question.states.current.folders.iter();
        // Another workload's copies, published while these losses are held, make them no smaller.
        let is_losers = |cluster: &str| {
            let holders = case.question.states.owners.holders(cluster, &path);
            holders.iter().any(|holder| shared.losers.contains(holder.key))
        };
        let has = folders.filter(|(cluster, folder)| {
            !shared.exempt.contains(cluster.as_str())
                && folder.contains_key(path.as_str())
                && is_losers(cluster)
        });
        Some((shared.clusters.len(), has.count().max(shared.clusters.len())))
    })
}

fn risky(question: &Question<'_>, losses: &Losses) -> Option<Why> {
    let mut objects = losses.unpermitted_losses().map(|((_, object), _)| object);
    let risky = objects.find(|object| object.takes_more_along())?;
    (!question.limits.allow_risky).then(|| Why::Risky { object: risky.clone() })
}

/// Holds every workload that removes objects from a cluster with too many losses. The free number does not
/// apply to a cluster that leaves the inventory.
fn objects(case: &Case<'_>, reasons: &mut Reasons) {
    let Case { question, lost, .. } = *case;
    let current = question.states.current;
    let mut by_cluster: BTreeMap<&str, BTreeSet<&ObjectId>> = BTreeMap::new();
    // A placement's loss, for its consumers, is no object of the cluster.
    let is_object = |place: &Place| losses::has_copy(current, place);
    for (place, _) in lost.values().flat_map(Losses::counting).filter(|(place, _)| is_object(place)) {
        by_cluster.entry(&place.0).or_default().insert(&place.1);
    }
    let mut exempt: BTreeMap<&str, BTreeSet<&ObjectId>> = BTreeMap::new();
    let all = lost.values().flat_map(|losses| &losses.0);
    for ((cluster, object), _) in all.filter(|(place, loss)| loss.exempt && is_object(place)) {
        exempt.entry(cluster).or_default().insert(object);
    }
    let of = |cluster: &str| {
        let folder = current.folders.get(cluster).map_or(0, |folder| folder.len());
        folder - exempt.get(cluster).map_or(0, BTreeSet::len)
    };
    let now: BTreeMap<&str, Share> =
        by_cluster.into_iter().map(|(cluster, objects)| (cluster, (objects.len(), of(cluster)))).collect();
    let mut emptied = emptied(question, &now);
    // Losses of this step and of the window together.
    for mut shares in case.window.objects(case.after) {
        for (cluster, share) in &now {
            shares.entry(cluster).or_insert(*share);
        }
        for (cluster, share) in self::emptied(question, &shares) {
            emptied.entry(cluster).or_insert(share);
        }
    }
    for (key, losses) in lost {
        let takes = losses.unpermitted_losses().filter(|(place, _)| is_object(place));
        let takes: BTreeSet<&str> = takes.map(|((cluster, _), _)| cluster.as_str()).collect();
        let worst =
            takes.into_iter().filter_map(|cluster| emptied.get_key_value(cluster)).max_by_key(|one| one.1.0);
        if let Some((cluster, (lost, of))) = worst {
            let at_once = now.get(cluster).map_or(0, |(lost, _)| *lost);
            let lately = lost.saturating_sub(at_once);
            let why = Why::Objects { cluster: (*cluster).to_owned(), lost: *lost, of: *of, lately };
            reasons.entry(key.clone()).or_default().push(why);
        }
    }
}

/// Returns the clusters that would lose too much. The free number is counted over all clusters together: ten
/// objects from each of fifty clusters are many.
fn emptied<'s>(question: &Question<'_>, shares: &BTreeMap<&'s str, Share>) -> BTreeMap<&'s str, Share> {
    let limit = question.limits.objects;
    let most = || shares.iter().filter(|(_, (lost, of))| limit.share_is_exceeded(*lost, *of));
    let total: usize = most().map(|(_, (lost, _))| lost).sum();
    let is_emptied = |cluster: &str, (lost, of): Share| {
        limit.is_exceeded(lost, of) || limit.free < total || !question.desired().folders.contains_key(cluster)
    };
    most()
        .filter(|(cluster, share)| is_emptied(cluster, **share))
        .map(|(cluster, share)| (*cluster, *share))
        .collect()
}

/// Keeps an edit's losses held after the window has passed, and after other losses held with them were
/// approved: waiting alone gives nobody a permit.
fn still(question: &Question<'_>, lost: &ByWorkload, reasons: &mut Reasons) {
    if !question.limits_stay {
        return;
    }
    let mut before: BTreeMap<&Key, BTreeSet<&Place>> = BTreeMap::new();
    for (place, loss) in question.ledger().pending().filter(|(_, loss)| is_held_edit(loss)) {
        before.entry(&loss.owner).or_default().insert(place);
    }
    let was_held =
        |place: &&Place| question.ledger().losses.get(*place).is_some_and(|loss| loss.stage == Stage::Held);
    let all: BTreeSet<&Place> = lost.values().flat_map(Losses::held_edits).map(|(place, _)| place).collect();
    for (key, losses) in lost {
        let now: BTreeSet<&Place> = losses.held_edits().map(|(place, _)| place).collect();
        // Another workload may have owned the place when it was held, and returned it since.
        let mut owners = losses.held_edits().map(|(_, loss)| &loss.owner);
        let is_whole = |owner: &Key| before.get(owner).is_some_and(|one| one.is_subset(&all));
        if !now.is_empty() && now.iter().all(was_held) && owners.all(is_whole) {
            let why = reasons.entry(key.clone()).or_default();
            if why.is_empty() {
                why.push(Why::Still);
            }
        }
    }
}

fn is_held_edit(loss: &Loss) -> bool {
    loss.stage == Stage::Held && loss.cause.is_edit()
}

/// Checks the budget of losses without an edit: above it, all of them are held.
fn evictions(case: &Case<'_>, reasons: &mut Reasons) {
    let Case { question, lost, .. } = *case;
    let mut losing: BTreeSet<&str> = BTreeSet::new();
    for ((cluster, _), _) in
        lost.values().flat_map(Losses::counting).filter(|(_, loss)| !loss.cause.is_edit())
    {
        losing.insert(cluster);
    }
    // Each window has its own budget: a loss that exceeds it today may fit tomorrow.
    let taken = case.window.taken_without_edit(question.limits.window.before(question.now));
    for (cluster, _) in taken.filter(|place| !losses::has(question.desired(), place)) {
        losing.insert(cluster);
    }
    let [current, desired] = [question.states.current, question.desired()];
    let fleet: BTreeSet<&String> = current.folders.keys().chain(desired.folders.keys()).collect();
    if !question.limits.evictions.is_exceeded(losing.len(), fleet.len()) {
        return;
    }
    let why = Why::Evictions { clusters: losing.len(), of: fleet.len() };
    for (key, losses) in lost {
        if losses.0.values().any(|loss| loss.stage == Stage::Held && !loss.cause.is_edit()) {
            reasons.entry(key.clone()).or_default().push(why.clone());
        }
    }
}
