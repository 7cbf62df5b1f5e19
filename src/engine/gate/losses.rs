//! The losses of each workload: the places that it has now and that nobody will have in the end.
//!
//! Deadlines are removals that a change brings about later, by time alone. An edit that writes the end of
//! a toleration or the date of a taint causes the removals at that moment, so the gate judges them with
//! the edit. Deadlines that existed before the edit do not count as its own.

use std::collections::{BTreeMap, BTreeSet};

use super::verdict::{Lookup, Question};
use crate::state::ledger::{Cause, Loss, Place, Places, Stage};
use crate::state::{Comparison, PlaceOwners, State, placement_decision};
use berth_base::model::map::Change;
use berth_base::model::{Decision, Key, Map, ObjectId, Pick, Timestamp, path};

/// The losses of one workload. A loss without a permit is held.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses(pub(super) BTreeMap<Place, Loss>);

impl Losses {
    /// Returns the places whose loss has no permit yet.
    pub(super) fn unpermitted(&self) -> Places {
        self.unpermitted_losses().map(|(place, _)| place.clone()).collect()
    }

    pub(super) fn unpermitted_losses(&self) -> impl Iterator<Item = (&Place, &Loss)> {
        self.0.iter().filter(|(_, loss)| loss.stage == Stage::Held)
    }

    /// Returns the losses by edits that have no permit yet.
    pub(super) fn held_edits(&self) -> impl Iterator<Item = (&Place, &Loss)> {
        self.unpermitted_losses().filter(|(_, loss)| loss.cause.is_edit())
    }

    /// Returns the losses that count against limits.
    pub(super) fn counting(&self) -> impl Iterator<Item = (&Place, &Loss)> {
        self.0.iter().filter(|(_, loss)| !loss.exempt)
    }
}

/// The losses by workload. A place that several workloads share is in the losses of each.
pub(super) type ByWorkload = BTreeMap<Key, Losses>;

/// A lost place before its record: its owners, and its deadline.
type LostPlaces = BTreeMap<Place, (BTreeSet<Key>, Option<Timestamp>)>;

/// Finds all future losses.
pub(super) fn find<L: Lookup>(question: &Question<'_>, lookup: &mut L) -> Result<ByWorkload, L::Error> {
    let mut lost = LostPlaces::new();
    for (place, owner) in in_the_end(question.states) {
        lost.entry(place).or_default().0.insert(owner);
    }
    let course: BTreeSet<Place> = in_their_course(question)
        .into_iter()
        .map(|(place, owner)| {
            lost.entry(place.clone()).or_default().0.insert(owner);
            place
        })
        .collect();
    for (key, due) in by_deadlines(question) {
        for (place, at) in due {
            let (owners, due) = lost.entry(place).or_insert_with(|| (BTreeSet::new(), Some(at)));
            if due.is_some() {
                owners.insert(key.clone());
            }
        }
    }
    if lost.keys().any(|(_, object)| placement_decision::is_placement(&key_of(object))) {
        // The clusters of such a placement lose its followers, whose losses are counted themselves.
        let followed = question.fleet.followed();
        lost.retain(|(_, object), _| !followed.contains(&key_of(object)));
    }
    let known = |place: &Place| question.ledger().losses.get(place).filter(|loss| loss.is_pending());
    let is_new = |place: &Place| known(place).is_none();
    let edit_alone = match question.is_edited && lost.keys().any(is_new) {
        true => lookup.edit_alone()?,
        false => Vec::new(),
    };
    let causes = Causes {
        edit_alone: edit_alone.iter().map(|decisions| (decisions, PlaceOwners::by(decisions))).collect(),
        course,
        without_edit: match question.states.current.facts == question.desired().facts {
            true => Cause::Time,
            false => Cause::Report,
        },
    };
    let passed = passed_deadlines(question);
    let mut by_workload = ByWorkload::new();
    for (place, (owners, due)) in lost {
        let came_later = || owners.iter().find_map(|owner| passed.get(&(place.0.as_str(), owner)).copied());
        let loss = match known(&place).or_else(came_later) {
            Some(known) if is_recalled(question, known) => Loss { due, stage: Stage::Held, ..known.clone() },
            Some(known) => Loss { due, ..known.clone() },
            None => Loss {
                owner: owners.first().expect("somebody loses it").clone(),
                cause: causes.of(question, &place, due.is_some()),
                since: question.now,
                due,
                stage: Stage::Held,
                exempt: false,
            },
        };
        for owner in owners {
            by_workload.entry(owner).or_default().0.insert(place.clone(), loss.clone());
        }
    }
    Ok(by_workload)
}

