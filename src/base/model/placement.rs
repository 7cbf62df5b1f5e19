//! The rule that picks clusters: what a dialect asks of the engine, in the engine's words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::decision::{Condition, Outcome};
use super::key::Key;
use super::rollout::Rollout;
use super::selector::{Measure, Selector, Term};
use super::status::WorkloadName;
use crate::diag::Pos;

/// One placement, or one workload that follows placements.
#[derive(Clone, Debug)]
pub struct Placement {
    pub key: Key,
    pub origin: Pos,
    pub source: Source,
}

/// Where the clusters come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A policy of its own.
    Own(Box<Policy>),
    /// The union of other placements' decisions, narrowed by filters.
    Follows(Follow),
}

/// Follows other placements' decisions.
#[derive(Clone, Debug)]
pub struct Follow {
    pub placements: Vec<PlacementRef>,
    pub filters: Vec<Filter>,
    /// How the clusters get the workload, for placements whose clusters do not get it all at once.
    pub rollouts: Vec<Rollout>,
    pub condition: fn(&Outcome) -> Option<Condition>,
}

/// Names a placement of any dialect, as its users do: by kind and name, without the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRef {
    pub kind: String,
    /// Empty for cluster-scoped placements.
    pub namespace: String,
    pub name: String,
    pub at: Pos,
}

impl PlacementRef {
    /// `Kind namespace/name`, as a key prints.
    pub fn describe(&self) -> String {
        Key::new("", &self.kind, &self.namespace, &self.name).to_string()
    }
}

/// How clusters are chosen: candidates → filters → scorers → selection → groups.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What makes a cluster a candidate at all; all must pass.
    pub candidates: Vec<Filter>,
    pub filters: Vec<Filter>,
    pub scorers: Vec<Scorer>,
    pub ranking: Ranking,
    pub selection: Selection,
    pub retention: Retention,
    pub groups: Option<Grouping>,
    /// How many replicas each picked cluster gets, where a number is to be divided.
    pub division: Option<Box<Division>>,
    /// Set where nothing can be decided at all, with what then happens to an earlier decision.
    pub blocked: Option<Blocked>,
    /// The condition in the dialect's own words.
    pub condition: fn(&Outcome) -> Option<Condition>,
    /// The policy as its author wrote it, without what may change freely: a decision made under an
    /// equal text was made under the same policy.
    pub text: Json,
}

/// A filter and who asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    pub rule: Rule,
    /// The object that asks, where that is not the placement itself: shown by `explain`.
    pub by: Option<Key>,
}

/// What a cluster must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// No cluster passes; says why.
    Nowhere(String),
    /// One of these names.
    Named(BTreeSet<String>),
    /// These labels.
    Labels(Selector),
    /// At least one of the terms.
    AnyOf(Vec<Term>),
    /// In at least one of these sets.
    InSets(Vec<ClusterSet>),
    /// Not on its way out of the fleet.
    NotLeaving,
    /// Its agent joined, is healthy, and reported of late.
    Eligible(Limits),
    /// Every taint is tolerated by one of these.
    Tolerates(Vec<Toleration>),
    /// Where the cluster lists its namespaces, this one is among them.
    HoldsNamespace(String),
    /// Reported as ready, or without any report.
    Ready,
    /// Where the placement's folder may place; what it has elsewhere it keeps.
    Reachable(Reach),
}

/// The clusters that a folder may place into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// As messages name it.
    pub folder: String,
    pub clusters: Arc<BTreeSet<String>>,
}

/// A named set of clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterSet {
    pub name: String,
    /// `None` holds no cluster.
    pub members: Option<Selector>,
}

/// How old a report may be before its cluster counts as gone, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limits {
    pub heartbeat_seconds: i64,
    pub unhealthy_seconds: i64,
}

/// Lets a taint pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// `None` fits every key.
    pub key: Option<String>,
    /// `None` fits every value.
    pub value: Option<String>,
    /// The effect's word; `None` fits every effect.
    pub effect: Option<String>,
    /// For how long after the taint was added; `None` for ever.
    pub seconds: Option<i64>,
}

