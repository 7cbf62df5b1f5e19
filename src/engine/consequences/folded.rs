//! A plan folded for reading: by cause, then each change once with its workloads and clusters. Sets of
//! clusters are described shortly: `all 12 clusters of region=south and turin`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::field_changes::FieldChange;
use super::risks::Risk;
use crate::causes::How;
use crate::plan::{Change, Counts};
use berth_base::diag::Pos;
use berth_base::model::{Fleet, Key, ObjectId};
use berth_base::text::counted;

/// A plan by its causes, those with removals first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoldedPlan {
    pub sections: Vec<Section>,
    /// Edits that change no cluster now.
    pub idle: Vec<FoldedCause>,
}

/// The changes that come from the same edits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Empty if no cause is known.
    pub causes: Vec<FoldedCause>,
    pub how: Option<How>,
    /// The indices of the causes among all changed inputs.
    pub inputs: BTreeSet<usize>,
    pub consequences: Vec<Consequence>,
    pub replicas: Vec<ReplicaMove>,
    pub risks: BTreeSet<Risk>,
}

/// Equal changes of inputs, with the places of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedCause {
    pub words: String,
    pub changes: usize,
    pub places: Vec<Pos>,
}

/// Equal changes of workloads in clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Consequence {
    pub move_: Move,
    /// The gate holds the changes until an approval.
    pub is_held: bool,
    /// The clusters keep the removed objects, without an owner.
    pub is_orphaning: bool,
    /// The workloads, by the clusters in which they change.
    pub places: Vec<(Vec<Key>, Vec<String>)>,
    /// The reasons with their number of clusters, the most frequent first.
    pub reasons: Vec<(String, usize)>,
    /// The counts of changed copies.
    pub copies: Counts,
    /// Empty if workloads arrive or leave.
    pub objects: Arc<[ObjectDetail]>,
}

/// The kind of a workload's change in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Move {
    Leaves,
    Changes,
    Joins,
}

/// The change of an object, equal in all of the workloads and clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectDetail {
    pub change: Change,
    pub kind: Arc<str>,
    /// The object, if all changes are of the same one.
    pub object: Option<ObjectId>,
    /// `None` if the contents were not compared.
    pub fields: Option<Arc<[FieldChange]>>,
}

/// Replicas of a workload that move between clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaMove {
    pub key: Key,
    pub is_held: bool,
    pub before: i64,
    pub after: i64,
    /// The clusters, each with its number before and after.
    pub clusters: Vec<(String, Option<i64>, Option<i64>)>,
}

impl FoldedPlan {
    /// Removes the parts about other clusters: edits without an effect here, moved replicas, and the share of
    /// the fleet.
    pub fn narrow(&mut self, cluster: &str) {
        self.idle.clear();
        for section in &mut self.sections {
            section.replicas.iter_mut().for_each(|moved| moved.clusters.retain(|(name, ..)| name == cluster));
            section.replicas.retain(|moved| !moved.clusters.is_empty());
            section.risks.retain(|risk| !matches!(risk, Risk::Share { .. }));
        }
        self.sections.retain(|section| !section.is_empty());
    }
}

impl Section {
    pub(super) fn is_empty(&self) -> bool {
        self.consequences.is_empty() && self.replicas.is_empty()
    }

    /// Returns the clusters that the section's changes reach.
    pub fn clusters(&self) -> BTreeSet<&str> {
        let places = self.consequences.iter().flat_map(|one| &one.places);
        let replicas = self.replicas.iter().flat_map(|moved| moved.clusters.iter().map(|(name, ..)| name));
        places.flat_map(|(_, clusters)| clusters).chain(replicas).map(String::as_str).collect()
    }

    /// Reports whether some change waits for an approval.
    pub fn has_held(&self) -> bool {
        self.consequences.iter().any(|one| one.is_held)
    }

    /// Returns the sort key: removals first, then the number of changes.
    pub(super) fn weight(&self) -> (usize, usize) {
        let removed = self.consequences.iter().map(|one| one.copies.removed).sum();
        let all = self.consequences.iter().map(|one| one.copies.changed + one.copies.added).sum();
        (removed, all)
    }
}

/// The smallest group that a label may name in place of its clusters.
const SMALLEST_GROUP: usize = 3;

/// The maximal number of groups and single names in a description.
const MOST_GROUPS: usize = 3;
const MOST_NAMES: usize = 5;

/// The groups of a fleet's clusters by label.
#[derive(Debug, Default)]
pub struct ClusterWords<'a> {
    all: BTreeSet<&'a str>,
    groups: BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>,
}