/// Reports whether a permitted loss must be judged again: when the permit was given, its workload was to
/// come to a cluster that it no longer comes to. Nobody has judged the loss without that cluster.
fn is_recalled(question: &Question<'_>, loss: &Loss) -> bool {
    loss.stage == Stage::Permitted
        && !loss.exempt
        && (!is_placed(question, &loss.owner, loss.due) || is_waiting_in_vain(question, &loss.owner))
}

/// Reports whether a workload no longer comes to a cluster in which it waited for its turn.
fn is_waiting_in_vain(question: &Question<'_>, key: &Key) -> bool {
    let desired = question.desired().decisions.get(key);
    let stays = |pick: &Pick| desired.is_some_and(|desired| desired.has(&pick.cluster));
    let current = question.states.current.decisions.get(key);
    current.is_some_and(|current| current.picks.iter().any(|pick| pick.pending && !stays(pick)))
}

/// Reports whether a workload has any place in the end. For a loss at a deadline, the end is the last
/// deadline.
pub(super) fn is_placed(question: &Question<'_>, key: &Key, due: Option<Timestamp>) -> bool {
    let last = question.outlook.with_change.last().filter(|_| due.is_some());
    let decision = last.map_or_else(|| question.desired().decisions.get(key), |last| last.decisions.get(key));
    decision.is_some_and(|one| {
        let has_places = !one.objects.is_empty() || is_consumed(one);
        has_places && one.picks.iter().any(|pick| !pick.pending)
    })
}

/// Returns the passed deadlines, by the cluster that a workload leaves. The workload also loses the objects
/// that it got there after the deadline was judged; all objects of that earlier time have their own records.
fn passed_deadlines<'q>(question: &Question<'q>) -> BTreeMap<(&'q str, &'q Key), &'q Loss> {
    let passed =
        question.ledger().pending().filter(|(_, loss)| loss.due.is_some_and(|at| at <= question.now));
    passed.map(|((cluster, _), loss)| ((cluster.as_str(), &loss.owner), loss)).collect()
}

/// Returns the places that the next state of a comparison no longer has, each with a workload that had it.
fn in_the_end(states: &Comparison<'_>) -> Vec<(Place, Key)> {
    let mut lost = Vec::new();
    for file in states.removed() {
        for loser in states.owners.losers(file.cluster, file.path) {
            lost.push(((file.cluster.to_owned(), loser.object.clone()), loser.key.clone()));
        }
    }
    for change in states.current.decisions.changes(&states.next.decisions) {
        lost.extend(from_decision(&change));
    }
    lost
}

/// Returns the clusters that a decision without a workload no longer names. Its consumers remove their
/// objects there.
fn from_decision(change: &Change<'_, Key, Decision>) -> Vec<(Place, Key)> {
    let Some(before) = change.before.filter(|before| is_consumed(before)) else { return Vec::new() };
    let has = |cluster: &str| change.after.is_some_and(|after| after.has(cluster));
    let object = object_of(&before.key);
    let gone = before.picked().filter(|pick| !has(&pick.cluster));
    gone.map(|pick| ((pick.cluster.to_string(), object.clone()), before.key.clone())).collect()
}

/// Reports whether other programs read a decision, because it has no workload of its own.
pub(super) fn is_consumed(decision: &Decision) -> bool {
    decision.objects.is_empty() && placement_decision::is_placement(&decision.key)
}