/// One named part of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Scorer {
    pub name: String,
    pub weight: i64,
    pub rule: ScoreRule,
}

/// What a scorer measures.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreRule {
    /// 100 where the placement is in force, else 0.
    Steady,
    /// Prefers clusters that few decisions picked.
    Balance,
    /// Prefers clusters with much of a resource allocatable.
    Allocatable(String),
    /// A score that an add-on measured, while it is valid.
    AddOn { resource: String, score: String },
    /// The weights of the preferred terms that match, or shares of them.
    Preferred(Vec<Preference>),
    /// Prefers clusters that even out the picks, which are then made one at a time.
    Spread(Vec<SpreadConstraint>),
    /// Picks one at a time, so that they stay even; adds nothing to the score.
    Even(Vec<EvenConstraint>),
}

/// Adds its weight to the score of clusters that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    pub weight: i64,
    pub term: Term,
    /// Adds a share of the weight in place of all of it.
    pub sorter: Option<Sorter>,
}

/// The share a cluster gets of a weight, by where its measurement lies between the fleet's smallest
/// and largest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorter {
    pub measure: Measure,
    /// The smallest gets the whole weight.
    pub ascending: bool,
}

/// Keeps the numbers of picks with each value of a label within `max_skew` of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadConstraint {
    pub key: String,
    pub max_skew: i64,
    /// Refuses what would break it, rather than scoring it low.
    pub required: bool,
}

/// Lets no value of a label or claim have more than `max_skew` picks above the one with the fewest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvenConstraint {
    pub key: String,
    pub of_claims: bool,
    pub max_skew: i64,
    /// Refuses what would break it, rather than picking it last.
    pub required: bool,
}

/// How the parts of a score make an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// By the weighted sum, then by name ascending.
    SumThenName,
    /// Part by part in the order listed, then by name descending.
    PartsThenNameDescending,
}

/// How many of the ranked clusters are picked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    All,
    /// The first so many.
    First(usize),
    /// These names and no others; those that do not pass leave the placement unfulfilled.
    Exactly(BTreeSet<String>),
}

/// What of an earlier decision stays without being looked at again.
#[derive(Clone, Copy, Debug)]
pub enum Retention {
    /// Nothing: each decision is made from scratch.
    None,
    /// Clusters picked under the same policy stay while they are in the fleet. The function brings the text of
    /// an earlier policy, as its author or another version of berth wrote it, into the form of [`Policy::text`].
    SamePolicy(fn(&Json) -> Json),
}

/// Cuts the picked clusters into ordered groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    pub size: GroupSize,
    /// Named groups, taken in this order before the rest.
    pub named: Vec<(String, Term)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSize {
    Count(usize),
    Percent(u32),
}

/// Divides a number of replicas among clusters by floors, ceilings and weights.
///
/// Those who take part are found by rules of their own, in place of the policy's filters. Where nobody
/// takes part, nothing is divided and the policy's filters stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The object that asks for it, and where it stands.
    pub by: Key,
    pub origin: Pos,
    /// Whose replicas they are, as members name it when they report their room.
    pub workload: WorkloadName,
    pub total: i32,
    /// By cluster name, each with the place of its entry.
    pub shares: BTreeMap<String, (Share, Pos)>,
    /// For clusters without an entry of their own; without this they take no part.
    pub others: Option<Share>,
    /// Divides from scratch, rather than moving as few of the replicas in force as it can.
    pub rebalance: bool,
    /// Goes into the hash that breaks ties.
    pub hash_key: String,
    /// Who gets a number.
    pub among: Vec<Filter>,
    /// Who of these is picked. What a cluster that is not picked was given is lost.
    pub then: Vec<Filter>,
}

/// What one cluster may have of the replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub floor: i64,
    /// `None` for as many as there are.
    pub ceiling: Option<i64>,
    pub weight: i64,
}

/// Nothing can be decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked {
    pub condition: Condition,
    /// Leave an earlier decision as it is, rather than deciding for no cluster.
    pub keep_earlier: bool,
}
