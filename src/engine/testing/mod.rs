//! Helpers for tests: nodes from values by their YAML, random numbers, a gate's lookups, and random histories
//! of a fleet.

pub mod dice;
mod tests;

use std::sync::Arc;

pub use dice::Dice;

use crate::gate::{PastState, Wanted};
use crate::state::State;
use berth_base::yaml::{self, Limits, Node};
use serde_json::Value as Json;

/// Returns the node tree of a file with this content.
pub fn node(json: &Json) -> Node {
    let mut read = yaml::read(yaml::emit(json).as_bytes(), &Limits::default());
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    read.documents.pop().expect("a document").root
}

/// Returns the parts of a state that a gate wants.
pub fn past_state(state: &State, seq: u64, wanted: &Wanted<'_>) -> PastState {
    let decisions = wanted.workloads.iter().filter_map(|key| state.decisions.get(*key)).cloned().collect();
    let folders = state.folders.iter().filter(|(cluster, _)| wanted.clusters.contains(cluster.as_str()));
    let folders =
        folders.map(|(cluster, folder)| (cluster.clone(), Arc::new(folder.keys().cloned().collect())));
    PastState { seq, decisions, folders: folders.collect() }
}