/// Returns the object that represents a decision's consumers.
fn object_of(key: &Key) -> ObjectId {
    ObjectId::new(&key.group, &key.kind, &key.namespace, &key.name)
}

/// Returns the placement that an object may represent.
fn key_of(object: &ObjectId) -> Key {
    Key::new(&object.group, &object.kind, &object.namespace, &object.name)
}

/// Reports whether a state has a place.
pub(super) fn has(state: &State, place: &Place) -> bool {
    let (cluster, object) = place;
    let is_named = || {
        state
            .decisions
            .get(&key_of(object))
            .is_some_and(|decision| is_consumed(decision) && decision.has(cluster))
    };
    has_copy(state, place) || is_named()
}

/// Reports whether a cluster's folder has an object.
pub(super) fn has_copy(state: &State, (cluster, object): &Place) -> bool {
    let folder = state.folders.get(cluster);
    folder.is_some_and(|folder| folder.contains_key(path::of_object(object).as_str()))
}

/// Returns the places of a workload, including those still pending, or of a decision's consumers.
pub(super) fn places_of<'a>(
    owners: &PlaceOwners<'a>,
    key: &Key,
    state: &'a State,
) -> Vec<(&'a str, ObjectId)> {
    let all = owners.places(key, state).into_iter().chain(owners.awaited(key));
    let mut places: Vec<(&str, ObjectId)> = all.map(|(cluster, object)| (cluster, object.clone())).collect();
    if let Some(decision) = state.decisions.get(key).filter(|decision| is_consumed(decision)) {
        places.extend(decision.picked().map(|pick| (&*pick.cluster, object_of(key))));
    }
    places
}

/// Returns the places that a workload loses in this step though the desired state keeps them: its cluster
/// returns or is pinned to a release that lacks the object.
fn in_their_course(question: &Question<'_>) -> Vec<(Place, Key)> {
    let Question { states, step, .. } = question;
    let after = PlaceOwners::of(question.desired());
    let mut lost = Vec::new();
    for file in Comparison::of(states.current, step).removed() {
        let stays =
            question.desired().folders.get(file.cluster).is_some_and(|folder| folder.contains_key(file.path));
        if !stays {
            continue;
        }
        for owner in states.owners.holders(file.cluster, file.path) {
            let is_its_own = states.owners.uses(owner.key, file.cluster, file.path);
            if is_its_own && after.owns(owner.key, file.cluster, file.path) {
                lost.push(((file.cluster.to_owned(), owner.object.clone()), owner.key.clone()));
            }
        }
    }
    lost
}

/// Returns the losses at deadlines: those that the change brings, and those recorded already.
fn by_deadlines(question: &Question<'_>) -> BTreeMap<Key, Due> {
    let Question { states, outlook, now, .. } = question;
    if !question.is_edited {
        let mut known: BTreeMap<Key, Due> = BTreeMap::new();
        for (place, loss) in question.ledger().pending() {
            let stays = || [states.current, states.next].iter().all(|state| has(state, place));
            if let Some(at) = loss.due.filter(|at| at > now && stays()) {
                known.entry(loss.owner.clone()).or_default().insert(place.clone(), at);
            }
        }
        return known;
    }
    let without = due(states, &outlook.without_change);
    let mut due = due(states, &outlook.with_change);
    for (key, due) in &mut due {
        let without = without.get(key);
        let is_known =
            |place: &Place| question.ledger().losses.get(place).is_some_and(|loss| loss.is_pending());
        let is_new = |place: &Place, at| {
            without.and_then(|without| without.get(place)).is_none_or(|before| *before > at)
        };
        due.retain(|place, at| is_known(place) || is_new(place, *at));
    }
    due.retain(|_, due| !due.is_empty());
    due
}

/// Finds the cause of a loss when the loss becomes inevitable.
#[derive(Debug)]
struct Causes<'d> {
    edit_alone: Vec<(&'d Map<Key, Decision>, PlaceOwners<'d>)>,
    /// The places that workloads lose by their own releases.
    course: BTreeSet<Place>,
    /// The cause of a loss that no edit brings about.
    without_edit: Cause,
}

