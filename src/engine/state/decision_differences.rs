//! The differences between two maps of decisions ↔ bytes: most decisions of a pass are those of the state that it became.

use super::codec::{decision, put_decision};
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::encoding::{key, put_key};
use berth_base::model::{Decision, Key, Map};

/// Encodes where other decisions are not those of a state.
pub fn put(encoder: &mut Encoder, of_state: &Map<Key, Decision>, others: &Map<Key, Decision>) {
    let changes: Vec<_> = of_state.changes(others).collect();
    encoder.list(changes.into_iter(), |encoder, one| {
        put_key(encoder, one.key);
        encoder.maybe(one.after, put_decision);
    });
}

pub fn get(decoder: &mut Decoder<'_>) -> Option<Map<Key, Option<Decision>>> {
    decoder.list(|decoder| Some((key(decoder)?, decoder.maybe(decision)?)))
}

/// Returns the other decisions.
pub fn apply(of_state: &Map<Key, Decision>, differences: &Map<Key, Option<Decision>>) -> Map<Key, Decision> {
    let mut others = of_state.clone();
    for (key, other) in differences {
        match other {
            Some(other) => drop(others.insert(key.clone(), other.clone())),
            None => drop(others.remove(key)),
        }
    }
    others
}

/// Returns decisions as they were before their objects were rendered.
pub fn without_objects(decisions: &Map<Key, Decision>) -> Map<Key, Decision> {
    let bare = |decision: &Decision| Decision {
        key: decision.key.clone(),
        source: decision.source.clone(),
        picks: decision.picks.clone(),
        refused: decision.refused.clone(),
        condition: decision.condition.clone(),
        digest: decision.digest,
        policy: decision.policy.clone(),
        objects: Vec::new(),
        failures: Vec::new(),
    };
    decisions.iter().map(|(key, decision)| (key.clone(), bare(decision))).collect()
}
