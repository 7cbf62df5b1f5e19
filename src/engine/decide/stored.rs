//! The cache of decisions ↔ bytes, as far as the state that they became does not tell it.

use std::collections::BTreeSet;

use super::cache::{DecisionCache, DecisionInputs, Results};
use crate::state::{State, decision_differences};
use berth_base::codec::coded::Coded;
use berth_base::codec::{Decoder, Encoder};
use berth_base::diag::Diagnostic;
use berth_base::model::{ClusterStatus, Decision, Fleet, Key, Map, Shared, Timestamp};

/// The cache that another process left, without its fleet and its decisions.
#[derive(Clone, Debug)]
pub(crate) struct StoredDecisions {
    now: Timestamp,
    statuses: Map<String, Shared<ClusterStatus>>,
    /// Where the current decisions were others before.
    previous: Map<Key, Option<Decision>>,
    said: Map<Key, Vec<Diagnostic>>,
    flips: Map<Key, Timestamp>,
    unsettled: BTreeSet<Key>,
    /// Where they are not those of the state.
    facts: Option<Map<String, Shared<ClusterStatus>>>,
}

impl DecisionCache {
    /// Encodes all but the fleet and the results' decisions; `current` is the state that these became.
    pub(crate) fn encode(&self, encoder: &mut Encoder, current: &State) {
        let DecisionCache { inputs, results, facts } = self;
        let DecisionInputs { fleet: _, previous, statuses, now } = inputs;
        let Results { decisions: _, said, flips, unsettled } = results;
        now.put(encoder);
        statuses.put(encoder);
        decision_differences::put(encoder, &current.decisions, previous);
        said.put(encoder);
        flips.put(encoder);
        unsettled.put(encoder);
        encoder.maybe((*facts != current.facts).then_some(facts), |encoder, facts| facts.put(encoder));
    }
}

impl StoredDecisions {
    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Option<StoredDecisions> {
        Some(StoredDecisions {
            now: Coded::get(decoder)?,
            statuses: Coded::get(decoder)?,
            previous: decision_differences::get(decoder)?,
            said: Coded::get(decoder)?,
            flips: Coded::get(decoder)?,
            unsettled: Coded::get(decoder)?,
            facts: decoder.maybe(Coded::get)?,
        })
    }

    /// Puts the cache together again: with the fleet and the decisions of that process, and the state that they became.
    pub(crate) fn restore(
        &self,
        fleet: &Shared<Fleet>,
        decisions: &Map<Key, Decision>,
        current: &State,
    ) -> DecisionCache {
        let StoredDecisions { now, statuses, previous, said, flips, unsettled, facts } = self;
        DecisionCache {
            inputs: DecisionInputs {
                fleet: fleet.clone(),
                previous: decision_differences::apply(&current.decisions, previous),
                statuses: statuses.clone(),
                now: *now,
            },
            results: Results {
                decisions: decisions.clone(),
                said: said.clone(),
                flips: flips.clone(),
                unsettled: unsettled.clone(),
            },
            facts: facts.clone().unwrap_or_else(|| current.facts.clone()),
        }
    }
}