impl Causes<'_> {
    /// Returns an edit as the cause if the edit alone brings the loss about, without new statuses and without
    /// time.
    fn of(&self, question: &Question<'_>, place: &Place, is_due: bool) -> Cause {
        let is_of_edit = || is_due || self.course.contains(place) || !self.stays_with_edit_alone(place);
        match question.is_edited && is_of_edit() {
            true => Cause::Edit { commit: question.source.to_owned() },
            false => self.without_edit.clone(),
        }
    }

    fn stays_with_edit_alone(&self, (cluster, object): &Place) -> bool {
        let (path, key) = (path::of_object(object), key_of(object));
        self.edit_alone.iter().any(|(decisions, owners)| {
            !owners.holders(cluster, &path).is_empty()
                || decisions.get(&key).is_some_and(|decision| is_consumed(decision) && decision.has(cluster))
        })
    }
}

/// The decisions of one later moment, with all other inputs unchanged.
#[derive(Clone, Debug)]
pub struct LaterDecisions {
    pub at: Timestamp,
    pub decisions: Map<Key, Decision>,
}

/// The later moments at which decisions change by time alone.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    pub with_change: Vec<LaterDecisions>,
    pub without_change: Vec<LaterDecisions>,
}

/// The objects that one workload would lose by deadlines, with their moments.
pub type Due = BTreeMap<Place, Timestamp>;

/// A deadline that a change brings and the gate lets pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    pub key: Key,
    pub at: Timestamp,
    /// The objects that are removed at that moment.
    pub places: Places,
}

impl Deadline {
    /// Returns the deadlines of one workload's losses.
    pub(super) fn of(key: &Key, due: &Due) -> Vec<Deadline> {
        let mut by_moment: BTreeMap<Timestamp, Places> = BTreeMap::new();
        for (place, at) in due {
            by_moment.entry(*at).or_default().insert(place.clone());
        }
        let one = |(at, places)| Deadline { key: key.clone(), at, places };
        by_moment.into_iter().map(one).collect()
    }

    pub fn clusters(&self) -> BTreeSet<&str> {
        self.places.iter().map(|(cluster, _)| cluster.as_str()).collect()
    }
}

/// Returns the places that the current and the next state have and that a later moment removes.
pub(super) fn due(states: &Comparison<'_>, moments: &[LaterDecisions]) -> BTreeMap<Key, Due> {
    let mut due: BTreeMap<Key, Due> = BTreeMap::new();
    for ahead in moments {
        let owners = PlaceOwners::by(&ahead.decisions);
        for (key, decision) in &states.current.decisions {
            let then = ahead.decisions.get(key);
            if then.is_some_and(|then| then.picks == decision.picks && then.objects == decision.objects) {
                continue;
            }
            for place in lost_by(&owners, decision, then) {
                if [states.current, states.next].into_iter().all(|state| has(state, &place)) {
                    due.entry(key.clone()).or_default().entry(place).or_insert(ahead.at);
                }
            }
        }
    }
    due
}

/// Returns the places of a decision that no decision has at a later moment.
fn lost_by(owners: &PlaceOwners<'_>, decision: &Decision, then: Option<&Decision>) -> Vec<Place> {
    let mut lost = Vec::new();
    for pick in decision.picks.iter().filter(|pick| !pick.pending) {
        let serves = then.filter(|then| then.serves(&pick.cluster));
        if is_consumed(decision) && serves.is_none() {
            lost.push((pick.cluster.to_string(), object_of(&decision.key)));
        }
        for object in &decision.objects {
            let stays = serves.is_some_and(|then| then.objects.contains(object))
                || !owners.holders(&pick.cluster, &path::of_object(object)).is_empty();
            if !stays {
                lost.push((pick.cluster.to_string(), object.clone()));
            }
        }
    }
    lost
}
