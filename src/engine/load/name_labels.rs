//! Labels that stand for a cluster's name: where a placement picks by one, clusters without it get it.

use crate::dialects::Dialects;
use berth_base::model::placement::Selection;
use berth_base::model::{Fleet, Policy};

/// Gives clusters the labels by which some placement picks them by name.
pub(super) fn give(fleet: &mut Fleet, dialects: Dialects) {
    for label in dialects.iter().flat_map(|dialect| dialect.name_labels) {
        let mut policies = fleet.placements.values().filter_map(|placement| placement.own_policy());
        if !policies.any(|policy| asks_for(policy, label)) {
            continue;
        }
        let unnamed = fleet.clusters.iter().filter(|(_, cluster)| !cluster.labels.contains_key(*label));
        let unnamed: Vec<String> = unnamed.map(|(name, _)| name.clone()).collect();
        for name in unnamed {
            if let Some(cluster) = fleet.clusters.get_mut(&name) {
                cluster.labels.insert((*label).to_owned(), name);
            }
        }
    }
}

fn asks_for(policy: &Policy, label: &str) -> bool {
    let Selection::InTurn(choices) = &policy.selection else { return false };
    let mut terms = choices.iter().flat_map(|choice| &choice.terms);
    terms.any(|term| term.labels.keys().any(|key| key == label))
}
