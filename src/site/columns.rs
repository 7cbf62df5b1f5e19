//! The order of clusters, and the labels that group them.
//!
//! Clusters with equal labels stand side by side, so that a placement's clusters are few runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::selector::Labels;
use berth_base::model::shared::{ByAllocation, shared_by_several};
use berth_base::model::{Pick, Shared};
use berth_engine::release::stages::ClusterLabels;

use crate::cell::shortened;
use crate::form::{LabelRuns, runs};
use crate::inputs::SiteInputs;

/// The last parts of labels that people group clusters by, the best first.
const USUAL: [&str; 12] = [
    "region",
    "env",
    "environment",
    "tier",
    "stage",
    "ring",
    "clusterset",
    "set",
    "zone",
    "cloud",
    "provider",
    "group",
];

/// The number of labels to choose from.
const MOST_KEYS: usize = 6;

/// The number of values beyond which a label names clusters and does not group them.
const MOST_VALUES: usize = 48;

/// The clusters in order, and the labels that group them.
#[derive(Debug, Default)]
pub(crate) struct Columns<'s> {
    pub names: Vec<String>,
    pub labels: Vec<Labels>,
    /// The best label first. Empty if no label groups the clusters.
    pub keys: Vec<String>,
    index: BTreeMap<String, usize>,
    /// The positions of the clusters of each list of picks that several decisions share.
    of_lists: BTreeMap<ByAllocation<'s, Vec<Pick>>, Vec<Option<usize>>>,
}

impl<'s> Columns<'s> {
    pub fn of(inputs: &SiteInputs<'s>) -> Columns<'s> {
        let decisions = inputs.state.decisions.values();
        let lists = shared_by_several(decisions.map(|decision| &decision.picks));
        let named = labelled(inputs);
        let keys = grouping_keys(named.values());
        let value = |labels: &Labels, key: &String| labels.get(key).cloned().unwrap_or_default();
        let order = |(name, labels): &(String, Labels)| {
            let values: Vec<String> = keys.iter().map(|key| value(labels, key)).collect();
            (values, name.clone())
        };
        let mut all: Vec<(String, Labels)> = named.into_iter().collect();
        all.sort_by_cached_key(order);
        let index = all.iter().enumerate().map(|(index, (name, _))| (name.clone(), index)).collect();
        let (names, labels) = all.into_iter().unzip();
        let mut columns = Columns { names, labels, keys, index, of_lists: BTreeMap::new() };
        columns.of_lists =
            lists.into_iter().map(|list| (ByAllocation(list), columns.positions(list))).collect();
        columns
    }

    fn positions(&self, picks: &[Pick]) -> Vec<Option<usize>> {
        picks.iter().map(|pick| self.of_cluster(&pick.cluster)).collect()
    }

    /// Returns the position of each picked cluster.
    pub fn of_picks<'a>(&'a self, picks: &'a Shared<Vec<Pick>>) -> Cow<'a, [Option<usize>]> {
        match self.of_lists.get(&ByAllocation(picks)) {
            Some(positions) => Cow::Borrowed(positions),
            None => Cow::Owned(self.positions(picks)),
        }
    }

    /// Returns the position of a cluster.
    pub fn of_cluster(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Returns the values of a label, and the value of each cluster.
    pub fn groups(&self, key: &str) -> LabelRuns {
        let value = |labels: &Labels| labels.get(key).cloned().unwrap_or_default();
        let values: BTreeSet<String> = self.labels.iter().map(value).collect();
        let values: Vec<String> = values.into_iter().collect();
        let position = |labels: &Labels| {
            let value = value(labels);
            values.binary_search(&value).map_or(0, |index| index as u32)
        };
        let of = runs(self.labels.iter().map(position));
        LabelRuns { values: values.iter().map(|value| shortened(value)).collect(), of }
    }
}

/// Returns every cluster of the fleet, of the state and of the report, with its labels.
fn labelled(inputs: &SiteInputs<'_>) -> BTreeMap<String, Labels> {
    let known = inputs.fleet.map(|fleet| ClusterLabels::of(fleet, &inputs.state.facts));
    let of_fleet = inputs.fleet.into_iter().flat_map(|fleet| fleet.clusters.keys());
    let of_report =
        inputs.members.into_iter().flat_map(|members| members.lines.iter().map(|line| &line.name));
    let lists: BTreeSet<ByAllocation<'_, Vec<Pick>>> =
        inputs.state.decisions.values().map(|decision| ByAllocation(&decision.picks)).collect();
    let picks = lists.iter().flat_map(|list| list.0.iter());
    let names = of_fleet.chain(inputs.state.folders.keys()).chain(of_report).map(String::as_str);
    let names: BTreeSet<&str> = names.chain(picks.map(|pick| &*pick.cluster)).collect();
    let labels = |name: &str| known.as_ref().and_then(|known| known.get(name)).cloned().unwrap_or_default();
    names.into_iter().map(|name| (name.to_owned(), labels(name))).collect()
}

/// Chooses labels that most clusters have, with few values. Labels with usual names come first.
fn grouping_keys<'l>(clusters: impl Iterator<Item = &'l Labels>) -> Vec<String> {
    let mut values: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut count = 0;
    for labels in clusters {
        count += 1;
        for (key, value) in labels {
            *values.entry(key).or_default().entry(value).or_default() += 1;
        }
    }
    let most = MOST_VALUES.min(count / 2 + 1);
    let groups = |values: &BTreeMap<&str, usize>| {
        let labelled: usize = values.values().sum();
        let groups = values.len() + usize::from(labelled < count);
        labelled * 2 >= count && (2..=most).contains(&groups)
    };
    let mut keys: Vec<&str> =
        values.iter().filter(|(_, values)| groups(values)).map(|(key, _)| *key).collect();
    keys.sort_by_key(|key| {
        let last = key.rsplit('/').next().unwrap_or(key);
        let usual = USUAL.iter().position(|usual| last.eq_ignore_ascii_case(usual));
        (usual.unwrap_or(USUAL.len()), values[key].len(), *key)
    });
    keys.truncate(MOST_KEYS);
    keys.into_iter().map(str::to_owned).collect()
}
