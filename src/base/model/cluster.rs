//! Clusters of the fleet, whatever kind describes them, and their views for expressions: named JSON values
//! with their own methods.
//!
//! Here, expressions are plain text; the engine runs them. The dialect chooses the view.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value as Json;

use super::applier::Applier;
use super::key::Key;
use super::selector::{Labels, Measure, Term};
use crate::diag::Pos;

/// A cluster from files and reports. Several files may describe one cluster under one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// Shared with the picks of the cluster.
    pub name: Arc<str>,
    /// The files that describe the cluster, the first one first.
    pub origins: Vec<Pos>,
    pub labels: Labels,
    pub claims: Labels,
    pub taints: Vec<Taint>,
    /// Named measurements, as written: quantities stay text until they are compared.
    pub properties: BTreeMap<String, String>,
    pub capacity: BTreeMap<String, String>,
    pub allocatable: BTreeMap<String, String>,
    pub available: BTreeMap<String, String>,
    /// Scores from add-ons, by resource and score name. An empty name marks a resource without scores.
    pub scores: BTreeMap<(String, String), AddOnScore>,
    /// The cluster's reports on workloads.
    pub workloads: BTreeMap<WorkloadName, WorkloadReport>,
    /// The member's namespaces, if it lists them.
    pub namespaces: Option<BTreeSet<String>>,
    /// Further fields of the cluster's own kind, by dotted path. Only expressions read them.
    pub details: BTreeMap<String, Json>,
    /// The cluster leaves the fleet: it is not picked any more.
    pub leaving: bool,
    pub standing: Readiness,
    /// The program that applies the cluster's folder; berth's own member if no file names one.
    pub applier: Option<&'static Applier>,
    /// The taints that its systems add while its member is silent.
    pub taints_of_silence: Vec<Taint>,
    /// Set while its member is silent.
    pub silence: Option<Silence>,
}

impl Cluster {
    /// Reports whether all parts of a term match. Expressions cannot be evaluated here, so a term with
    /// expressions does not match.
    pub fn meets(&self, term: &Term) -> bool {
        let bounds_hold = || term.properties.iter().all(|bound| bound.met_by(self.measured(&bound.measure)));
        term.expressions.is_empty()
            && term.labels.matches(&self.labels)
            && term.claims.matches(&self.claims)
            && bounds_hold()
    }

    /// Returns the cluster's value of a measure, as written.
    pub fn measured(&self, measure: &Measure) -> Option<&str> {
        let (named, name) = match measure {
            Measure::Property(name) => (&self.properties, name),
            Measure::Capacity(name) => (&self.capacity, name),
            Measure::Allocatable(name) => (&self.allocatable, name),
            Measure::Available(name) => (&self.available, name),
        };
        named.get(name).map(String::as_str)
    }
}

/// An add-on's score, with the end of its validity; `None`: valid for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOnScore {
    pub value: i64,
    /// The index in its list: expressions see scores in that order.
    pub index: usize,
    pub valid_until: Option<Timestamp>,
}

/// A workload by the kind, namespace and name of the object in the fleet repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadName {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl WorkloadName {
    pub fn of(key: &Key) -> WorkloadName {
        let [kind, namespace, name] = [&key.kind, &key.namespace, &key.name].map(|part| part.to_string());
        WorkloadName { kind, namespace, name }
    }
}

/// A member's report on one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadReport {
    /// The number of replicas that fit into the member, if it is limited.
    pub capacity: Option<i64>,
}

/// The known readiness of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Readiness {
    /// No status: people wrote the inventory, so the cluster counts as ready.
    #[default]
    Assumed,
    Reported(Report),
}

/// The report in a file's status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The dialect's own readiness; absent if the status has none.
    pub ready: Option<bool>,
    /// The member agent's account of itself, in systems that have agents.
    pub agent: Option<Agent>,
    /// The taints that follow from this report.
    pub taints: Vec<Taint>,
}

/// A member agent's account of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    pub joined: Option<bool>,
    /// The reported health of the agent, and the moment since when it is so.
    pub healthy: Option<(bool, Option<Timestamp>)>,
    pub heartbeat: Option<Timestamp>,
}

/// A mark that keeps work away unless tolerated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: Effect,
    /// The effect's word in the file, which tolerations use.
    pub effect_word: String,
    pub since: Option<Timestamp>,
    /// The moment at which tolerations of it stopped expiring.
    pub frozen: Option<Timestamp>,
}

/// A silence of a cluster's member: its last report is long overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    pub since: Timestamp,
    /// The moment since which nothing more moves away because of the silence.
    pub frozen: Option<Timestamp>,
}

impl Silence {
    /// Returns the moment after this many seconds of silence. `None` if the silence was frozen before.
    pub fn lasts(self, seconds: i64) -> Option<Timestamp> {
        let end = self.since.as_second().saturating_add(seconds);
        let end = Timestamp::from_second(end).unwrap_or(Timestamp::MAX);
        self.frozen.is_none_or(|frozen| end <= frozen).then_some(end)
    }
}

/// The effect of an untolerated taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Refuses all copies.
    Refuse,
    /// Copies in the cluster stay, new ones are refused.
    RefuseNew,
    /// No effect on decisions.
    Prefer,
}

/// An expression over a cluster that must be true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expression {
    pub text: String,
    pub view: ClusterView,
}

/// A view of clusters. Its name identifies it: no two views share a name.
#[derive(Clone, Copy)]
pub struct ClusterView {
    /// The variable that holds the cluster in expressions.
    pub name: &'static str,
    /// Returns the cluster as expressions see it: equal for equal clusters.
    pub shown: fn(&Cluster) -> Json,
    /// Methods of the variable that take one text. They return a value; `None` is an error.
    pub methods: &'static [(&'static str, Method)],
}

pub type Method = fn(&Cluster, &str) -> Option<Json>;

impl PartialEq for ClusterView {
    fn eq(&self, other: &ClusterView) -> bool {
        self.name == other.name
    }
}

impl Eq for ClusterView {}

impl PartialOrd for ClusterView {
    fn partial_cmp(&self, other: &ClusterView) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ClusterView {
    fn cmp(&self, other: &ClusterView) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl fmt::Debug for ClusterView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
