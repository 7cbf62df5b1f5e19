//! Hypothetical decisions: at a later moment, or by the edit alone.

use berth_base::model::{ClusterStatus, Decision, Key, Map, Shared, Timestamp};

use crate::gate::losses::LaterDecisions;
use crate::load::Loaded;
use crate::pipeline::{self, Inputs};
use crate::state::State;

/// The maximal number of later moments to compute one by one.
const MOST_DEADLINES: usize = 64;

/// Returns the decisions at each moment from now `until` another one at which time alone changes a decision.
/// `facts` replace the statuses, and `first_seen` dates the taints. Reported scores do not expire here,
/// because members report again.
pub fn ahead(
    loaded: &Loaded,
    inputs: Inputs<'_>,
    facts: &Map<String, Shared<ClusterStatus>>,
    first_seen: &Map<String, Shared<ClusterStatus>>,
    until: Timestamp,
) -> Vec<LaterDecisions> {
    let mut facts = facts.clone();
    facts.values_mut().for_each(|fact| fact.keep_scores(inputs.now));
    let mut state = State { facts: first_seen.clone(), ..inputs.current.clone() };
    let place = |current: &State, now: Timestamp| {
        pipeline::place(loaded.clone(), Inputs { current, statuses: &facts, now, ..inputs })
    };
    let (mut at, mut moments) = (inputs.now, Vec::new());
    let (decisions, mut change) = place(&state, at);
    state.decisions = decisions;
    while let Some(next) = change.filter(|next| *next > at && *next <= until) {
        at = if moments.len() < MOST_DEADLINES { next } else { until };
        let (decisions, next) = place(&state, at);
        change = next;
        state.decisions = decisions.clone();
        moments.push(LaterDecisions { at, decisions });
    }
    moments
}

/// Returns the decisions by the edit alone: with the facts of the current state, at its moment `then`. These
/// facts contain only what decisions read then. Facts that only the new source reads are taken as they are
/// now and, if that makes a difference, also as never reported.
pub fn edit_alone(
    loaded: &Loaded,
    inputs: Inputs<'_>,
    facts: &Map<String, Shared<ClusterStatus>>,
    then: Option<Timestamp>,
) -> Vec<Map<Key, Decision>> {
    let before = &inputs.current.facts;
    let then = then.unwrap_or(inputs.now).min(inputs.now);
    if before == facts && then == inputs.now {
        return Vec::new();
    }
    let mut mixed = facts.clone();
    for (cluster, fact) in before {
        mixed.or_default(cluster).replace_by(fact);
    }
    let mut given = vec![&mixed];
    given.extend(Some(before).filter(|before| **before != mixed));
    let place = |statuses| pipeline::place(loaded.clone(), Inputs { statuses, now: then, ..inputs }).0;
    given.into_iter().map(place).collect()
}
