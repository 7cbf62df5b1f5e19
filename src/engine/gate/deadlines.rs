//! Deadlines: removals that a change brings about later, by time alone.
//!
//! An edit that writes the end of a toleration or the date of a taint causes the removals at that moment, so
//! the gate judges them with the edit. Deadlines that existed before the edit do not count as its own.

use std::collections::{BTreeMap, BTreeSet};

use super::losses::{self, is_consumed, object_of};
use crate::state::ledger::{Place, Places};
use crate::state::{Comparison, PlaceOwners};
use berth_base::model::{Decision, Key, Map, Timestamp, path};

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
                if [states.current, states.next].into_iter().all(|state| losses::has(state, &place)) {
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