impl<'a> ClusterWords<'a> {
    pub fn of(fleet: &'a Fleet) -> ClusterWords<'a> {
        let mut words = ClusterWords::default();
        for (name, cluster) in &fleet.clusters {
            words.all.insert(name);
            for (key, value) in &cluster.labels {
                words.groups.entry((key, value)).or_default().insert(name);
            }
        }
        let all = words.all.len();
        words.groups.retain(|_, names| (SMALLEST_GROUP..all).contains(&names.len()));
        words
    }

    /// Returns the number of clusters in the fleet.
    pub fn total(&self) -> usize {
        self.all.len()
    }

    /// Describes a set of clusters.
    pub fn describe<'s>(&self, clusters: impl IntoIterator<Item = &'s str>) -> String {
        let mut left: BTreeSet<&str> = clusters.into_iter().collect();
        if left.len() >= SMALLEST_GROUP && left == self.all {
            return format!("all {} clusters", left.len());
        }
        if let Some(words) = self.all_but(&left) {
            return words;
        }
        let whole = left.clone();
        let mut parts = Vec::new();
        while left.len() >= SMALLEST_GROUP && parts.len() < MOST_GROUPS {
            let fits = |names: &&BTreeSet<&str>| names.is_subset(&whole);
            let gain = |names: &BTreeSet<&str>| names.intersection(&left).count();
            // Of equal groups the first, in the order of labels.
            let best = self
                .groups
                .iter()
                .rev()
                .filter(|(_, names)| fits(names))
                .max_by_key(|(_, names)| gain(names));
            let Some(((key, value), names)) = best.filter(|(_, names)| gain(names) >= SMALLEST_GROUP) else {
                break;
            };
            parts.push(format!("all {} clusters of {}", names.len(), label(key, value)));
            left.retain(|name| !names.contains(name));
        }
        while left.len() > MOST_NAMES && parts.len() < MOST_GROUPS {
            let Some(((key, value), names)) = self.densest(&left) else { break };
            let part = left.intersection(names).count();
            parts.push(format!("{part} of {}", label(key, value)));
            left.retain(|name| !names.contains(name));
        }
        let names = left.len();
        parts.extend(left.iter().take(MOST_NAMES).map(|name| (*name).to_owned()));
        if names > MOST_NAMES {
            parts.push(counted(names - MOST_NAMES, "other cluster"));
        }
        listed(&parts)
    }

    /// Returns the best group for a set that does not contain all of it: many clusters, and not too small a
    /// share of the group.
    fn densest(&self, clusters: &BTreeSet<&str>) -> Option<(&(&'a str, &'a str), &BTreeSet<&'a str>)> {
        let gain = |names: &BTreeSet<&str>| names.intersection(clusters).count();
        let density = |names: &BTreeSet<&str>| gain(names).pow(2) * self.all.len() / names.len().max(1);
        let groups = self
            .groups
            .iter()
            .rev()
            .filter(|(_, names)| gain(names) > MOST_NAMES && 2 * gain(names) > names.len());
        groups.max_by_key(|(_, names)| density(names))
    }

    /// Returns a description such as `all 200 clusters but oslo`.
    fn all_but(&self, clusters: &BTreeSet<&str>) -> Option<String> {
        let missing: Vec<&str> = self.all.difference(clusters).copied().collect();
        let is_short =
            (1..SMALLEST_GROUP).contains(&missing.len()) && missing.len() * SMALLEST_GROUP < clusters.len();
        (is_short && clusters.is_subset(&self.all))
            .then(|| format!("all {} clusters but {}", self.all.len(), listed(&missing)))
    }
}

/// Returns a label without the domain of its key.
fn label(key: &str, value: &str) -> String {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    format!("{name}={value}")
}

/// Joins parts as `a, b and c`.
pub fn listed<T: AsRef<str>>(parts: &[T]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::model::{Cluster, Shared};

    fn fleet() -> Fleet {
        let mut fleet = Fleet::default();
        for index in 0..20 {
            let name = format!("c{index:02}");
            let region = if index < 12 { "south" } else { "north" };
            let labels =
                [("example.com/region", region), ("ring", if index == 0 { "canary" } else { "main" })];
            let labels = labels.map(|(key, value)| (key.into(), value.into())).into_iter().collect();
            fleet.clusters.insert(
                name.clone(),
                Shared::from(Cluster { name: name.into(), labels, ..Cluster::default() }),
            );
        }
        fleet
    }

    #[test]
    fn sets_are_told_by_labels_and_names() {
        let fleet = fleet();
        let words = ClusterWords::of(&fleet);
        let names: Vec<&str> = fleet.clusters.keys().map(String::as_str).collect();
        assert_eq!(words.describe(names.clone()), "all 20 clusters");
        assert_eq!(words.describe(names[..12].iter().copied()), "all 12 clusters of region=south");
        assert_eq!(words.describe(names[..13].iter().copied()), "all 12 clusters of region=south and c12");
        assert_eq!(words.describe(["c01", "c15"]), "c01 and c15");
        assert_eq!(words.describe(names[1..].iter().copied()), "all 20 clusters but c00");
        assert_eq!(words.describe(names[..19].iter().copied()), "all 20 clusters but c19");
        assert_eq!(words.describe(names[..18].iter().copied()), "all 20 clusters but c18 and c19");
        let wanted = "all 12 clusters of region=south, c12, c13, c14, c15 and c16";
        assert_eq!(words.describe(names[..17].iter().copied()), wanted);
        assert_eq!(words.describe(names[..11].iter().copied()), "11 of region=south");
        let wanted = "all 8 clusters of region=north and 7 of region=south";
        assert_eq!(words.describe(names[5..].iter().copied()), wanted);
        assert_eq!(words.describe(["gone"]), "gone");
    }
}
