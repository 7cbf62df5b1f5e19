//! Hypothetical decisions: at a later moment, or with the outside of the current state.

use super::{MOST_DEADLINES, PassInputs};
use berth_base::model::{ClusterStatus, Decision, Key, Map, Shared, Timestamp};
use berth_engine::gate::deadlines::LaterDecisions;
use berth_engine::pipeline::{self, Inputs};
use berth_engine::state::State;

impl PassInputs {
    /// The decisions with other statuses, or at another moment, and when they change by themselves.
    fn place(
        &self,
        current: &State,
        statuses: &Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
    ) -> (Map<Key, Decision>, Option<Timestamp>) {
        let place = |inputs: Inputs<'_>| {
            pipeline::place(self.loaded.clone(), Inputs { current, statuses, now, ..inputs })
        };
        self.inputs(place)
    }

    /// The decisions at the moments from now `until` another one at which time alone changes some. Scores that
    /// members report do not run out here: members report anew.
    pub fn ahead(
        &self,
        facts: &Map<String, Shared<ClusterStatus>>,
        first_seen: &Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
        until: Timestamp,
    ) -> Vec<LaterDecisions> {
        let mut facts = facts.clone();
        facts.values_mut().for_each(|fact| fact.keep_scores(now));
        let mut state = State { facts: first_seen.clone(), ..self.current.clone() };
        let (mut at, mut moments) = (now, Vec::new());
        let (decisions, mut change) = self.place(&state, &facts, at);
        state.decisions = decisions;
        while let Some(next) = change.filter(|next| *next > at && *next <= until) {
            at = if moments.len() < MOST_DEADLINES { next } else { until };
            let (decisions, next) = self.place(&state, &facts, at);
            change = next;
            state.decisions = decisions.clone();
            moments.push(LaterDecisions { at, decisions });
        }
        moments
    }

    /// Returns the decisions that the edit alone would give, with the outside of the current state. Facts hold
    /// only what decisions read then, so what the new source reads for the first time is taken as it is now
    /// and, where that differs, as never reported as well.
    pub fn edit_alone(
        &self,
        facts: &Map<String, Shared<ClusterStatus>>,
        then: Option<Timestamp>,
    ) -> Vec<Map<Key, Decision>> {
        let before = &self.current.facts;
        let then = then.unwrap_or(self.now).min(self.now);
        if before == facts && then == self.now {
            return Vec::new();
        }
        let mut mixed = facts.clone();
        for (cluster, fact) in before {
            mixed.or_default(cluster).replace_by(fact);
        }
        let mut given = vec![&mixed];
        given.extend(Some(before).filter(|before| **before != mixed));
        given.into_iter().map(|statuses| self.place(&self.current, statuses, then).0).collect()
    }
}
