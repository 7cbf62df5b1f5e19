//! Merges several descriptions of one cluster: their facts are combined, and contradictions are errors.
//!
//! If a placement selects by a label that represents a cluster's name, clusters without it get it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use crate::dialects::Dialects;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::cluster::{Readiness, Report};
use berth_base::model::placement::Selection;
use berth_base::model::{Cluster, Fleet, Map, Policy, Shared};

/// The clusters of a fleet, each name once.
pub(super) struct Merged {
    pub clusters: Map<String, Shared<Cluster>>,
    /// The clusters whose descriptions contradict each other.
    pub contradicting: BTreeSet<String>,
}

/// Merges clusters with the same name. If two files contradict each other, the first one is used.
pub(super) fn merge(mut clusters: Vec<Shared<Cluster>>, found: &mut Diagnostics) -> Merged {
    clusters.sort_by(|a, b| (&a.name, &a.origins).cmp(&(&b.name, &b.origins)));
    let mut merged = Merged { clusters: Map::new(), contradicting: BTreeSet::new() };
    for cluster in clusters {
        let Some(first) = merged.clusters.get_mut(&*cluster.name) else {
            merged.clusters.insert(cluster.name.to_string(), cluster);
            continue;
        };
        let mut contradictions = Diagnostics::new();
        add(first, (*cluster).clone(), &mut contradictions);
        if contradictions.iter().next().is_some() {
            merged.contradicting.insert(cluster.name.to_string());
        }
        found.extend(contradictions);
    }
    merged
}

fn add(first: &mut Cluster, second: Cluster, found: &mut Diagnostics) {
    let name = first.name.clone();
    let mut doubt = Doubt { name: &name, here: second.origins.first(), there: first.origins.first(), found };
    doubt.join("label", &mut first.labels, second.labels);
    doubt.join("claim", &mut first.claims, second.claims);
    doubt.join("property", &mut first.properties, second.properties);
    doubt.join("capacity", &mut first.capacity, second.capacity);
    doubt.join("allocatable", &mut first.allocatable, second.allocatable);
    doubt.join("available", &mut first.available, second.available);
    for (path, value) in second.details {
        first.details.entry(path).or_insert(value);
    }
    doubt.settle("applier", &mut first.applier, second.applier);
    doubt.settle("list of namespaces", &mut first.namespaces, second.namespaces);
    match (&mut first.standing, second.standing) {
        (_, Readiness::Assumed) => {}
        (standing @ Readiness::Assumed, reported) => *standing = reported,
        (Readiness::Reported(mine), Readiness::Reported(Report { ready, agent, taints })) => {
            mine.taints.extend(taints);
            doubt.settle("readiness", &mut mine.ready, ready);
            doubt.settle("agent", &mut mine.agent, agent);
        }
    }
    first.taints.extend(second.taints);
    first.taints.sort();
    first.taints.dedup_by(|a, b| (&a.key, &a.value, a.effect) == (&b.key, &b.value, b.effect));
    for taint in second.taints_of_silence {
        if !first.taints_of_silence.contains(&taint) {
            first.taints_of_silence.push(taint);
        }
    }
    first.leaving |= second.leaving;
    first.origins.extend(second.origins);
}

struct Doubt<'a> {
    name: &'a str,
    here: Option<&'a Pos>,
    there: Option<&'a Pos>,
    found: &'a mut Diagnostics,
}

impl Doubt<'_> {
    fn join(&mut self, what: &str, mine: &mut BTreeMap<String, String>, others: BTreeMap<String, String>) {
        for (key, value) in others {
            match mine.get(&key) {
                Some(known) if *known != value => {
                    self.report(&format!("{what} `{key}` is `{value}` here and `{known}`"));
                }
                Some(_) => {}
                None => {
                    mine.insert(key, value);
                }
            }
        }
    }

    fn settle<T: PartialEq + Debug>(&mut self, what: &str, mine: &mut Option<T>, other: Option<T>) {
        match (&mine, other) {
            (Some(known), Some(value)) if *known != value => {
                self.report(&format!("its {what} here differs from the one"));
            }
            (None, Some(value)) => *mine = Some(value),
            _ => {}
        }
    }

    fn report(&mut self, what: &str) {
        let there = self.there.map_or_else(String::new, |at| format!(" at {at}"));
        let message = format!("contradicting descriptions of cluster `{}`: {what}{there}", self.name);
        let at = self.here.cloned().unwrap_or_else(|| Pos::file(""));
        self.found.push(
            Diagnostic::error(at, message)
                .hint("write the same value in both, or remove it from one of them"),
        );
    }
}

/// Gives clusters the labels by which some placement selects them by name.
pub(super) fn give_name_labels(fleet: &mut Fleet, dialects: Dialects) {
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
pub(super) fn name_labels_are_given(fleet: &Fleet, dialects: Dialects) -> bool {
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
