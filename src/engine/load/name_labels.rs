//! Labels that represent a cluster's name: if a placement selects by such a label, clusters without it get
//! it.

use crate::dialects::Dialects;
use berth_base::model::placement::Selection;
use berth_base::model::{Fleet, Policy};

/// Gives clusters the labels by which some placement selects them by name.
pub(super) fn give(fleet: &mut Fleet, dialects: Dialects) {
    for label in dialects.iter().flat_map(|dialect| dialect.name_labels) {
        if !is_asked_for(fleet, label) {
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

/// Reports whether clusters without such a label get one.
pub(super) fn are_given(fleet: &Fleet, dialects: Dialects) -> bool {
    let mut labels = dialects.iter().flat_map(|dialect| dialect.name_labels);
    labels.any(|label| is_asked_for(fleet, label))
}

fn is_asked_for(fleet: &Fleet, label: &str) -> bool {
    let mut policies = fleet.placements.values().filter_map(|placement| placement.own_policy());
    policies.any(|policy| asks_for(policy, label))
}

fn asks_for(policy: &Policy, label: &str) -> bool {
    let Selection::InTurn(choices) = &policy.selection else { return false };
    let mut terms = choices.iter().flat_map(|choice| &choice.terms);
    terms.any(|term| term.labels.keys().any(|key| key == label))
}
