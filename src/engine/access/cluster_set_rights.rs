//! The rights that a cluster's document requires: on the sets that the cluster was in, is in, and moves
//! between.
//!
//! Everything is compared with the earlier commit, so that a move requires the right on both sets, whichever
//! file it is in. A document is not blamed for other documents of the same cluster.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::document_rights::{Lack, MissingRight, top};
use super::facts::{ClusterDocument, Facts, SET_LABEL, seen, set_of};
use super::rule::Rules;
use crate::dialects::Document;
use berth_base::model::selector::Labels;
use berth_base::packed::View;
use berth_base::yaml::Mark;

/// A cluster's document, and the facts to compare it with.
pub(super) struct ClusterCase<'a> {
    pub(super) document: &'a Document,
    pub(super) before: &'a Facts,
    /// The current sets.
    pub(super) now: &'a Facts,
    /// The clusters of this commit, including those of refused documents.
    pub(super) all: &'a Facts,
}

impl ClusterCase<'_> {
    pub(super) fn lacks(&self, rules: &Rules) -> Vec<Lack> {
        let (path, cluster) = (&*self.document.at.file, &*self.document.key.name);
        let seen = seen(self.document, rules.dialects);
        let was = self.before.clusters.get(cluster).map(Vec::as_slice).unwrap_or_default();
        let (old, new) = (self.before.labelled_sets(cluster), self.sets(&seen));
        let at = label_place(self.document);
        let mut found = Vec::new();
        let may_join = |set: &String| rules.may_join(path, set);
        for set in new.iter().filter(|set| !may_join(set)) {
            let act = if old.contains(set) {
                format!("describe the cluster `{cluster}` of the set `{set}`")
            } else {
                format!("put the cluster `{cluster}` into the set `{set}`")
            };
            // A folder that may change this cluster may also hold its document, if the set does not change.
            if !(old.contains(set) && rules.may_edit(path, cluster, &old)) {
                found.push((at, MissingRight::new(act, join(set))));
            }
        }
        for set in old.difference(&new).filter(|set| !may_join(set)) {
            let act = format!("take the cluster `{cluster}` out of the set `{set}`");
            found.push((at, MissingRight::new(act, join(set))));
        }
        found.extend(self.by_labels(rules, &seen, was));
        if found.is_empty() && !was.is_empty() && self.is_edit(&seen, was) {
            let sets: BTreeSet<String> = old.union(&new).cloned().collect();
            if !rules.may_edit(path, cluster, &sets) {
                let names: Vec<&str> = sets.iter().map(String::as_str).collect();
                let act = format!("change the cluster `{cluster}`");
                let needs = format!("clusterSets: {{admin: [{}]}}", names.join(", "));
                found.push((top(self.document), MissingRight::new(act, needs)));
            }
        }
        found
    }

    /// Returns the sets into which the document puts its cluster by label: its own label, or else those of
    /// other documents.
    fn sets(&self, seen: &ClusterDocument) -> BTreeSet<String> {
        match set_of(&seen.labels) {
            Some(set) => BTreeSet::from([set]),
            None => self.all.labelled_sets(&self.document.key.name),
        }
    }

    /// Protects the labels by which a set selects, like the set label: changing them moves the cluster.
    fn by_labels(&self, rules: &Rules, seen: &ClusterDocument, was: &[ClusterDocument]) -> Vec<Lack> {
        let (path, cluster) = (&*self.document.at.file, &*self.document.key.name);
        let (before, mut after) = (merged(was.iter()), merged(was.iter().filter(|one| one.key != seen.key)));
        after.extend(seen.labels.clone());
        let mut found = Vec::new();
        for (set, members) in &self.now.by_labels {
            let (was_in, is_in) = (!was.is_empty() && members.matches(&before), members.matches(&after));
            if was_in == is_in || rules.may_join(path, set) {
                continue;
            }
            let act = match is_in {
                true => format!("put the cluster `{cluster}` into the set `{set}` by its labels"),
                false => format!("take the cluster `{cluster}` out of the set `{set}` by its labels"),
            };
            found.push((label_place(self.document), MissingRight::new(act, join(set))));
        }
        found
    }

    /// Reports whether a field other than the set label differs, or the document adds to an existing cluster.
    fn is_edit(&self, seen: &ClusterDocument, was: &[ClusterDocument]) -> bool {
        match was.iter().find(|one| one.key == seen.key) {
            Some(one) => without_set(one) != without_set(seen),
            None => true,
        }
    }
}

/// Returns the missing rights for removing a cluster's document. If other documents describe the cluster, the
/// removal also changes the cluster.
pub(super) fn lacks_to_go(
    before: &Facts,
    rules: &Rules,
    path: &str,
    cluster: &str,
    is_described_still: bool,
) -> Option<MissingRight> {
    let sets = before.labelled_sets(cluster);
    if let Some(set) = sets.iter().find(|set| !rules.may_join(path, set)) {
        return Some(MissingRight::new(
            format!("take the cluster `{cluster}` out of the set `{set}`"),
            join(set),
        ));
    }
    (is_described_still && !rules.may_edit(path, cluster, &sets)).then(|| {
        let names = sets.into_iter().collect::<Vec<_>>().join(", ");
        let act = format!("change the cluster `{cluster}`, which another document describes, too");
        MissingRight::new(act, format!("clusterSets: {{admin: [{names}]}}"))
    })
}

fn join(set: &str) -> String {
    format!("clusterSets: {{join: [{set}]}}")
}

fn merged<'a>(seen: impl Iterator<Item = &'a ClusterDocument>) -> Labels {
    seen.flat_map(|one| one.labels.clone()).collect()
}

fn without_set(seen: &ClusterDocument) -> Json {
    let mut json = seen.root.to_json();
    if let Some(labels) = json.pointer_mut("/metadata/labels").and_then(Json::as_object_mut) {
        labels.remove(SET_LABEL);
    }
    let is_empty = |json: &Json| json.as_object().is_none_or(serde_json::Map::is_empty);
    if let Some(metadata) = json.pointer_mut("/metadata").and_then(Json::as_object_mut)
        && metadata.get("labels").is_some_and(is_empty)
    {
        metadata.remove("labels");
    }
    json
}

fn label_place(document: &Document) -> Mark {
    let labels = document.root.get("metadata").and_then(|metadata| metadata.get("labels"));
    let label = labels.and_then(|labels| labels.get(SET_LABEL)).or(labels);
    label.map_or_else(|| top(document), View::at)
}
