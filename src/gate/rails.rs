//! What is too much: each rail looks at the removals and names the workloads it holds.
//!
//! Removals by an edit of the source pass limits of a workload's clusters and a cluster's objects;
//! those that statuses or time cause have a budget of their own over the whole fleet.

use std::collections::{BTreeMap, BTreeSet};

use super::removal::Claims;
use super::{Cause, Question, Removal, Why};
use crate::model::{Key, ObjectId};

type Removals<'a> = BTreeMap<&'a Key, Removal>;
type Reasons<'a> = BTreeMap<&'a Key, Vec<Why>>;

pub(super) fn reasons<'a>(
    question: &Question<'_>,
    before: &Claims<'a>,
    removals: &Removals<'a>,
) -> Reasons<'a> {
    let mut reasons = Reasons::new();
    for (key, removal) in removals.iter().filter(|(_, removal)| removal.cause == Cause::Source) {
        let found = [clusters(question, before, key, removal), risky(question, removal)];
        reasons.entry(*key).or_default().extend(found.into_iter().flatten());
    }
    objects(question, removals, &mut reasons);
    still(question, removals, &mut reasons);
    evictions(question, removals, &mut reasons);
    reasons.retain(|_, why| !why.is_empty());
    reasons
}

/// A workload that leaves too many of its clusters, or all of them.
fn clusters(question: &Question<'_>, before: &Claims<'_>, key: &Key, removal: &Removal) -> Option<Why> {
    let mut has: BTreeMap<&str, usize> = BTreeMap::new();
    for (cluster, _) in before.places(key, question.previous) {
        *has.entry(cluster).or_default() += 1;
    }
    let mut loses: BTreeMap<&str, usize> = BTreeMap::new();
    for (cluster, _) in &removal.pairs {
        *loses.entry(cluster).or_default() += 1;
    }
    let lost = has.iter().filter(|(cluster, had)| loses.get(*cluster) == Some(had)).count();
    let limit = question.limits.clusters;
    let too_many =
        limit.is_exceeded(lost, has.len()) || (lost == has.len() && limit.share_is_exceeded(lost, has.len()));
    too_many.then_some(Why::Clusters { lost, of: has.len() })
}

fn risky(question: &Question<'_>, removal: &Removal) -> Option<Why> {
    let risky = removal.pairs.iter().map(|(_, object)| object).find(|object| object.takes_more_along())?;
    (!question.limits.allow_risky).then(|| Why::Risky { object: risky.clone() })
}

/// A cluster that loses too many of its objects holds all who take some. Where the cluster itself leaves
/// the inventory, none go free.
fn objects<'a>(question: &Question<'_>, removals: &Removals<'a>, reasons: &mut Reasons<'a>) {
    let mut lost: BTreeMap<&str, BTreeSet<&ObjectId>> = BTreeMap::new();
    let by_source = || removals.iter().filter(|(_, removal)| removal.cause == Cause::Source);
    for (cluster, object) in by_source().flat_map(|(_, removal)| &removal.pairs) {
        lost.entry(cluster).or_default().insert(object);
    }
    let limit = question.limits.objects;
    let too_many = |(cluster, objects): (&str, BTreeSet<&ObjectId>)| {
        let of = question.previous.folders.get(cluster).map_or(0, |folder| folder.len());
        let has_left = !question.next.folders.contains_key(cluster);
        let exceeded =
            limit.is_exceeded(objects.len(), of) || (has_left && limit.share_is_exceeded(objects.len(), of));
        exceeded.then(|| (cluster.to_owned(), (objects.len(), of)))
    };
    let full: BTreeMap<String, (usize, usize)> = lost.into_iter().filter_map(too_many).collect();
    for (key, removal) in by_source() {
        let takes: BTreeSet<&String> = removal.pairs.iter().map(|(cluster, _)| cluster).collect();
        let worst =
            takes.into_iter().filter_map(|cluster| full.get_key_value(cluster)).max_by_key(|one| one.1.0);
        if let Some((cluster, (lost, of))) = worst {
            let why = Why::Objects { cluster: cluster.clone(), lost: *lost, of: *of };
            reasons.entry(*key).or_default().push(why);
        }
    }
}

/// Workloads held together do not slip through one by one: the same removal stays held until approved.
fn still<'a>(question: &Question<'_>, removals: &Removals<'a>, reasons: &mut Reasons<'a>) {
    if question.limits.objects.is_off() {
        return;
    }
    for (key, removal) in removals {
        let same =
            |held: &&super::HeldRecord| held.together && held.key == **key && held.digest == removal.digest;
        let why = reasons.entry(*key).or_default();
        if why.is_empty() && question.retried.iter().any(|held| same(&held)) {
            why.push(Why::Still);
        }
    }
}

/// The budget of what happens by itself: beyond it, nothing of the kind happens.
fn evictions<'a>(question: &Question<'_>, removals: &Removals<'a>, reasons: &mut Reasons<'a>) {
    let by_itself = || removals.iter().filter(|(_, removal)| removal.cause == Cause::Itself);
    let losing: BTreeSet<&String> =
        by_itself().flat_map(|(_, removal)| &removal.pairs).map(|(cluster, _)| cluster).collect();
    let fleet: BTreeSet<&String> =
        question.previous.folders.keys().chain(question.next.folders.keys()).collect();
    if !question.limits.evictions.is_exceeded(losing.len(), fleet.len()) {
        return;
    }
    for (key, _) in by_itself() {
        let why = Why::Evictions { clusters: losing.len(), of: fleet.len() };
        reasons.entry(*key).or_default().push(why);
    }
}
