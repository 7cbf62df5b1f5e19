//! Clusters of the fleet, whatever kind describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use jiff::Timestamp;

use super::applier::Applier;
use super::key::Key;
use super::selector::{Labels, Measure, Term};
use crate::diag::Pos;

/// A cluster as files and reports describe it. Several files may describe one cluster under one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// Shared with the picks of the cluster.
    pub name: Arc<str>,
    /// The files that describe the cluster, the first one first.
    pub origins: Vec<Pos>,
    pub labels: Labels,
    pub claims: Labels,
    pub taints: Vec<Taint>,
    /// Named measurements, as written: quantities stay text until somebody compares them.
    pub properties: BTreeMap<String, String>,
    pub capacity: BTreeMap<String, String>,
    pub allocatable: BTreeMap<String, String>,
    pub available: BTreeMap<String, String>,
    /// Scores that add-ons gave it, by resource and score name. An empty name is for a resource without scores.
    pub scores: BTreeMap<(String, String), AddOnScore>,
    /// The cluster's reports on workloads.
    pub workloads: BTreeMap<WorkloadName, WorkloadReport>,
    /// The namespaces the member has, where it lists them.
    pub namespaces: Option<BTreeSet<String>>,
    /// Further fields of the cluster's own kind, by dotted path. Only expressions read them.
    pub details: BTreeMap<String, Json>,
    /// Being removed from the fleet: not picked any more.
    pub leaving: bool,
    pub standing: Standing,
    /// The program that applies the cluster's folder; berth's own member where no file names one.
    pub applier: Option<&'static Applier>,
    /// The taints that its systems give it while its member is silent.
    pub taints_of_silence: Vec<Taint>,
    /// Set while its member is silent.
    pub silence: Option<Silence>,
}

impl Cluster {
    /// Reports whether all parts of a term hold. Expressions cannot be evaluated here, so a term with any of them
    /// does not hold.
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

/// An add-on's score, and the time until which it counts: for ever where the add-on names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOnScore {
    pub value: i64,
    /// Position in the list it was read from: expressions see scores in that order.
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
    /// The number of replicas that the member has room for, where that is limited.
    pub capacity: Option<i64>,
}

/// The known fitness of a cluster to take work.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Standing {
    /// No status at all: an inventory written by people, so taken as ready.
    #[default]
    Assumed,
    Reported(Report),
}

/// The report in a file's status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The dialect's own word for ready; absent where the status has none.
    pub ready: Option<bool>,
    /// The member's agent as it describes itself, for systems that have one.
    pub agent: Option<Agent>,
    /// The taints that the cluster has because of this report.
    pub taints: Vec<Taint>,
}

/// A member agent's account of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    pub joined: Option<bool>,
    /// Healthy or not, and since when.
    pub healthy: Option<(bool, Option<Timestamp>)>,
    pub heartbeat: Option<Timestamp>,
}

/// A mark that keeps work away unless tolerated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: Effect,
    /// The effect in the words of the file, which tolerations name.
    pub effect_word: String,
    pub since: Option<Timestamp>,
    /// The moment at which tolerations of it stopped to run out.
    pub frozen: Option<Timestamp>,
}

/// A silence of a cluster's member: its last report is overdue for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    pub since: Timestamp,
    /// Since when nothing more is moved away for it.
    pub frozen: Option<Timestamp>,
}

impl Silence {
    /// Returns the moment after so many seconds of silence. `None` if the silence was frozen before.
    pub fn lasts(self, seconds: i64) -> Option<Timestamp> {
        let end = self.since.as_second().saturating_add(seconds);
        let end = Timestamp::from_second(end).unwrap_or(Timestamp::MAX);
        self.frozen.is_none_or(|frozen| end <= frozen).then_some(end)
    }
}

/// The effect of an untolerated taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Nothing may be here.
    Refuse,
    /// Copies in the cluster stay, new ones are refused.
    RefuseNew,
    /// No effect on decisions.
    Prefer,
}
