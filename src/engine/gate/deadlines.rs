//! Deadlines: removals that a change brings about later, by time alone.
//!
//! The end of a toleration and the date of a taint are part of the edit that writes them, so the gate judges
//! their removals like immediate ones. Deadlines that existed before the change do not count as its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::held_record::{key_of_words, words_of_key};
use super::removal::Pairs;
use crate::state::{Comparison, PlaceOwners};
use berth_base::model::{Decision, Key, Map, ObjectId, Timestamp, path};

/// The decisions of one later moment, with all other inputs unchanged.
#[derive(Clone, Debug)]
pub struct LaterDecisions {
    pub at: Timestamp,
    pub decisions: Map<Key, Decision>,
}

/// The moments to come at which decisions change by time alone.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    pub with_change: Vec<LaterDecisions>,
    pub without_change: Vec<LaterDecisions>,
    /// The end of the time that was searched for deadlines.
    pub until: Option<Timestamp>,
}

/// The objects that one workload would lose by deadlines, with their moments.
pub type Due = BTreeMap<(String, ObjectId), Timestamp>;

/// A deadline that a change brought and the gate let pass, as a line of a commit's trailers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    pub key: Key,
    pub at: Timestamp,
    /// The loss is approved, so it does not count later.
    pub approved: bool,
    pub clusters: BTreeSet<String>,
}

/// The words for an approved deadline and for any other.
const WORDS: [&str; 2] = ["approved", "passed"];

impl Deadline {
    /// The deadlines of one workload's losses.
    pub(super) fn of(key: &Key, due: &Due, approved: bool) -> Vec<Deadline> {
        let mut by_moment: BTreeMap<Timestamp, BTreeSet<String>> = BTreeMap::new();
        for ((cluster, _), at) in due {
            by_moment.entry(*at).or_default().insert(cluster.clone());
        }
        let one = |(at, clusters)| Deadline { key: key.clone(), at, approved, clusters };
        by_moment.into_iter().map(one).collect()
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = WORDS[usize::from(!self.approved)];
        let clusters: Vec<&str> = self.clusters.iter().map(String::as_str).collect();
        write!(f, "{} {word} {} {}", self.at, words_of_key(&self.key), clusters.join(" "))
    }
}

impl FromStr for Deadline {
    type Err = ();

    fn from_str(text: &str) -> Result<Deadline, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let [at, word, kind, name, clusters @ ..] = words.as_slice() else { return Err(()) };
        Ok(Deadline {
            key: key_of_words(&format!("{kind} {name}")).ok_or(())?,
            at: at.parse().map_err(|_| ())?,
            approved: WORDS.iter().position(|known| known == word).ok_or(())? == 0,
            clusters: clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
        })
    }
}

/// Returns the current copies that the next state has and a later moment removes.
pub(super) fn due(states: &Comparison<'_>, moments: &[LaterDecisions]) -> BTreeMap<Key, Due> {
    let mut due: BTreeMap<Key, Due> = BTreeMap::new();
    for ahead in moments {
        let mut claims: Option<PlaceOwners<'_>> = None;
        for (key, decision) in &states.current.decisions {
            let then = ahead.decisions.get(key);
            if then.is_some_and(|then| then.picks == decision.picks && then.objects == decision.objects) {
                continue;
            }
            for pick in decision.picks.iter().filter(|pick| !pick.pending) {
                let serves = then.filter(|then| then.serves(&pick.cluster));
                for object in &decision.objects {
                    if serves.is_some_and(|then| then.objects.contains(object)) {
                        continue;
                    }
                    let path = path::of_object(object);
                    let claims = claims.get_or_insert_with(|| PlaceOwners::of(&ahead.decisions));
                    let stays = [states.current, states.next].into_iter().all(|state| {
                        state
                            .folders
                            .get(&*pick.cluster)
                            .is_some_and(|folder| folder.contains_key(path.as_str()))
                    });
                    if stays && claims.holders(&pick.cluster, &path).is_empty() {
                        let place = (pick.cluster.to_string(), object.clone());
                        due.entry(key.clone()).or_default().entry(place).or_insert(ahead.at);
                    }
                }
            }
        }
    }
    due
}

/// Returns the deadlines that the change brings: those that would come later or never without it.
pub(super) fn brought(with_change: &Due, without_change: Option<&Due>) -> Due {
    let new = |(place, at): &(&(String, ObjectId), &Timestamp)| {
        without_change.and_then(|without| without.get(*place)).is_none_or(|before| before > *at)
    };
    with_change.iter().filter(new).map(|(place, at)| (place.clone(), *at)).collect()
}

/// The losses up to a moment.
pub(super) fn until(due: &Due, last: Timestamp) -> Due {
    due.iter().filter(|(_, at)| **at <= last).map(|(place, at)| (place.clone(), *at)).collect()
}

/// Splits off the removals that an earlier change brought as deadlines: the approved ones, and the others.
pub(super) fn foreseen(deadlines: &[Deadline], key: &Key, pairs: &Pairs) -> [Pairs; 2] {
    let mut found = [Pairs::new(), Pairs::new()];
    for deadline in deadlines.iter().filter(|deadline| deadline.key == *key) {
        let named = pairs.iter().filter(|(cluster, _)| deadline.clusters.contains(cluster));
        found[usize::from(!deadline.approved)].extend(named.cloned());
    }
    found
}
