//! Hypothetical decisions over the inputs of a pass.

use super::PassInputs;
use berth_base::model::{ClusterStatus, Decision, Key, Map, Shared, Timestamp};
use berth_engine::gate::losses::LaterDecisions;
use berth_engine::hypothetical;
use berth_engine::pipeline::Inputs;

impl PassInputs {
    /// The decisions at the moments from now `until` another one at which time alone changes some.
    pub fn ahead(
        &self,
        facts: &Map<String, Shared<ClusterStatus>>,
        first_seen: &Map<String, Shared<ClusterStatus>>,
        now: Timestamp,
        until: Timestamp,
    ) -> Vec<LaterDecisions> {
        self.inputs(|inputs| {
            hypothetical::ahead(&self.source.loaded, Inputs { now, ..inputs }, facts, first_seen, until)
        })
    }

    /// The decisions that the edit alone would give, with the outside of the current state.
    pub fn edit_alone(
        &self,
        facts: &Map<String, Shared<ClusterStatus>>,
        then: Option<Timestamp>,
    ) -> Vec<Map<Key, Decision>> {
        self.inputs(|inputs| hypothetical::edit_alone(&self.source.loaded, inputs, facts, then))
    }
}
