//! The facts of a commit that access rules read: clusters with their labels, cluster sets, and the file of
//! each object. The role of an object is from its dialect, or from this file for berth's own kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::OWN_GROUP;
use crate::dialects::{AccessRole, Dialects, Document, ParsedDocument};
use berth_base::diag::Severity;
use berth_base::meta::label_selector;
use berth_base::model::selector::Labels;
use berth_base::model::{Key, Selector};
use berth_base::packed::{Packed, View};
use berth_base::yaml::{Node, Scope};

/// The label that puts a cluster into the set of this name, and the set of clusters without the label. Sets
/// are those of Open Cluster Management, for the clusters of all dialects.
pub(super) const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
const DEFAULT_SET: &str = "default";
const GLOBAL_SET: &str = "global";

/// A document that describes a cluster.
#[derive(Clone, Debug)]
pub(super) struct ClusterDocument {
    pub(super) key: Key,
    pub(super) labels: Labels,
    pub(super) root: Packed,
}

/// A commit's clusters and sets.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub(super) clusters: BTreeMap<String, Vec<ClusterDocument>>,
    /// Sets that select clusters by their labels.
    pub(super) by_labels: BTreeMap<String, Selector>,
    /// The file of each object.
    paths: BTreeMap<Key, Arc<str>>,
}

impl Facts {
    /// Reads the facts of documents.
    pub fn of<'d>(documents: impl Iterator<Item = &'d Document>, dialects: Dialects) -> Facts {
        let mut facts = Facts::default();
        for document in documents {
            let (key, path) = (&document.key, &document.at.file);
            // Of two documents with the same key, the first is used, as everywhere.
            if facts.paths.contains_key(key) {
                continue;
            }
            facts.paths.insert(key.clone(), path.clone());
            if is_cluster(dialects, key) {
                facts.clusters.entry(key.name.to_string()).or_default().push(seen(document, dialects));
            } else if is_set(dialects, key)
                && let Some(members) = members(document)
            {
                facts.by_labels.insert(key.name.to_string(), members);
            }
        }
        facts
    }

    /// Returns the file of an object.
    pub fn path(&self, key: &Key) -> Option<&Arc<str>> {
        self.paths.get(key)
    }

    /// Returns the clusters and sets, each with its file: moving them requires a right.
    pub(super) fn kept_apart(&self, dialects: Dialects) -> impl Iterator<Item = (&Key, &Arc<str>)> {
        self.paths.iter().filter(move |(key, _)| is_cluster(dialects, key) || is_set(dialects, key))
    }

    /// Reports whether one of these keys belongs to a document that described the cluster.
    pub(super) fn is_described_by_any_of(&self, cluster: &str, keys: &BTreeSet<&Key>) -> bool {
        self.clusters.get(cluster).is_some_and(|all| all.iter().any(|one| keys.contains(&one.key)))
    }

    /// Returns the sets that a cluster is in by its set label. Without a label, that is `default`; empty for
    /// an unknown cluster.
    pub(super) fn labelled_sets(&self, cluster: &str) -> BTreeSet<String> {
        let Some(seen) = self.clusters.get(cluster) else { return BTreeSet::new() };
        let named: BTreeSet<String> = seen.iter().filter_map(|one| set_of(&one.labels)).collect();
        if named.is_empty() { BTreeSet::from([DEFAULT_SET.to_owned()]) } else { named }
    }

    /// Returns the sets that a cluster with these labels belongs to.
    pub(crate) fn sets_of(&self, labels: &Labels) -> BTreeSet<String> {
        let by_labels = self.by_labels.iter().filter(|(_, members)| members.matches(labels));
        let mut sets: BTreeSet<String> = by_labels.map(|(name, _)| name.clone()).collect();
        sets.insert(set_of(labels).unwrap_or_else(|| DEFAULT_SET.to_owned()));
        sets.insert(GLOBAL_SET.to_owned());
        sets
    }
}

/// Returns the set that labels name.
pub(super) fn set_of(labels: &Labels) -> Option<String> {
    labels.get(SET_LABEL).filter(|set| !set.is_empty()).cloned()
}

pub(super) fn seen(document: &Document, dialects: Dialects) -> ClusterDocument {
    let ParsedDocument { key, root, .. } = &**document;
    let mut labels = labels(document);
    let mut kinds =
        dialects.iter().filter(|dialect| dialect.is_cluster(key)).filter_map(|one| one.cluster_kind);
    if kinds.any(|kind| kind.in_default_set) && set_of(&labels).is_none() {
        labels.insert(SET_LABEL.to_owned(), DEFAULT_SET.to_owned());
    }
    ClusterDocument { key: key.clone(), labels, root: root.clone() }
}

fn labels(document: &Document) -> Labels {
    let node = match is_status(&document.key) {
        true => document.root.get("labels"),
        false => document.root.get("metadata").and_then(|metadata| metadata.get("labels")),
    };
    let text = |(key, value): (&str, View<'_>)| Some((key.to_owned(), value.as_str()?.to_owned()));
    node.into_iter().flat_map(View::entries).filter_map(text).collect()
}

/// Returns the selector of a set. A faulty selector matches no cluster; its reader reports it.
fn members(document: &Document) -> Option<Selector> {
    let selector = Node::unpack(document.root.get("spec")?.get("clusterSelector")?);
    if selector.get("selectorType")?.as_str() != Some("LabelSelector") {
        return None;
    }
    let scope = Scope::new(document.at.file.clone(), Severity::Error);
    label_selector(&scope, selector.get("labelSelector")?, "labelSelector")
}

pub(super) fn object_role<'k>(dialects: Dialects, key: &'k Key) -> AccessRole<'k> {
    match (&*key.group, &*key.kind) {
        // An approval allows the removal of any workload.
        (OWN_GROUP, "Approval") => AccessRole::FleetWide,
        (OWN_GROUP, "PolicyTest") => AccessRole::FleetWide,
        // A namespaced policy affects only the workloads of its namespace.
        (OWN_GROUP, "RolloutPolicy") if key.namespace.is_empty() => AccessRole::FleetWide,
        (OWN_GROUP, _) => AccessRole::Policy,
        _ => {
            let mut roles = dialects.iter().map(|dialect| (dialect.access_role)(key));
            roles.find(|role| *role != AccessRole::Plain).unwrap_or(AccessRole::Plain)
        }
    }
}

pub(super) fn is_cluster(dialects: Dialects, key: &Key) -> bool {
    is_status(key) || dialects.iter().any(|dialect| dialect.is_cluster(key))
}

fn is_status(key: &Key) -> bool {
    *key.group == *OWN_GROUP && *key.kind == *"ClusterStatus"
}

pub(super) fn is_set(dialects: Dialects, key: &Key) -> bool {
    object_role(dialects, key) == AccessRole::ClusterSet
}
